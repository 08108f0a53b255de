"""Embedders over HTTP against an endpoint that misbehaves, and the cache: nothing is asked for twice."""

import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import traceback
import tracemalloc
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import apsw
import numpy as np
import pytest

from steelyard.base.errors import ConfigError, EmbedderError, MachineError
from steelyard.base.extensions import installing
from steelyard.embedders.embed import CachedEmbedder, RecordedEmbedder, embed_checked
from steelyard.extensions.models import ApiEmbedder, ApiSettings, Secret, detect
from steelyard.extensions.models import settings as settings_module

KEY = "sk-test-0123456789abcdef"
TEXTS = [f"text {at}" for at in range(7)]


def embedder(endpoint, provider="openai", dimension=8, **how):
    waited = []
    settings = ApiSettings(provider, endpoint.url, "tiny", dimension, Secret(KEY))
    made = ApiEmbedder(settings, sleep=waited.append, **{"timeout": 5.0, **how})
    made.waited = waited
    return made


def shuffled(document):
    document["data"].reverse()
    return document


def first(change):
    def apply(document):
        change(document["data"][0])
        return document

    return apply


class TestAsking:
    def test_the_order_is_that_of_index_however_the_answer_is_sorted(self, endpoint):
        endpoint.script = [endpoint.changed(shuffled)]
        np.testing.assert_allclose(embedder(endpoint).embed(TEXTS), endpoint.expected(TEXTS), atol=1e-6)

    @pytest.mark.parametrize(
        ("provider", "path", "entry", "query"),
        [
            ("openai", "/v1/embeddings", {"encoding_format": "float"}, {"encoding_format": "float"}),
            ("local", "/v1/embeddings", {"encoding_format": "float"}, {"encoding_format": "float"}),
            ("voyage", "/v1/embeddings", {"input_type": "document"}, {"input_type": "query"}),
            ("cohere", "/v1/embed", {"input_type": "search_document"}, {"input_type": "search_query"}),
        ],
    )
    def test_each_provider_is_asked_in_its_own_shape(self, endpoint, provider, path, entry, query):
        asked = embedder(endpoint, provider)
        for kind in ("entry", "query"):
            np.testing.assert_allclose(asked.embed(TEXTS, kind), endpoint.expected(TEXTS), atol=1e-6)

        (one, headers, body), (_, _, again) = endpoint.requests
        assert one == path
        assert headers["Authorization"] == f"Bearer {KEY}"
        assert body["model"] == "tiny"
        assert entry.items() <= body.items()
        assert query.items() <= again.items()
        assert (body["texts"] if provider == "cohere" else body["input"]) == TEXTS

    @pytest.mark.parametrize(("provider", "most"), [("openai", 128), ("voyage", 128), ("cohere", 96)])
    def test_no_request_holds_more_texts_than_the_provider_takes(self, endpoint, provider, most):
        texts = [f"text {at}" for at in range(2 * most + 5)]
        vectors = embedder(endpoint, provider).embed(texts)

        sizes = [len(body.get("input", body.get("texts"))) for _, _, body in endpoint.requests]
        assert sizes == [most, most, 5]
        np.testing.assert_allclose(vectors, endpoint.expected(texts), atol=1e-6)

    def test_no_request_holds_more_characters_than_the_provider_takes_and_long_texts_are_cut(self, endpoint):
        embedder(endpoint).embed(["x" * 30_000] * 40)

        sizes = [[len(text) for text in body["input"]] for _, _, body in endpoint.requests]
        assert {size for own in sizes for size in own} == {24_000}
        assert [len(own) for own in sizes] == [16, 16, 8]
        assert max(map(sum, sizes)) <= 400_000

    def test_blank_texts_are_zeros_and_are_not_sent(self, endpoint):
        vectors = embedder(endpoint).embed(["", "a", " \n\t"])

        assert endpoint.texts == ["a"]
        assert vectors.any(axis=1).tolist() == [False, True, False]
        assert embedder(endpoint).embed(["", " "]).shape == (2, 8)
        assert embedder(endpoint).embed([]).shape == (0, 8)
        assert len(endpoint.requests) == 1


