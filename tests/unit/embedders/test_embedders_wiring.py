"""Commands and searches with embedders that fail in the middle: keywords answer, recordings stop and go on."""

import json
import shutil
from contextlib import closing
from importlib.util import find_spec

import apsw
import numpy as np
import pytest
from shared import STARTER, document as found, done, run, tabled, write_set

from steelyard import Vault, find_system
from steelyard.base.errors import ConfigError, EmbedderError
from steelyard.base.extensions import EXTRAS
from steelyard.embedders.embed import KINDS, UnavailableEmbedder, installed, restore
from steelyard.extensions import models
from steelyard.memory.query import EVERYTHING
from steelyard_eval.datasets import load
from steelyard_eval.recording.workspace import choose_embedder

KEY = "sk-test-0123456789abcdef"
VECTOR = ("--system", "vector")


@pytest.fixture
def openai(endpoint, monkeypatch):
    """The endpoint as OpenAI's, with a key, and searches that do not wait before they try again."""
    own = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": endpoint.url, "EMBEDDING_MODEL": "tiny", "EMBEDDING_DIM": "8"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(models, "LIVE_ATTEMPTS", 1)
    return endpoint


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept") / "indexed"


@pytest.fixture
def indexed(openai, kept, tmp_path):
    """The starter set, indexed by the first test; the others take a copy that names their own endpoint."""
    path, address = tmp_path / "memory.db", kept.with_name("address")
    if not kept.exists():
        done("index", STARTER, path, "--embedder", "api")
        openai.requests.clear()
        address.write_text(openai.url)
        shutil.copytree(tmp_path, kept)
        return path
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    for file, table, column in ((path, "models", "settings"), (tmp_path / "cache/vectors.db", "vectors", "model")):
        with closing(apsw.Connection(str(file))) as db:
            replaced = f"UPDATE {table} SET {column} = replace({column}, ?, ?)"
            db.execute(replaced, (address.read_text(), openai.url))
    return path


def holdings(path):
    """All vectors of a vault, by space."""
    with Vault(path) as vault:
        found = {space: vault.vectors(space, EVERYTHING) for space, _ in vault.spaces()}
    return {space: (ids, vectors.tolist()) for space, (ids, vectors) in found.items()}


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class TestVault:
    def test_a_vault_remembers_its_embedder_and_search_asks_it(self, openai, indexed):
        answer = found("search", indexed, "rotate keys", *VECTOR)
        assert openai.texts == ["rotate keys"]
        assert (answer["embedding_calls"], answer["degraded"], bool(answer["hits"])) == (1, False, True)
        settings = {"provider": "openai", "base_url": openai.url, "model": "tiny", "dimension": 8}
        with Vault(indexed) as vault:
            assert vault.models() == ["openai/tiny"]
            assert vault.load_model("openai/tiny") == ("api", settings, {})

    def test_the_key_is_in_no_file(self, openai, indexed, tmp_path):
        run("index", indexed, "--rebuild")
        run("record", STARTER, tmp_path / "rec", "--systems", "vector", "--embedder", "api")
        run("compare", STARTER, "fts,vector", "--embedder", "api", "--out", tmp_path / "r.json")
        run("report", tmp_path / "r.json", "--out", tmp_path / "report")
        run("tune", STARTER, "rrf(fts, vector)", "--embedder", "api", "--out", tmp_path / "w.json")
        written = files(tmp_path)
        names = {path.name for path in written}
        assert {"memory.db", "vectors.db", "manifest.json", "report.html"} <= names
        assert names & {"w.json", "w.try.json"}
        assert [path for path, content in written.items() if KEY.encode() in content] == []

    def test_an_index_that_breaks_off_says_how_far_it_came_and_goes_on(self, openai, tmp_path, monkeypatch):
        broken, whole = tmp_path / "broken.db", tmp_path / "whole.db"
        index = ("index", STARTER, broken, "--embedder", "api")
        found("index", STARTER, whole, "--embedder", "api")
        openai.script = [*[openai.well] * (len(openai.requests) - 1), openai.status(400, f"no more for {KEY}")]
        monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "empty"))
        result = run(*index)

        assert result.exit_code == 2
        assert "openai/tiny" in result.stderr and "100 of 131" in result.stderr
        assert KEY not in result.output
        assert max(len(ids) for ids, _ in holdings(broken).values()) == 100
        openai.requests.clear()
        monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "another"))  # the vault alone has to know
        found(*index)
        assert 31 <= len(openai.texts) <= 31 * len(holdings(whole))
        assert holdings(broken) == holdings(whole)

    def test_a_reindex_that_breaks_off_leaves_the_vault_as_it_was_and_goes_on(self, openai, indexed, monkeypatch):
        before = holdings(indexed)
        monkeypatch.setenv("EMBEDDING_MODEL", "other")
        openai.script = [openai.well, openai.status(400, "no")]
        assert run("index", indexed, "--rebuild", "--embedder", "api").exit_code == 2
        assert holdings(indexed) == before
        asked = openai.requests[0][2]["input"]
        openai.requests.clear()
        found("index", indexed, "--rebuild", "--embedder", "api")
        assert not set(asked) & set(openai.texts)
        assert {space.model for space in holdings(indexed)} == {"openai/other"}


