"""Embedders over HTTP against an endpoint that misbehaves, and the cache: nothing is asked for twice."""

import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from types import SimpleNamespace

import apsw
import numpy as np
import pytest
from shared import tabled

from steelyard.base.errors import ConfigError, EmbedderError, MachineError
from steelyard.base.extensions import installing
from steelyard.embedders.embed import CachedEmbedder, RecordedEmbedder, embed_checked
from steelyard.extensions.models import ApiEmbedder, ApiSettings, Secret, detect, settings as settings_module

KEY = "sk-test-0123456789abcdef"
TEXTS = [f"text {at}" for at in range(7)]


def embedder(endpoint, provider="openai", dimension=8, **how):
    waited = []
    settings = ApiSettings(provider, endpoint.url, "tiny", dimension, Secret(KEY))
    made = ApiEmbedder(settings, sleep=waited.append, **{"timeout": 5.0, **how})
    made.waited = waited
    return made


def first(without=None, **values):
    """The right answer with other values of its first item, or without one."""
    return lambda d: {"data": [{k: v for k, v in (d["data"][0] | values).items() if k != without}, *d["data"][1:]]}


class TestAsking:
    @tabled
    def test_each_provider_is_asked_in_its_own_shape(self, endpoint, provider, path, entry, query):
        """The order of the vectors is that of their index, however the answer is sorted."""
        backwards = endpoint.changed(lambda d: d | ({"data": d["data"][::-1]} if "data" in d else {}))
        endpoint.script = [backwards]
        asked = embedder(endpoint, provider)
        for kind in ("entry", "query"):
            np.testing.assert_allclose(asked.embed(TEXTS, kind), endpoint.expected(TEXTS), atol=1e-6)
        (one, headers, body), (_, _, again) = endpoint.requests
        assert (one, headers["Authorization"], body["model"]) == (path, f"Bearer {KEY}", "tiny")
        assert entry.items() <= body.items()
        assert query.items() <= again.items()
        assert body["texts" if provider == "cohere" else "input"] == TEXTS

    @pytest.mark.parametrize(("provider", "most"), [("openai", 128), ("voyage", 128), ("cohere", 96)])
    def test_no_request_holds_more_texts_than_the_provider_takes(self, endpoint, provider, most):
        texts = [f"text {at}" for at in range(2 * most + 5)]
        np.testing.assert_allclose(embedder(endpoint, provider).embed(texts), endpoint.expected(texts), atol=1e-6)
        sizes = [len(body.get("input", body.get("texts"))) for _, _, body in endpoint.requests]
        assert sizes == [most, most, 5]

    def test_no_request_holds_more_characters_than_the_provider_takes_and_long_texts_are_cut(self, endpoint):
        """400,000 in a request and 24,000 of a text: 16 of them."""
        embedder(endpoint).embed(["x" * 30_000] * 40)
        sizes = [[len(text) for text in body["input"]] for _, _, body in endpoint.requests]
        assert sizes == [[24_000] * 16, [24_000] * 16, [24_000] * 8]

    def test_blank_texts_are_zeros_and_are_not_sent(self, endpoint):
        for texts in (["", "a", " \n\t"], ["", " "], []):
            vectors = embedder(endpoint).embed(texts)
            assert (vectors.any(axis=1).tolist(), vectors.shape[1]) == ([text == "a" for text in texts], 8)
        assert (endpoint.texts, len(endpoint.requests)) == (["a"], 1)