class TestTryingAgain:
    @pytest.mark.parametrize("status", [408, 425, 429, 500, 504])
    def test_a_failure_that_may_pass_is_asked_again(self, endpoint, status):
        endpoint.script = [endpoint.status(status)] * 2
        asked = embedder(endpoint)
        np.testing.assert_allclose(asked.embed(TEXTS), endpoint.expected(TEXTS), atol=1e-6)

        assert len(endpoint.requests) == 3
        assert len(asked.waited) == 2

    def test_pauses_double_from_half_a_second_with_less_than_half_a_second_of_jitter(self, endpoint):
        endpoint.script = [endpoint.status(500)] * 9
        asked = embedder(endpoint, attempts=10)
        asked.embed(["a"])

        for pause, low in zip(asked.waited, [0.5, 1, 2, 4, 8, 16, 30, 30, 30], strict=True):
            assert low <= pause <= low + 0.5

    @pytest.mark.parametrize("asked_for", ["7", "date"])
    def test_the_server_says_how_long_to_wait(self, endpoint, asked_for):
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
        endpoint.script = [endpoint.status(429, Retry_After=date if asked_for == "date" else asked_for)]
        asked = embedder(endpoint)
        asked.embed(["a"])

        (pause,) = asked.waited
        assert pause == 7 if asked_for == "7" else 10 < pause <= 40

    def test_a_server_that_asks_for_an_hour_is_not_waited_for(self, endpoint):
        endpoint.script = [endpoint.status(429, Retry_After="3600")]
        asked = embedder(endpoint)
        with pytest.raises(EmbedderError, match=r"wait 3600 s;"):
            asked.embed(["a"])
        assert asked.waited == []

    @pytest.mark.parametrize(
        "value", ["soon", "-1", "\u00b2", "9" * 5000, "1e9", "nan", "0" * 60_000, "Thu, 99 Foo 2026"]
    )
    def test_a_wish_that_cannot_be_read_is_no_wish(self, endpoint, value):
        endpoint.script = [endpoint.status(503, Retry_After=value)]
        asked = embedder(endpoint)
        asked.embed(["a"])
        assert 0.5 <= asked.waited[0] <= 1

    def test_it_gives_up_after_the_attempts_and_says_how_many(self, endpoint):
        endpoint.script = [endpoint.status(500, "out of cheese")] * 9
        asked = embedder(endpoint, attempts=3)
        with pytest.raises(EmbedderError, match=r"cheese'.*\(asked 3 times\)"):
            asked.embed(["a"])
        assert len(endpoint.requests) == 3

    @pytest.mark.parametrize("step", ["cut", "raw"])
    def test_an_answer_cut_off_is_asked_for_again(self, endpoint, step):
        endpoint.script = [endpoint.cut if step == "cut" else endpoint.raw(b'{"data": [{"index": 0, "emb')]
        asked = embedder(endpoint)
        np.testing.assert_allclose(asked.embed(TEXTS), endpoint.expected(TEXTS), atol=1e-6)
        assert len(asked.waited) == 1

    @pytest.mark.parametrize("step", ["hang", "drip"])
    def test_a_server_that_stays_slow_is_named(self, endpoint, step):
        endpoint.script = [getattr(endpoint, step)] * 2
        with pytest.raises(EmbedderError, match=r"0.2 s.*\(asked 2"):
            embedder(endpoint, timeout=0.2, attempts=2).embed(["a"])

    def test_nobody_there(self, endpoint):
        asked = embedder(endpoint, "local", attempts=2)
        endpoint.close()
        with pytest.raises(EmbedderError, match=r"server, set OPENAI_BASE_URL"):
            asked.embed(["a"])
        assert len(asked.waited) == 1