def test_vectors_of_a_data_set_are_kept_and_their_model_embeds_the_rest(openai, tmp_path):
    """The nearest entry of `which keys` is that whose recorded vector is what the endpoint answers for it."""
    texts = ["rotate the keys", "brew coffee", "retry with jitter"]
    about = {"text_for_embedding": "{text}", "source": {}}
    mine = write_set(tmp_path / "mine", texts, ["which keys"], "q1 0 m2 1\n", **about)
    rows = np.array([openai.vector("tea"), openai.vector("which keys"), [0] * 8], dtype=np.float16)
    np.save(mine / "corpus.tiny.f16.npy", rows)
    answer = run("compare", mine, "vector", "--metrics", "P@1", "--embedder", "api")
    assert "1 of 3 entries" in answer.stderr
    assert sorted(openai.texts) == ["retry with jitter", "which keys"]
    assert "1.000 P@1" in answer.stdout
    openai.requests.clear()
    done("index", mine, tmp_path / "memory.db", "--embedder", "api")
    assert "rotate the keys" not in openai.texts
    assert len(openai.texts) == len(set(openai.texts))  # no text is asked for twice
    np.save(mine / "corpus.tiny.f16.npy", rows[:, :3])
    assert "dimension 3" in done("compare", mine, "vector", "--embedder", "api", code=2).stderr


def test_another_model_of_the_environment_is_refused_before_anything_changes(openai, indexed, monkeypatch):
    before = indexed.read_bytes()
    monkeypatch.setenv("EMBEDDING_MODEL", "other")
    result = run("index", STARTER, indexed)
    assert (result.exit_code, "would use 'openai/other'" in result.stderr) == (2, True)
    assert (openai.requests, indexed.read_bytes()) == ([], before)