class TestTryingAgain:
    @pytest.mark.parametrize("failure", [408, 425, 429, 500, 504, "cut", b'{"data": [{"index": 0, "emb'])
    def test_a_failure_that_may_pass_is_asked_again(self, endpoint, failure):
        step = endpoint.status(failure) if isinstance(failure, int) else endpoint.raw(failure)
        endpoint.script = [endpoint.cut if failure == "cut" else step] * 2
        asked = embedder(endpoint)
        np.testing.assert_allclose(asked.embed(TEXTS), endpoint.expected(TEXTS), atol=1e-6)
        assert (len(endpoint.requests), len(asked.waited)) == (3, 2)

    def test_pauses_double_from_half_a_second_with_less_than_half_a_second_of_jitter(self, endpoint):
        endpoint.script = [endpoint.status(500)] * 9
        asked = embedder(endpoint, attempts=10)
        asked.embed(["a"])
        for pause, low in zip(asked.waited, [0.5, 1, 2, 4, 8, 16, 30, 30, 30], strict=True):
            assert low <= pause <= low + 0.5

    @pytest.mark.parametrize(
        ("wish", "least", "most"),
        [("7", 7, 7), (timedelta(seconds=40), 10, 40)]
        + [(odd, 0.5, 1) for odd in ("soon", "-1", "\u00b2", "9" * 5000, "1e9", "nan", "0" * 60_000)]
        + [("Thu, 99 Foo 2026", 0.5, 1)],
    )
    def test_the_server_says_how_long_to_wait_and_an_odd_wish_is_none(self, endpoint, wish, least, most):
        if isinstance(wish, timedelta):
            wish = format_datetime(datetime.now(UTC) + wish, usegmt=True)
        endpoint.script = [endpoint.status(503, Retry_After=wish)]
        asked = embedder(endpoint)
        asked.embed(["a"])
        (pause,) = asked.waited
        assert least <= pause <= most

    @pytest.mark.parametrize(
        ("failure", "told", "requests", "pauses"),
        [
            (lambda e: e.status(429, Retry_After="3600"), "wait 3600 s;", 1, 0),  # an hour is not waited for
            (lambda e: e.status(500, "out of cheese"), r"cheese'.*\(asked 3 times\)", 3, 2),
            (lambda e: e.hang, r"0.2 s.*\(asked 3", None, 2),  # a busy server reads the last one later
            (lambda e: e.drip, r"0.2 s.*\(asked 3", None, 2),
            (lambda e: e.close(), "server, set OPENAI_BASE_URL", 0, 2),
        ],
    )
    def test_it_gives_up_after_the_attempts_and_says_why(self, endpoint, failure, told, requests, pauses):
        endpoint.script = [failure(endpoint)] * 9
        asked = embedder(endpoint, "local", attempts=3, timeout=0.2 if "0.2" in told else 5)
        with pytest.raises(EmbedderError, match=told):
            asked.embed(["a"])
        assert requests in (None, len(endpoint.requests))
        assert len(asked.waited) == pauses


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
            (first(embedding=[1.0] * 7), "different dimensions, 7 and 8"),
            *((first(without=name), f"has no '{name}'") for name in ("index", "embedding")),
            *((first(index=at), f"index {at} is repeated or not in 0..6") for at in (1, 7, False)),
            *((first(embedding=row), "instead of the vector of text 1") for row in ([], ["1"] * 8, [[1.0] * 8])),
            *((first(embedding=[v] * 8), "NaN or infinity") for v in (float("nan"), float("inf"), 10**3999)),
        ],
    )
    def test_an_answer_of_another_form_is_refused(self, endpoint, change, reason):
        endpoint.script = [endpoint.changed(change)]
        asked = embedder(endpoint)
        with pytest.raises(EmbedderError, match=r"openai/tiny at ") as raised:
            asked.embed(TEXTS)
        assert (reason in str(raised.value), asked.waited) == (True, [])

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
        with pytest.raises(EmbedderError, match="complete JSON") as raised:
            embedder(endpoint, attempts=2).embed(["a"])
        assert len(str(raised.value)) < 500

    @tabled
    def test_a_refusal_is_not_asked_again_and_names_the_remedy(self, endpoint, status, remedy):
        endpoint.script = [endpoint.status(status, "no\x1b[31m", Location="http://127.0.0.1:9/")]
        with pytest.raises(EmbedderError) as raised:
            embedder(endpoint).embed(["a"])
        told = str(raised.value)
        assert (remedy in told, told.isprintable(), len(endpoint.requests)) == (True, True, 1)


FAILURES = {
    "echo": lambda e: e.status(401, f"Incorrect API key provided: {KEY}"),
    "echo as no JSON": lambda e: e.raw(f"<{KEY}>".encode()),
    "always 500": lambda e: e.status(500, f"Bearer {KEY}"),
    "slow": lambda e: e.hang,
    "moved": lambda e: e.status(302, KEY, Location="http://127.0.0.1:9/"),
    "closed": lambda e: e.close(),
}