class TestRefusing:
    """Answers that are no vectors: asked for once, and refused with the reason."""

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda d: {**d, "data": d["data"][:-1]}, "6 vectors for 7 texts"),
            (lambda d: {**d, "data": d["data"] * 2}, "14 vectors for 7 texts"),
            (lambda d: {**d, "data": None}, "no list of vectors for 7 texts"),
            (lambda d: {"error": {"message": "no"}}, "has no 'data'"),
            (lambda d: [d], "has no 'data'"),
            (first(lambda item: item.pop("index")), "has no 'index'"),
            (first(lambda item: item.update(index=1)), "index 1 is repeated"),
            (first(lambda item: item.update(index=7)), "index 7 is repeated or not in 0..6"),
            (first(lambda item: item.update(index=False)), "index False"),
            (first(lambda item: item.pop("embedding")), "has no 'embedding'"),
            (first(lambda item: item.update(embedding=[])), "where the vector of text 1 belongs"),
            (first(lambda item: item.update(embedding=["1"] * 8)), "where the vector of text 1 belongs"),
            (first(lambda item: item.update(embedding=[[1.0] * 8])), "where the vector of text 1 belongs"),
            (first(lambda item: item.update(embedding=[1.0] * 7)), "dimension 7 and 8 side by side"),
            (first(lambda item: item["embedding"].__setitem__(0, float("nan"))), "NaN or infinity"),
            (first(lambda item: item["embedding"].__setitem__(0, float("inf"))), "NaN or infinity"),
            (first(lambda item: item["embedding"].__setitem__(0, 10**3999)), "NaN or infinity"),
        ],
    )
    def test_an_answer_of_another_form_is_refused(self, endpoint, change, reason):
        endpoint.script = [endpoint.changed(change)]
        asked = embedder(endpoint)
        with pytest.raises(EmbedderError, match=r"openai/tiny at ") as raised:
            asked.embed(TEXTS)

        assert reason in str(raised.value)
        assert asked.waited == []

    @pytest.mark.parametrize("change", [lambda d: {**d, "embeddings": d["embeddings"]["float"]}, lambda d: {}])
    def test_coheres_answer_of_another_form_is_refused(self, endpoint, change):
        endpoint.script = [endpoint.changed(change)]
        with pytest.raises(EmbedderError, match=r"has no '(float|embeddings)'"):
            embedder(endpoint, "cohere").embed(TEXTS)

    def test_a_wrong_dimension_names_both_and_the_remedy(self, endpoint):
        with pytest.raises(EmbedderError, match=r"1536; set EMBEDDING_DIM=8"):
            embedder(endpoint, dimension=1536).embed(TEXTS)
        asked = embedder(endpoint, dimension=None)  # then the first answer decides
        assert asked.embed(["a"]).shape == (1, 8)
        endpoint.dimension = 9
        with pytest.raises(EmbedderError, match="9, expected 8"):
            asked.embed(["b"])

    @pytest.mark.parametrize("content", [b"<html>not JSON</html>", b"", b"\xff\xfe", b"[" * 100_000, b"{}{}"])
    def test_what_is_not_json_is_named(self, endpoint, content):
        endpoint.script = [endpoint.raw(content)] * 2
        with pytest.raises(EmbedderError, match="whole JSON") as raised:
            embedder(endpoint, attempts=2).embed(["a"])
        assert len(str(raised.value)) < 500

    @pytest.mark.parametrize("body", [b"[]," * 2**20, b'"a",' * 2**20, b"{}," * 2**20, b"0," * 2**22])
    def test_an_answer_that_becomes_much_in_memory_is_refused_in_little(self, endpoint, body):
        endpoint.script = [endpoint.raw(b"[" + body + b"0]")]
        tracemalloc.start()
        try:
            with pytest.raises(EmbedderError):
                embedder(endpoint, attempts=1).embed(["a"])
            assert tracemalloc.get_traced_memory()[1] < 300 * 2**20
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize(
        ("status", "remedy"),
        [
            (400, "check the model 'tiny'"),
            (401, "check OPENAI_API_KEY"),
            (403, "check OPENAI_API_KEY"),
            (404, "check the model 'tiny' and OPENAI_BASE_URL"),
            (302, "it moved; set OPENAI_BASE_URL"),
        ],
    )
    def test_a_refusal_is_not_asked_again_and_names_the_remedy(self, endpoint, status, remedy):
        endpoint.script = [endpoint.status(status, "no\x1b[31m", Location="http://127.0.0.1:9/")]
        with pytest.raises(EmbedderError) as raised:
            embedder(endpoint).embed(["a"])

        assert remedy in str(raised.value)
        assert "\x1b" not in str(raised.value)
        assert len(endpoint.requests) == 1