class TestSeveralModels:
    @pytest.fixture
    def both(self, openai, indexed):
        """A vault with vectors of openai/tiny, and of lsa beside them."""
        before = holdings(indexed)
        assert found("index", STARTER, indexed, "--embedder", "lsa")["models"] == ["openai/tiny", "lsa"]
        assert before.items() <= holdings(indexed).items()
        assert openai.requests == []
        return indexed

    def test_a_search_uses_the_first_one_unless_another_is_named(self, openai, both):
        ask = ("search", both, "rotate keys", *VECTOR)
        own = found(*ask)
        assert openai.texts == ["rotate keys"]
        other = found(*ask, "--set", "model=lsa")
        assert openai.texts == ["rotate keys"]
        assert other["embedding_calls"] == 1
        assert [hit["score"] for hit in other["hits"]] != [hit["score"] for hit in own["hits"]]
        assert found(*ask, "--set", "model=openai/tiny") == own
        result = run("search", both, "rotate keys", "--set", "model=openai/tin")
        assert (result.exit_code, "model 'openai/tin'; did" in result.stderr) == (2, True)
        assert found("vault", "context", both, "rotate keys", *VECTOR, "--set", "model=lsa")["entries"]

    @tabled
    def test_weights_of_a_model_that_the_vault_lacks_name_both_remedies(self, openai, both, tmp_path, model, add):
        """The data set is the folder of the vault's name, where there is one."""
        data = both.with_suffix("")
        data.mkdir()
        weights = tmp_path / "weights.json"
        find_system("echovault").config(None, model, {}).save(weights)
        notes = found("search", both, "rotate keys", "--weights", weights)["notes"]
        remedies = f"index {data} {both} --embedder {add}", f"recommend {data} --embedder api"
        (said,) = [note for note in notes if f"'{model}'" in note]
        assert [remedy in said for remedy in remedies] == [bool(add)] * 2

    def test_every_model_follows_the_entries_and_one_that_cannot_be_opened_is_named(
        self, openai, both, tmp_path, monkeypatch
    ):
        folder = shutil.copytree(STARTER, tmp_path / "set")
        about = json.loads((folder / "dataset.json").read_text())
        (folder / "dataset.json").write_text(json.dumps(about | {"files": {}}))
        first, *rest = (folder / "corpus.jsonl").read_text().splitlines()

        def index(text, *words):
            changed = json.dumps(json.loads(first) | {"text": text})
            (folder / "corpus.jsonl").write_text("\n".join([changed, *rest]))
            return found("index", folder, both, *words)

        old, name = holdings(both), json.loads(first)["id"]
        counts = index("a new text about keys")
        assert (counts["changed"], counts["stale"]) == (1, [])
        assert any("new text about" in text for text in openai.texts)
        for space, (ids, vectors) in holdings(both).items():
            if space.layer == "text":
                assert len(ids) == 131, space
                assert space not in old or vectors[ids.index(name)] != old[space][1][ids.index(name)]

        monkeypatch.setenv("EMBEDDING_MODEL", "other")
        counts = index("another text", "--embedder", "api")
        assert (counts["stale"], counts["models"]) == (["openai/tiny"], ["openai/tiny", "lsa", "openai/other"])

    def test_a_vault_of_the_version_before_keeps_its_own_model_first(self, tmp_path):
        with Vault(tmp_path / "v.db", create=True) as vault:
            vault.save_model("minilm", "minilm", {}, {})
            vault._db.execute("DELETE FROM meta WHERE key = 'model'")  # as it was written before
            vault.save_model("lsa", "lsa", {}, {})
            assert vault.models() == ["minilm", "lsa"]


class TestForeignVaults:
    """A vault may come from anywhere: keys and queries go only where the environment says."""

    def test_the_key_is_not_sent_to_an_address_the_environment_does_not_name(self, openai, indexed, monkeypatch):
        monkeypatch.delenv("OPENAI_BASE_URL")
        found("search", indexed, "rotate signing keys", "--system", "echovault")
        result = run("search", indexed, "xylophone", "--system", "echovault", "--json")
        assert (openai.requests, json.loads(result.stdout)["degraded"]) == ([], True)
        assert openai.url in result.stderr and "set OPENAI_BASE_URL" in result.stderr

    @tabled
    def test_settings_that_make_no_sense_are_an_embedder_that_fails(self, settings):
        restored = restore("api", settings, {"OPENAI_API_KEY": KEY})
        assert isinstance(restored, UnavailableEmbedder)
        assert restored.warm() is False
        with pytest.raises(EmbedderError):
            restored.embed(["a"])
        with pytest.raises(ConfigError, match="embedder 'telepathy'"):
            restore("telepathy", {}, {})


FAILING = {
    "500": lambda e: e.status(500),
    "slow": lambda e: e.hang,
    "index": lambda e: e.changed(lambda d: {**d, "data": [{**d["data"][0], "index": 5}]}),
    "nan": lambda e: e.changed(lambda d: {"data": [{"index": 0, "embedding": [float("nan")] * 8}]}),
}


