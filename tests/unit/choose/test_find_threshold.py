"""Floors from a data set: from the command to the file and back into search."""

import json
import math
from dataclasses import replace

import pytest

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.finish import Floor, parse_stages
from steelyard.systems import find_system
from steelyard_eval.choose.find_floor import find_floor, promises_of, said_of_floor
from steelyard_eval.cli.main import main
from steelyard_eval.compare import compare
from steelyard_eval.datasets import load

BM25 = "weighted_sum(1*bm25, normalize=theoretical)"
BOTH = {"lost": 0.1, "false": 0.1}
FUSED = "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """60 entries of two words each, 50 queries for a word of one, 24 queries for words that no entry has."""
    return written(tmp_path_factory.mktemp("set") / "mine", [f"nothing{at} whatever" for at in range(24)])


def written(place, unanswerable):
    """The data set with these questions that nothing answers."""
    place.mkdir()
    names = [f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(60)]
    corpus = [{"id": name, "text": f"{name} of the {names[at - 1]}"} for at, name in enumerate(names)]
    asked = [{"id": f"q{at}", "text": f"{name} of"} for at, name in enumerate(names[:50])]
    asked += [{"id": f"n{at}", "text": text, "answerable": False} for at, text in enumerate(unanswerable)]
    for name, rows in (("corpus", corpus), ("queries", asked)):
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "qrels.txt").write_text("".join(f"q{at} 0 {name} 1\n" for at, name in enumerate(names[:50])))
    (place / "dataset.json").write_text(json.dumps({"name": "mine", "licence": "CC0-1.0", "as_of": "2026-01-01"}))
    return place


def test_a_promise_that_holds_as_it_is_needs_no_floor():
    claim = {"name": "false", "measured": 0.02, "share": 0.1, "queries": 60}
    said = said_of_floor(-math.inf, [claim])
    assert said.key == "floor_not_needed"
    assert said.facts == {"measured": 0.02, "share": 0.1, "queries": 60, "sure": 0.9}


def shown_of(result, key="silence"):
    """The rows of a table of a comparison, by column."""
    tables = [table for table in result.tables if table.key == key]
    return [dict(zip(table.columns, row, strict=True)) for table in tables for row in table.rows]


def test_from_labels_to_a_file_that_searches_and_compare_counts_what_is_silent(folder, tmp_path):
    found = find_floor(load(folder), FUSED, {"lost": 0.1}, embedder="lsa")
    assert found.claims[0]["queries"] == 50
    assert found.claims[0]["bound"] <= 0.1
    out = tmp_path / "w.json"
    found.config.save(out)
    again = SearchConfig.load(out)
    assert again == found.config
    assert str(again.finish[-1]).startswith("floor(")
    result = compare(folder, [str(out), "bm25"], embedder="lsa", timed=False).result
    floored, plain = shown_of(result)
    assert (floored["none"], plain["none"]) == (24, 24)
    assert plain["false_answers"] == 0
    assert floored["lost"] <= 0.1
    points = shown_of(result, "floors")
    assert [point["floor_lost"] for point in points] == sorted(point["floor_lost"] for point in points)
    assert points[0]["answered_share"] == 1.0  # the lowest floor is the least score of any list
    assert not [said for said in result.notices if said.key == "other_scale"]
    weights = json.loads(out.read_text())
    weights["provenance"]["floor"]["dataset_sha256"] = "0" * 64
    out.write_text(json.dumps(weights))
    moved = compare(folder, [str(out), "bm25"], embedder="lsa", timed=False)
    assert [said.facts["changed"] for said in moved.result.notices if said.key == "other_scale"] == [True]
    assert "What is shown where nothing fits" in moved.report(tmp_path / "report")[0].read_text()
    assert result.provenance.data.judged == 50


def test_queries_without_an_answer_have_no_ndcg(folder):
    labelled = compare(folder, ["bm25"], embedder="lsa", timed=False)
    assert len(labelled.queries) == 50


def test_every_query_is_asked_once(folder):
    asked = []

    def search(query):
        asked.append(query.id)
        return ["wordaa"]

    result = compare(folder, [search, "bm25"], embedder="none", timed=False).result
    assert sorted(asked) == sorted([*(f"q{at}" for at in range(50)), *(f"n{at}" for at in range(24))])
    assert [(row["none"], row["false_answers"]) for row in shown_of(result)] == [(24, 24), (24, 0)]


def test_both_promises_are_kept_where_questions_without_an_answer_find_little(folder):
    found = find_floor(load(folder), FUSED, BOTH, embedder="lsa")
    lost, false = found.claims
    assert (false["queries"], false["units"], false["measured"]) == (24, 24, 0.0)
    assert found.least is not None
    assert lost["measured"] <= 0.1


def test_promises_that_exclude_each_other_are_told(tmp_path):
    """The unanswerable questions score as the others do, so none of 24 is silenced without losing all of these."""
    alike = [f"word{chr(97 + at)}a of it" for at in range(24)]
    found = find_floor(load(written(tmp_path / "mine", alike)), "vector", BOTH, embedder="lsa")
    assert found.least is None
    assert not [stage for stage in found.config.finish if isinstance(stage, Floor)]
    assert set(found.config.retrievers) == {"vector"}  # and not those that the floor would have read


def test_what_the_floor_reads_never_changes_what_is_ranked(folder):
    with pytest.raises(ConfigError, match=r"finds, so bm25,"):
        find_floor(load(folder), "soleri", BOTH, embedder="lsa")


def test_lists_that_are_all_empty_are_compared(folder):
    never = replace(
        find_system("bm25").config(10, "", {}),
        finish=parse_stages(["at_least(99)", f"floor(0.5, on={BM25})", "cut(10)"]),
    )
    result = compare(folder, [never], embedder="lsa", timed=False).result
    assert (shown_of(result)[0]["lost"], shown_of(result, "floors")) == (0.0, [])


@pytest.mark.parametrize("text", ["lost=0", "wrong=10%", "lost=lots", "lost=200%"])
def test_a_promise_that_is_none_is_refused(text):
    with pytest.raises(ConfigError, match=r"share|can promise"):
        promises_of(text)


def test_tuning_puts_a_floor_into_what_it_writes(folder, tmp_path, capsys):
    out = tmp_path / "w.json"
    words = [
        "tune",
        str(folder),
        FUSED,
        "--embedder",
        "lsa",
        "--floor",
        "lost=10%",
        "--out",
        str(out),
    ]
    assert main(words, standalone_mode=False) in (0, None)
    assert str(SearchConfig.load(out).finish[-1]).startswith("floor(")
    wrong = [*words[:-4], "--floor", "words", "--out", str(out)]
    assert main(wrong, standalone_mode=False) == 2
    assert "write lost=10%" in capsys.readouterr().err