def chain(error):
    """The error and everything Python keeps behind it, shown or not."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


FAILURES = {
    "echo": lambda e: [e.status(401, f"Incorrect API key provided: {KEY}")],
    "echo as no JSON": lambda e: [e.raw(f"<{KEY}>".encode())] * 2,
    "always 500": lambda e: [e.status(500, f"Bearer {KEY}")] * 2,
    "slow": lambda e: [e.hang] * 2,
    "moved": lambda e: [e.status(302, KEY, Location="http://127.0.0.1:9/")],
}


class TestKeys:
    @pytest.mark.parametrize("failure", [*FAILURES, "closed"])
    def test_the_key_is_in_no_error_no_chain_no_local_and_no_log(self, endpoint, failure, caplog, capfd):
        caplog.set_level(logging.DEBUG)
        asked = embedder(endpoint, timeout=0.3 if failure == "slow" else 10, attempts=2)
        if failure == "closed":
            endpoint.close()
        else:
            endpoint.script = FAILURES[failure](endpoint)
        with pytest.raises(EmbedderError) as raised:
            asked.embed(["a"])

        for error in chain(raised.value):
            assert isinstance(error, EmbedderError), error
            assert KEY not in repr(error) + str(vars(error))
            whole = traceback.TracebackException.from_exception(error, capture_locals=True)
            ours = [frame for frame in whole.stack if "embedders" in frame.filename]
            assert ours
            assert KEY not in "".join(str(frame.locals) for frame in ours if "test_" not in frame.filename)
        assert KEY not in caplog.text
        assert KEY not in "".join(capfd.readouterr())

    def test_the_key_is_in_no_representation_of_its_holders(self, endpoint):
        asked = embedder(endpoint)
        for thing in (asked, asked.settings, asked.settings.key, vars(asked), asked.settings.to_json()):
            assert KEY not in repr(thing) + str(thing) + f"{thing}"
        assert KEY not in asked.identity
        with pytest.raises(TypeError, match="never stored"):
            pickle.dumps(asked.settings)

    @pytest.mark.parametrize("text", ["sk-\u00e9", "sk-a\nb", "sk a", "sk-\x00"])
    def test_a_key_that_fits_no_header_is_refused_without_being_shown(self, text):
        with pytest.raises(ConfigError, match="OPENAI_API_KEY holds characters") as raised:
            detect({"OPENAI_API_KEY": text})
        assert text not in str(raised.value)
        assert Secret(" sk-1\n").reveal() == "sk-1"

    @pytest.mark.parametrize(
        "url",
        [
            f"https://user:{KEY}@example.org/v1",
            f"https://{KEY}@example.org/v1",
            f"https://example.org/v1?key={KEY}",
            f"https://example.org/{KEY}/v1",
            f"https://example.org/v1#{KEY}",
            f"ftp://user:{KEY}@example.org",
        ],
    )
    def test_an_address_that_holds_a_key_is_refused_without_being_shown(self, url):
        with pytest.raises(ConfigError) as raised:
            ApiSettings("openai", url, "tiny", 8, Secret(KEY))
        assert KEY not in str(raised.value)


class TestDetecting:
    """The order and the dimensions are spec-kit's: Voyage 1024, OpenAI 1536, else EMBEDDING_DIM (768)."""

    @pytest.mark.parametrize(
        ("environ", "provider", "dimension"),
        [
            ({"VOYAGE_API_KEY": "v", "OPENAI_API_KEY": "o", "COHERE_API_KEY": "c"}, "voyage", 1024),
            ({"OPENAI_API_KEY": "o", "COHERE_API_KEY": "c"}, "openai", 1536),
            ({"OPENAI_API_KEY": "o", "EMBEDDING_DIM": "384"}, "openai", 1536),
            ({}, "local", 768),
            ({"EMBEDDING_DIM": "384"}, "local", 384),
            ({"VOYAGE_API_KEY": " ", "OPENAI_API_KEY": ""}, "local", 768),
            ({"OPENAI_BASE_URL": "http://h:1/v1", "COHERE_API_KEY": "c"}, "local", 768),
            ({"OPENAI_API_KEY": "o", "EMBEDDING_MODEL": "own", "EMBEDDING_DIM": "9"}, "openai", 9),
            ({"EMBEDDING_PROVIDER": "Cohere", "VOYAGE_API_KEY": "v", "COHERE_API_KEY": "c"}, "cohere", 1536),
        ],
    )
    def test_the_provider_and_its_dimension(self, environ, provider, dimension):
        found = detect(environ)
        assert (found.provider, found.dimension) == (provider, dimension)
        assert found.key.reveal() == {"voyage": "v", "openai": "o", "cohere": "c", "local": ""}[provider]

    @pytest.mark.parametrize(
        ("environ", "message"),
        [
            ({"EMBEDDING_PROVIDER": "voyag"}, "did you mean 'voyage'"),
            ({"EMBEDDING_PROVIDER": "openai"}, "OPENAI_API_KEY is not set"),
            ({"EMBEDDING_DIM": "many"}, "EMBEDDING_DIM 'many' is not a number"),
            ({"EMBEDDING_DIM": "0"}, "EMBEDDING_DIM '0' is not a number"),
        ],
    )
    def test_what_cannot_be_is_named_with_the_remedy(self, environ, message):
        with pytest.raises(ConfigError, match=message):
            detect(environ)