class TestKeys:
    @pytest.mark.parametrize("failure", FAILURES)
    def test_the_key_is_in_no_error_no_chain_no_local_and_no_log(self, endpoint, failure, caplog, capfd):
        caplog.set_level(logging.DEBUG)
        asked = embedder(endpoint, timeout=0.3 if failure == "slow" else 10, attempts=2)
        endpoint.script = [FAILURES[failure](endpoint)] * 2
        with pytest.raises(EmbedderError) as raised:
            asked.embed(["a"])
        error = raised.value
        while error is not None:  # and everything Python keeps behind it, shown or not
            assert isinstance(error, EmbedderError), error
            assert KEY not in repr(error) + str(vars(error))
            whole = traceback.TracebackException.from_exception(error, capture_locals=True)
            ours = [frame for frame in whole.stack if "embedders" in frame.filename]
            assert ours
            assert KEY not in "".join(str(frame.locals) for frame in ours if "test_" not in frame.filename)
            error = error.__cause__ or error.__context__
        assert KEY not in caplog.text + "".join(capfd.readouterr())

    def test_the_key_is_in_no_representation_of_its_holders(self, endpoint):
        asked = embedder(endpoint)
        own = asked.settings
        for thing in (asked, own, own.key, vars(asked), own.to_json(), asked.identity):
            assert KEY not in repr(thing) + str(thing) + f"{thing}"
        with pytest.raises(TypeError, match="never stored"):
            pickle.dumps(asked.settings)

    @pytest.mark.parametrize("text", ["sk-\u00e9", "sk-a\nb", "sk a", "sk-\x00"])
    def test_a_key_that_fits_no_header_is_refused_without_being_shown(self, text):
        with pytest.raises(ConfigError, match="OPENAI_API_KEY holds characters") as raised:
            detect({"OPENAI_API_KEY": text})
        assert text not in str(raised.value)
        assert Secret(" sk-1\n").reveal() == "sk-1"

    @tabled
    def test_an_address_that_holds_a_key_is_refused_without_being_shown(self, url):
        with pytest.raises(ConfigError) as raised:
            ApiSettings("openai", url, "tiny", 8, Secret(KEY))
        assert KEY not in str(raised.value)


class TestDetecting:
    """The order and the dimensions are spec-kit's: Voyage 1024, OpenAI 1536, else EMBEDDING_DIM (768)."""

    @tabled
    def test_the_provider_and_its_dimension(self, environ, provider, dimension):
        found = detect(environ)
        assert (found.provider, found.dimension) == (provider, dimension)
        assert found.key.reveal() == {"voyage": "v", "openai": "o", "cohere": "c", "local": ""}[provider]

    @tabled
    def test_what_cannot_be_is_named_with_the_remedy(self, environ, message):
        with pytest.raises(ConfigError, match=message):
            detect(environ)


class TestWarmth:
    """EchoVault asks Ollama which models are loaded; every other provider counts as warm."""

    @pytest.fixture
    def ollama(self, endpoint, monkeypatch):
        monkeypatch.setattr(settings_module, "OLLAMA_PORT", endpoint.port)
        return ApiEmbedder(ApiSettings("local", endpoint.url, "nomic-embed-text", 8))

    @tabled
    def test_ollama_is_warm_when_it_lists_the_model(self, endpoint, ollama, asked, loaded, warm, monkeypatch):
        monkeypatch.setattr("steelyard.extensions.models.api.PROBE", 20.0)  # seconds, on a busy machine
        endpoint.loaded = loaded
        assert ApiEmbedder(ApiSettings("local", endpoint.url, asked, 8)).warm() is warm
        assert embedder(endpoint).warm()  # another provider is not asked
        assert [path for path, _, _ in endpoint.requests] == ["/api/ps"]

    @pytest.mark.parametrize("failure", ["hang", "close", 500, b"<html>", b'{"models": [1]}'])
    def test_any_failure_is_cold(self, endpoint, ollama, failure):
        if failure == "close":
            endpoint.close()
        steps = {"hang": endpoint.hang, 500: endpoint.status(500, "{}")}
        endpoint.script = [steps.get(failure) or endpoint.raw(failure)]
        assert ollama.warm() is False


