"""Floors from a data set: from the command to the file and back into search."""

import json

import pytest

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard_eval.cli.main import main
from steelyard_eval.compare import compare
from steelyard_eval.tune.floor import find_floor, promises_of

FUSED = "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """60 entries of two words each, 50 queries for a word of one, 24 queries for words that no entry has."""
    place = tmp_path_factory.mktemp("set") / "mine"
    place.mkdir()
    names = [f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(60)]
    corpus = [{"id": name, "text": f"{name} of the {names[at - 1]}"} for at, name in enumerate(names)]
    asked = [{"id": f"q{at}", "text": f"{name} of"} for at, name in enumerate(names[:50])]
    asked += [{"id": f"n{at}", "text": f"nothing{at} whatever", "answerable": False} for at in range(24)]
    for name, rows in (("corpus", corpus), ("queries", asked)):
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "qrels.txt").write_text("".join(f"q{at} 0 {name} 1\n" for at, name in enumerate(names[:50])))
    (place / "dataset.json").write_text(json.dumps({"name": "mine", "licence": "CC0-1.0", "as_of": "2026-01-01"}))
    return place


def test_from_labels_to_a_file_that_searches(folder, tmp_path):
    found = find_floor(folder, FUSED, embedder="lsa")
    assert found.record["claims"][0]["queries"] == 50
    assert found.record["claims"][0]["bound"] <= 0.1
    found.save_weights(tmp_path / "w.json")
    again = SearchConfig.load(tmp_path / "w.json")
    assert again == found.config
    assert str(again.finish[-1]).startswith("floor(")
    kinds = {row["questions"]: row for row in found.record["questions"]}
    assert kinds["answerable"]["answered"] >= 0.9
    assert kinds["no answer"]["answered"] == 0.0  # no word of theirs is anywhere


def test_the_command_writes_the_file_and_compare_counts_what_is_silent(folder, tmp_path, capsys):
    out = tmp_path / "w.json"
    assert main(["floor", str(folder), FUSED, "--embedder", "lsa", "--out", str(out)], standalone_mode=False) in (
        0,
        None,
    )
    assert "loses at most 10% of the relevant entries, 90% sure, from your 50 labels" in capsys.readouterr().out
    record = compare(folder, [str(out), "bm25"], embedder="lsa", timed=False).to_json()
    floored, plain = record["silence"]
    assert (floored["none"], plain["none"]) == (24, 24)
    assert plain["false_answers"] == 0
    assert floored["lost"] <= 0.1
    assert [point["lost"] for point in floored["curve"]] == sorted(point["lost"] for point in floored["curve"])
    assert floored["curve"][0]["answered"] == 1.0  # the lowest floor is the least score of any list
    assert not [text for text in record["notices"] if "another scale" in text]
    weights = json.loads(out.read_text())
    weights["provenance"]["floor"]["dataset_sha256"] = "0" * 64
    out.write_text(json.dumps(weights))
    moved = compare(folder, [str(out), "bm25"], embedder="lsa", timed=False)
    assert any(
        "its floor was measured on another scale: the data set has changed" in n for n in moved.record["notices"]
    )
    moved.plot(what="silence")
    assert "What is shown where nothing fits" in moved.report(tmp_path / "report")[0].read_text()
    assert record["dataset"]["judged"] == 50


def test_queries_without_an_answer_have_no_ndcg(folder):
    labelled = compare(folder, ["bm25"], embedder="lsa", timed=False)
    assert len(labelled.queries) == 50


def test_promises_that_exclude_each_other_are_told(folder):
    record = find_floor(folder, FUSED, lost=0.1, false=0.1, embedder="lsa").record
    assert record["floor"] is not None or "No floor keeps both" in record["sentence"]


@pytest.mark.parametrize("text", ["lost=0", "wrong=10%", "lost=lots", "lost=200%"])
def test_a_promise_that_is_none_is_refused(text):
    with pytest.raises(ConfigError, match=r"share|can promise"):
        promises_of(text)


def test_a_floor_on_ranks_is_refused(folder):
    with pytest.raises(ConfigError, match="would mean nothing"):
        find_floor(folder, FUSED, on="rrf(bm25, vector)", embedder="lsa")


def test_tuning_puts_a_floor_into_what_it_writes(folder, tmp_path, capsys):
    out = tmp_path / "w.json"
    words = [
        "tune",
        str(folder),
        "--strategy",
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