class TestWarmth:
    """EchoVault asks Ollama which models are loaded; every other provider counts as warm."""

    @pytest.fixture
    def ollama(self, endpoint, monkeypatch):
        monkeypatch.setattr(settings_module, "OLLAMA_PORT", endpoint.port)
        return ApiEmbedder(ApiSettings("local", endpoint.url, "nomic-embed-text", 8))

    @pytest.mark.parametrize(
        ("asked", "loaded", "warm"),
        [
            ("nomic-embed-text", ["nomic-embed-text:latest"], True),
            ("nomic-embed-text", ["llama3:8b"], False),
            ("nomic-embed-text", [], False),
            ("nomic-embed-text:v1.5", ["nomic-embed-text:latest"], True),  # whatever the tag
            ("nomic-embed-text:v1.5", ["llama3:v1.5"], False),
        ],
    )
    def test_ollama_is_warm_when_it_lists_the_model(self, endpoint, ollama, asked, loaded, warm, monkeypatch):
        monkeypatch.setattr("steelyard.extensions.models.api.PROBE", 20.0)  # seconds, on a busy machine
        endpoint.loaded = loaded
        assert ApiEmbedder(ApiSettings("local", endpoint.url, asked, 8)).warm() is warm
        assert [path for path, _, _ in endpoint.requests] == ["/api/ps"]
        assert embedder(endpoint).warm()  # another provider is not asked
        assert len(endpoint.requests) == 1

    @pytest.mark.parametrize("failure", ["hang", "status", "raw", "shape", "closed"])
    def test_any_failure_is_cold(self, endpoint, ollama, failure):
        steps = {
            "hang": endpoint.hang,
            "status": endpoint.status(500, "{}"),
            "raw": endpoint.raw(b"<html>"),
            "shape": endpoint.raw(b'{"models": [1]}'),
        }
        endpoint.script = [steps[failure]] if failure in steps else []
        if failure == "closed":
            endpoint.close()
        assert ollama.warm() is False


