"""system-spec-kit's own configs/search-weights.json: imported, exported, and not taken for ours."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.extensions.spec_kit_file import DEFAULTS, read_foreign, write_foreign
from steelyard.fusion import parse_strategy
from steelyard.grammar import parse_call
from steelyard.systems import find_system
from steelyard_eval.cli.main import main
from steelyard_eval.export import TARGETS


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
    assert runner.invoke(main, ["import", str(tmp_path / "theirs.json"), str(ours)]).exit_code == 0
    assert runner.invoke(main, ["export", str(ours), "--to", "spec_kit", "--out", str(back)]).exit_code == 0

    written = json.loads(back.read_text())
    about = written.pop("about")
    assert written == theirs
    assert any("smartRanking and maxTriggersPerMemory" in note for note in about["notes"])
    assert SearchConfig.load(ours).to_json() == json.loads(ours.read_text())


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


FUSED = "rrf(vector, bm25, 1.5*graph, k=60, bonus=times(0.1))"


@pytest.mark.parametrize(
    ("strategy", "lost"),
    [
        ("fts", "fts alone, a score without promised"),
        ("boost(weighted_sum(0.5*vector, 0.5*bm25, normalize=max), promised)", "weighted_sum(...)"),
        ("boost(rrf(vector, 2*bm25), promised)", "2*bm25"),
        ("boost(rrf(vector, tfidf), promised)", "tfidf, a fusion without bm25"),
        ("boost(rrf(vector, fts), promised)", "fts, a fusion without bm25"),
        ("boost(rrf(vector, bm25, 0*graph), promised)", "a list with the weight 0, or twice"),
        ("boost(rrf(vector, bm25, bonus=each(0.1)), promised)", "bonus=each(0.1)"),
        (f"boost({FUSED}, promised, 0.5*decay)", "0.5*decay"),
        (f"boost({FUSED}, 2*promised, 0.5*document_type)", "2*promised, 0.5*document_type"),
        (FUSED, "a score without promised"),
    ],
)
def test_what_it_cannot_say_is_refused_by_name(strategy, lost):
    """It never says more than the strategy does: its program always promotes what an intent promises."""
    with pytest.raises(ConfigError) as told:
        write_foreign(find_system("spec_kit").config().with_strategy(parse_strategy(strategy)))
    assert str(told.value).endswith(f"it has no words for {lost}")


@pytest.mark.parametrize("fused", [FUSED, "rrf(vector, bm25, k=60)", "rrf(bm25, 0.25*graph, vector, k=5)"])
@pytest.mark.parametrize("factors", ["promised, document_type", "promised, 0*document_type, 0*decay"])
def test_what_is_exported_comes_back(fused, factors, tmp_path):
    """The only file of other systems that is read: the same terms, weights and settings, or a note on the rest."""
    config = find_system("spec_kit").config(7).with_strategy(parse_strategy(f"boost({fused}, {factors})"))
    config.save(tmp_path / "ours.json")
    runner, theirs, back = CliRunner(), tmp_path / "theirs.json", tmp_path / "back.json"
    assert (
        runner.invoke(
            main, ["export", str(tmp_path / "ours.json"), "--to", "spec_kit", "--out", str(theirs)]
        ).exit_code
        == 0
    )
    assert runner.invoke(main, ["import", str(theirs), str(back)]).exit_code == 0

    read = SearchConfig.load(back)
    assert terms(read.strategy) == terms(config.strategy)
    notes = json.loads(theirs.read_text())["about"]["notes"]
    assert [note for note in notes if "in the file" in note] == [
        "not in the file: limit is 7, which comes back as 20"
    ]


def terms(strategy):
    """The lists and the factors that count, in no order, with the options of the fusion."""
    fused, *factors = parse_call(str(strategy)).call.items
    return {str(item) for item in (*fused.call.items, *factors) if item.weight != 0}, fused.call.options


def test_every_setting_that_does_not_come_back_is_named():
    config = find_system("spec_kit").config(
        20, environ={"ENABLE_CROSS_ENCODER": "true", "ENABLE_FUZZY_MATCH": "false"}
    )
    shallow = replace(config.retrievers["vector"], depth=5)
    config = replace(config, retrievers={**config.retrievers, "vector": shallow})
    notes = TARGETS["spec_kit"].write(config)[1]
    lost = [note.partition(": ")[2].replace(", which comes back as ", " is ").split(" is ") for note in notes[1:]]
    assert lost == [
        ["finish", "rerank(20, penalty=length)", "cut alone"],
        ["retrievers.vector.depth", "5", "20"],
        ["rewrite", "False", "True"],
    ]