@pytest.mark.parametrize("failure", FAILING)
def test_a_search_is_answered_by_keywords_and_says_so_once(openai, indexed, monkeypatch, failure):
    monkeypatch.setattr(models, "LIVE_TIMEOUT", 0.3 if failure == "slow" else 10.0)
    ask = ("search", indexed, "xylophone rotation")
    expected = found(*ask, "--set", "semantic=never")
    openai.script = [FAILING[failure](openai)] * 5
    result = run(*ask, "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["degraded"]) == (0, True)
    assert [hit["id"] for hit in answer["hits"]] == [hit["id"] for hit in expected["hits"]]
    assert result.stderr.count("warning: ") == 1
    assert "answer alone: openai/tiny" in result.stderr
    assert KEY not in result.output


class TestRecording:
    def test_a_recording_that_breaks_off_says_how_far_it_came_and_goes_on(self, openai, tmp_path, monkeypatch):
        command = ("record", STARTER, tmp_path / "rec", "--systems", "vector", "--embedder", "api")
        monkeypatch.setattr("steelyard.live.search.QUERIES_PER_BLOCK", 10)  # queries are embedded in blocks
        openai.script = [openai.well] * 3 + [openai.status(400)]
        result = run(*command)

        assert result.exit_code == 2
        assert "10 of 59" in result.stderr
        assert not (tmp_path / "rec").exists() or not any((tmp_path / "rec").iterdir())
        asked = set(openai.texts[:-10])
        openai.requests.clear()

        assert run(*command).exit_code == 0
        assert not asked & set(openai.texts)
        assert len(openai.texts) == 59 - 10
        monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "other"))
        assert run(*command[:2], tmp_path / "whole", *command[3:]).exit_code == 0
        assert files(tmp_path / "rec") == files(tmp_path / "whole")

    def test_one_of_several_recorded_models_is_named(self, tmp_path):
        folder = tmp_path / "set"
        shutil.copytree(STARTER, folder)
        for file in list(folder.glob("*.minilm.*")):  # another space, in which the same entries are near
            np.save(folder / file.name.replace(".minilm.", ".another."), np.load(file)[:, ::-1].copy())
        for chosen, model in (((), "another"), (("--embedder", "recorded:minilm"), "minilm")):
            assert found("compare", folder, "vector", *chosen)["provenance"]["model"] == model
        refused = run("compare", folder, "--embedder", "recorded:e5")
        assert (refused.exit_code, "vectors of 'e5';" in refused.stderr) == (2, True)
        with pytest.raises(ConfigError, match="unknown embedder 'lsa:e5'"):
            choose_embedder(load(folder), "lsa:e5")


@pytest.mark.parametrize("kind", ["minilm-int8", "wordllama"])
def test_a_model_on_this_machine_indexes_and_searches(endpoint, tmp_path, kind):
    missing = [module for module in EXTRAS[KINDS[kind]] if find_spec(module) is None]
    assert (kind in installed()) == (not missing)
    if missing:
        pytest.skip(f"the extra {KINDS[kind]} is not installed: {', '.join(missing)}")
    corpus = [json.loads(line) for line in (STARTER / "corpus.jsonl").read_text().splitlines()[:12]]
    recipe = {"text_for_embedding": "{title}\n{text}"}
    folder = write_set(tmp_path / "set", corpus, ["keys"], f"q1 0 {corpus[0]['id']} 1\n", **recipe)
    found("index", folder, tmp_path / "v.db", "--embedder", kind)
    with Vault(tmp_path / "v.db") as vault:
        assert [vault.load_model(name)[:2] for name in vault.models()] == [(kind, {})]
    hits = found("search", tmp_path / "v.db", corpus[7]["title"], *VECTOR)["hits"]
    assert (hits[0]["id"], endpoint.requests) == (corpus[7]["id"], [])