def test_a_missing_extra_is_named(endpoint, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tenacity", None)
    with pytest.raises(MachineError, match=rf"openai/tiny needs tenacity.*{re.escape(installing('api'))}"):
        embedder(endpoint).embed(["a"])


@pytest.mark.parametrize("shape", [(2,), (2, 3, 4), (1, 3), (3, 3), (2, 0)])
def test_an_array_that_has_not_one_row_for_each_text_is_refused(shape):
    answering = SimpleNamespace(model="shaped", embed=lambda texts, kind: np.ones((2, 3), dtype=np.float32))
    assert embed_checked(answering, ["a", "b"]).shape == (2, 3)
    answering.embed = lambda texts, kind: np.ones(shape, dtype=np.float32)
    with pytest.raises(EmbedderError, match="returns one row"):
        embed_checked(answering, ["a", "b"])


def test_recorded_vectors_need_no_loading_and_one_that_is_missing_is_told():
    recorded = RecordedEmbedder("tiny", "{text}", {})
    assert recorded.warm()
    with pytest.raises(EmbedderError, match="recorded tiny vector"):
        recorded.embed(["a"])


CACHED_TEXTS = [f"text {at}" for at in range(250)]


class Counting:
    """Vectors made of a text's length and number; fails once it was asked `fails_after` times."""

    model, recipe = "counting", None

    def __init__(self, dimension=4, fails_after=1_000_000):
        self.dimension, self.fails_after, self.asked = dimension, fails_after, []

    def embed(self, texts, kind="entry"):
        if len(self.asked) >= self.fails_after:
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
    again, whole = (CachedEmbedder(inner, path).embed(["text 2", "text 3", "text 1"]) for _ in range(2))
    assert inner.asked == [("entry", ["text 1", "text 2"]), ("entry", ["text 3"])]
    assert first.dtype == again.dtype == np.float32
    assert (first[:, 0].tolist(), again[:, 0].tolist()) == ([1, 2, 1], [2, 3, 1])
    assert whole.tobytes() == again.tobytes()


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
    assert [word in content for word in (b"tiny", KEY.encode(), b"private")] == [True, False, False]
    assert path.stat().st_mode & 0o077 == 0


def test_what_was_embedded_before_a_failure_is_kept(path):
    """Batches of 100: the third fails, two are in the file."""
    inner = Counting(fails_after=2)
    with pytest.raises(EmbedderError, match="provider is down"):
        CachedEmbedder(inner, path).embed(CACHED_TEXTS)
    inner.fails_after = 99
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


def test_a_file_that_is_no_cache_is_the_environments_fault(path):
    path.parent.mkdir()
    path.write_text("hello " * 1000)
    for file, told in ((path, r"cache .*set STEELYARD_CACHE"), (path / "vectors.db", "use the embedding")):
        with pytest.raises(MachineError, match=told):
            CachedEmbedder(Counting(), file).embed(["text 1"])
    assert path.read_text() == "hello " * 1000


def test_threads_share_a_cache(path, request):
    """Eight threads, four on one embedder and four on their own, ask for texts of their own and of others."""
    inner = Counting()
    shared = CachedEmbedder(inner, path)

    def right(number):
        cached = shared if number % 2 else CachedEmbedder(inner, path)
        for at in range(30):
            texts = [f"text {1000 * number + at}", f"text {1000 * number + 100 + at}", *CACHED_TEXTS[at : at + 3]]
            vectors = cached.embed(texts)
            assert vectors[:, 0].tolist() == [float(text.split()[-1]) for text in texts]
        return True

    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-5)  # threads meet more often
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(right, range(8)))


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
    words = [sys.executable, "-c", WRITER, path, str(begin), str(end)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_processes_share_a_cache(path):
    both = [writer(path, 0, 150), writer(path, 50, 200)]
    for process in both:
        process.communicate(timeout=120)
    assert [process.returncode for process in both] == [0, 0]
    vectors = CachedEmbedder(Counting(fails_after=0), path).embed(CACHED_TEXTS[:200])
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
