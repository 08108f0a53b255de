"""What is compared: labels, and what is left of a configuration on a data set."""

import re
import shutil
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import steelyard_eval as sy
from steelyard.base.errors import ConfigError, RerankError
from steelyard.base.extensions import installing
from steelyard.config import RerankConfig, open_reranker
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.cli.main import main
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import Contender, distinct, read_all, usable
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording import workspace
from steelyard_eval.recording.workspace import Workspace


@pytest.fixture(scope="module")
def without_vectors():
    return Workspace.open(load(starter()), "none")


def contenders(systems, strategies, limit, model):
    named = distinct(read_all([*systems, *strategies]))
    return [Contender(one.label, one.config(Setting(limit, model)), one.kind) for one in named]


def test_labels_are_names_without_the_default_profile_and_strategies_in_full():
    found = contenders(["bm25:documented", "soleri:shipped"], ["rrf(fts,bm25)"], 7, "minilm")

    assert [row.label for row in found] == ["bm25", "soleri:shipped", "rrf(fts, bm25, k=60)"]
    assert {row.config.limit for row in found} == {7}
    assert [row.config.name for row in found] == ["bm25:documented", "soleri:shipped", "plain:documented"]


@pytest.mark.parametrize(
    ("systems", "strategies", "message"),
    [
        (["bm25", "bm25:documented"], [], "bm25 is named twice"),
        ([], ["rrf(fts, bm25)", "rrf(fts,bm25,k=60)"], "is named twice"),
        ([], [], "there is nothing to compare"),
        (["bm52", "vectr"], [], "'bm52'.*'bm25'.*'vectr'.*'vector'"),
    ],
)
def test_what_cannot_be_compared_is_told(systems, strategies, message):
    with pytest.raises(ConfigError, match=message):
        contenders(systems, strategies, 10, "minilm")


def test_a_re_ranker_that_nobody_is_leaves_its_stage_out_and_is_told(without_vectors, monkeypatch):
    """As in live search; a provider that was named and has no key is an error in both."""

    def gone(config, environ):
        return SimpleNamespace(score=lambda *_: (_ for _ in ()).throw(RerankError("there is no model")))

    for name in ("VOYAGE_API_KEY", "COHERE_API_KEY", "CROSS_ENCODER_PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(workspace, "open_reranker", gone)
    config = find_system("spec_kit").config(10, environ={"ENABLE_CROSS_ENCODER": "true"})
    left, notices = usable(without_vectors, Contender("spec_kit", config, "system"))
    assert [str(stage) for stage in left.config.finish] == ["cut(10)"]
    assert (notices[-1].key, notices[-1].facts["label"]) == ("not_reranked", "spec_kit")
    monkeypatch.setenv("VOYAGE_API_KEY", "key")
    assert usable(without_vectors, Contender("spec_kit", config, "system"))[0].config.finish == config.finish


def test_a_named_provider_without_its_key_is_an_error_that_speaks_of_providers():
    with pytest.raises(ConfigError, match=r"VOYAGE_API_KEY is not"):
        open_reranker(RerankConfig("voyage"), {})


def test_how_many_queries_end_empty_is_told(tmp_path):
    """Only one of three queries has a word of the corpus."""
    texts = {"a": "keys", "b": "locks", "c": "doors"}
    found = sy.load(
        [{"id": "e", "text": "rotate keys"}], texts, {query: ["e"] for query in texts}, embedder="none"
    )
    (row,) = found.compare("fts", timed=False).result.rows
    assert row.empty == 2


def test_what_a_data_set_cannot_give_is_left_out_and_told(without_vectors):
    [row] = contenders([], ["weighted_sum(0.3*bm25, 0.7*vector, normalize=max)"], 10, "")

    left, notices = usable(without_vectors, row)

    assert str(left.config.strategy) == "weighted_sum(0.3*bm25, normalize=max)"
    assert left.label == row.label
    assert (notices[0].key, notices[0].facts["missing"], notices[0].facts["model"]) == (
        "reduced",
        ["vector"],
        "none",
    )


def test_a_configuration_of_which_nothing_is_left_is_refused(without_vectors):
    [row] = contenders(["vector"], [], 10, "")

    with pytest.raises(ConfigError, match="vector needs vector,"):
        usable(without_vectors, row)


@pytest.mark.parametrize(
    ("embedder", "model", "message"),
    [  # the starter has recorded vectors of minilm; those of an API are in no list of embedders
        ("recorded", "lsa", "those of minilm here; use --embedder lsa, or tune on starter"),
        ("lsa", "minilm", "those of lsa here; use --embedder recorded:minilm, or tune on starter"),
        ("none", "openai/small", "and starter is searched with none here; tune on starter"),
    ],
)
def test_weights_that_were_tuned_with_other_vectors_are_refused(tmp_path, embedder, model, message):
    file = tmp_path / "w.json"
    find_system("plain").config(10, model).save(file)
    data = sy.load(starter(), embedder=embedder)
    with pytest.raises(ConfigError, match=f"w.json was tuned with the vectors of {model}, .*{message}"):
        data.compare([file, "bm25"], timed=False)


def test_a_model_that_is_missing_is_named_with_what_installs_it(tmp_path, monkeypatch):
    monkeypatch.setattr("steelyard_eval.compare.contenders.missing_modules", lambda extra: [extra])
    file = tmp_path / "w.json"
    find_system("plain").config(10, "minilm-int8").save(file)
    data = sy.load(starter(), embedder="none")
    with pytest.raises(ConfigError, match=rf"minilm-int8, which needs {re.escape(installing('onnx'))}, or tune"):
        data.compare([file, "bm25"], timed=False)


@pytest.mark.parametrize("job", ["compare", "explain", "judge", "recommend", "init", "init today", "gate"])
def test_a_command_takes_the_vectors_that_a_weights_file_was_tuned_with(tmp_path, monkeypatch, job):
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(starter(), "mine")
    find_system("plain").config(10, "lsa").with_strategy(parse_strategy("vector")).save(tmp_path / "w.json")
    shutil.copy("w.json", "search-weights.json")  # which init takes where nothing is named
    words = {
        "compare": ["fts", tmp_path / "w.json"],
        "explain": [tmp_path / "w.json"],
        "judge": ["fts", tmp_path / "w.json", "--list"],
        "recommend": ["--current", tmp_path / "w.json", "--out", tmp_path / "new.json"],
        "init": ["--current", "w.json", "--baseline", "b.json", "--workflow", "w.yml"],
        "gate": ["w.json", "--update", "--because", "first"],
        "init today": ["--baseline", "b.json", "--workflow", "w.yml"],
    }[job]
    found = CliRunner().invoke(main, [job.split()[0], folder, *map(str, words)])
    assert (found.exit_code, "was tuned with the vectors" in found.output) == (0, False), found.output
