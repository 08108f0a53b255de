"""system-spec-kit's own configs/search-weights.json: imported, exported, and not taken for ours."""

import json

import pytest
from click.testing import CliRunner

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard.systems.spec_kit.foreign import DEFAULTS, read_foreign, write_foreign
from steelyard_eval.cli.commands.export import export
from steelyard_eval.cli.commands.importing import import_


@pytest.fixture
def theirs():
    """As in systems/spec-kit.md, section 10, with some values changed."""
    return json.loads(json.dumps(DEFAULTS)) | {
        "_comment": "kept",
        "maxTriggersPerMemory": 7,
        "rrfFusion": {"k": 40, "convergenceBonus": 0.2, "graphWeightBoost": 1.2},
    }


def test_what_is_read_is_what_it_says(theirs):
    config = read_foreign(theirs)
    assert str(config.strategy.expr) == "rrf(vector, bm25, 1.2*graph, k=40, bonus=times(0.2))"
    assert (config.rerank.p95_ms, config.rerank.cache_ttl_ms, config.rerank.cache_size) == (500, 300000, 1000)


def test_there_and_back_is_the_same(theirs, tmp_path):
    (tmp_path / "theirs.json").write_text(json.dumps(theirs))
    runner = CliRunner()
    ours, back = tmp_path / "ours.json", tmp_path / "back.json"
    assert runner.invoke(import_, [str(tmp_path / "theirs.json"), str(ours)]).exit_code == 0
    assert runner.invoke(export, [str(ours), "--to", "spec_kit", "--out", str(back)]).exit_code == 0

    written = json.loads(back.read_text())
    about = written.pop("about")
    assert written == theirs
    assert any("only smartRanking and maxTriggersPerMemory" in note for note in about["notes"])
    assert SearchConfig.load(ours).to_json() == json.loads(ours.read_text())


def test_a_system_of_ours_gives_their_defaults():
    assert write_foreign(find_system("spec_kit").config()) == DEFAULTS


def test_it_is_not_taken_for_a_weights_file(theirs, tmp_path):
    (tmp_path / "search-weights.json").write_text(json.dumps(theirs))
    with pytest.raises(ConfigError, match="steelyard import"):
        SearchConfig.load(tmp_path / "search-weights.json")


def test_every_value_of_another_kind_is_named(theirs):
    theirs["rrfFusion"] = {"k": "sixty", "graphWeightBoost": -1}
    theirs["documentTypeMultipliers"] = {"spec": 9}
    with pytest.raises(ConfigError) as caught:
        read_foreign(theirs)
    for name in ("rrfFusion.k", "rrfFusion.graphWeightBoost", "documentTypeMultipliers"):
        assert name in str(caught.value)


@pytest.mark.parametrize(
    "strategy", ["fts", "rrf(vector, 2*bm25)", "rrf(vector, tfidf)", "rrf(vector, bm25, bonus=each(0.1))"]
)
def test_what_it_cannot_say_is_refused(strategy):
    with pytest.raises(ConfigError, match="a weight for graph alone"):
        write_foreign(find_system("spec_kit").config().with_strategy(parse_strategy(strategy)))