def test_a_missing_extra_is_named(endpoint, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tenacity", None)
    with pytest.raises(MachineError, match=rf"openai/tiny needs tenacity.*{re.escape(installing('api'))}"):
        embedder(endpoint).embed(["a"])


class Shaped:
    """An embedder whose answer has a given shape, whatever it is asked."""

    model = "shaped"

    def __init__(self, *shape):
        self.shape = shape

    def embed(self, texts, kind="entry"):
        return np.ones(self.shape, dtype=np.float32)


@pytest.mark.parametrize("shape", [(2,), (2, 3, 4), (1, 3), (3, 3), (2, 0)])
def test_an_array_that_has_not_one_row_for_each_text_is_refused(shape):
    assert embed_checked(Shaped(2, 3), ["a", "b"]).shape == (2, 3)
    with pytest.raises(EmbedderError, match="returns one row"):
        embed_checked(Shaped(*shape), ["a", "b"])


def test_recorded_vectors_need_no_loading_and_one_that_is_missing_is_told():
    recorded = RecordedEmbedder("tiny", "{text}", {})
    assert recorded.warm()
    with pytest.raises(EmbedderError, match="recorded tiny vector"):
        recorded.embed(["a"])


CACHED_TEXTS = [f"text {at}" for at in range(250)]


class Counting:
    """Vectors made of a text's length and number; fails once it was asked `fails_after` times."""

    model = "counting"
    recipe = None

    def __init__(self, dimension=4, fails_after=None):
        self.dimension, self.fails_after = dimension, fails_after
        self.asked = []

    def embed(self, texts, kind="entry"):
        if self.fails_after is not None and len(self.asked) >= self.fails_after:
            raise EmbedderError("the provider is down")
        self.asked.append((kind, list(texts)))
        return np.array([self.row(text, kind) for text in texts], dtype=np.float32)

    def row(self, text, kind):
        number = float(text.split()[-1])
        return ([number, len(text), float(kind == "query"), 1.0] * 2)[: self.dimension]

    def warm(self):
        return False


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "vectors.db"


def test_a_text_is_asked_for_once(path):
    inner = Counting()
    first = CachedEmbedder(inner, path).embed(["text 1", "text 2", "text 1"])
    again = CachedEmbedder(inner, path).embed(["text 2", "text 3", "text 1"])

    assert inner.asked == [("entry", ["text 1", "text 2"]), ("entry", ["text 3"])]
    assert first.dtype == again.dtype == np.float32
    assert first[:, 0].tolist() == [1, 2, 1]
    assert again[:, 0].tolist() == [2, 3, 1]
    assert CachedEmbedder(inner, path).embed(["text 2", "text 3", "text 1"]).tobytes() == again.tobytes()


def test_queries_other_models_and_other_recipes_have_vectors_of_their_own(path):
    inner = Counting()
    CachedEmbedder(inner, path).embed(["text 1"])
    assert CachedEmbedder(inner, path).embed(["text 1"], "query")[0, 2] == 1
    CachedEmbedder(inner, path, "another address").embed(["text 1"])
    inner.recipe = "{title}"
    CachedEmbedder(inner, path).embed(["text 1"])

    assert [kind for kind, _ in inner.asked] == ["entry", "query", "entry", "entry"]


def test_neither_texts_nor_keys_stand_in_the_file(endpoint, path):
    settings = ApiSettings("openai", endpoint.url, "tiny", 8, Secret(KEY))
    CachedEmbedder(ApiEmbedder(settings), path, ApiEmbedder(settings).identity).embed(["a very private text"])

    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"tiny" in content
    assert KEY.encode() not in content
    assert b"private" not in content
    assert path.stat().st_mode & 0o077 == 0


def test_what_was_embedded_before_a_failure_is_kept(path):
    """Batches of 100: the third fails, two are in the file."""
    inner = Counting(fails_after=2)
    with pytest.raises(EmbedderError, match="provider is down"):
        CachedEmbedder(inner, path).embed(CACHED_TEXTS)
    inner.fails_after = None
    vectors = CachedEmbedder(inner, path).embed(CACHED_TEXTS)

    assert [len(texts) for _, texts in inner.asked] == [100, 100, 50]
    assert vectors[:, 0].tolist() == list(range(250))


def test_an_answer_that_is_no_vectors_is_not_kept(path):
    inner = Counting()
    inner.row = lambda text, kind: [float("nan")] * 4
    with pytest.raises(EmbedderError, match="NaN"):
        CachedEmbedder(inner, path).embed(["text 1"])
    assert CachedEmbedder(Counting(), path).embed(["text 1"])[0, 0] == 1


def test_a_model_that_changed_its_dimension_behind_its_name_is_told(path):
    CachedEmbedder(Counting(), path).embed(["text 1"])
    with pytest.raises(EmbedderError, match=r"dimensions \[4, 5\].*delete"):
        CachedEmbedder(Counting(dimension=5), path).embed(["text 1", "text 2"])


@pytest.mark.parametrize("damage", [b"abc", b"", np.array([np.nan] * 4, dtype=np.float32).tobytes()])
def test_a_damaged_vector_is_asked_for_again(path, damage):
    inner = Counting()
    CachedEmbedder(inner, path).embed(["text 1"])
    with apsw.Connection(str(path)) as db:
        db.execute("UPDATE vectors SET vector = ?", (damage,))
    db.close()

    assert CachedEmbedder(inner, path).embed(["text 1"])[0, 0] == 1
    assert len(inner.asked) == 2


def test_a_file_that_is_no_cache_is_the_environments_fault(path, tmp_path):
    path.parent.mkdir()
    path.write_text("hello " * 1000)
    with pytest.raises(MachineError, match=r"cache .*set STEELYARD_CACHE"):
        CachedEmbedder(Counting(), path).embed(["text 1"])
    assert path.read_text() == "hello " * 1000

    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="use the embedding"):
        CachedEmbedder(Counting(), tmp_path / "file" / "vectors.db").embed(["text 1"])


def test_threads_share_a_cache(path):
    """Eight threads, four on one embedder and four on their own, ask for texts of their own and of others."""
    interval = sys.getswitchinterval()
    inner = Counting()
    shared = CachedEmbedder(inner, path)
    failures = []

    def work(number):
        cached = shared if number % 2 else CachedEmbedder(inner, path)
        for at in range(30):
            texts = [f"text {1000 * number + at}", f"text {1000 * number + 100 + at}", *CACHED_TEXTS[at : at + 3]]
            vectors = cached.embed(texts)
            if vectors[:, 0].tolist() != [float(text.split()[-1]) for text in texts]:
                failures.append(number)

    def guarded(number):
        try:
            work(number)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(8)]
    sys.setswitchinterval(1e-5)  # threads meet more often
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failures == []


WRITER = """
import sys
import numpy as np
from steelyard.embedders.embed import CachedEmbedder

class Numbers:
    model, recipe = "counting", None
    def embed(self, texts, kind="entry"):
        return np.array([[float(t.split()[-1])] * 64 for t in texts], dtype=np.float32)
    def warm(self):
        return True

cached = CachedEmbedder(Numbers(), sys.argv[1])
for at in range(int(sys.argv[2]), int(sys.argv[3])):
    cached.embed([f"text {at}"])
    print(at, flush=True)
"""


def writer(path, begin, end):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(begin), str(end)], stdout=subprocess.PIPE, text=True
    )


def test_processes_share_a_cache(path):
    both = [writer(path, 0, 150), writer(path, 50, 200)]
    for process in both:
        process.communicate(timeout=120)
    assert [process.returncode for process in both] == [0, 0]

    inner = Counting(dimension=1)
    vectors = CachedEmbedder(inner, path).embed(CACHED_TEXTS[:200])
    assert inner.asked == []
    assert vectors[:, 0].tolist() == list(range(200))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_process_that_is_killed_leaves_a_whole_cache(path):
    process = writer(path, 0, 1_000_000)
    for line in process.stdout:
        if int(line) >= 30:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    assert process.wait(timeout=60) == -signal.SIGKILL

    inner = Counting(fails_after=0)
    assert CachedEmbedder(inner, path).embed(CACHED_TEXTS[:31])[:, 0].tolist() == list(range(31))
    with apsw.Connection(str(path)) as db:
        assert next(db.execute("PRAGMA integrity_check"))[0] == "ok"
    db.close()
