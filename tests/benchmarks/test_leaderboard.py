"""A contributed run joins the leaderboard only when it is what its manifest says, and can be of its collection."""

import hashlib
import json
import os
from pathlib import Path

import leaderboard
import leaderboard_page
import pytest

from steelyard.base.errors import DataError
from steelyard_eval.datasets import load

DATA = json.loads(Path(__file__).with_name("contributed.json").read_text("utf-8"))


def made(folder, files):
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return load(folder)


@pytest.fixture
def tiny(tmp_path):
    return made(tmp_path / "set", DATA["set"])


def given(folder, lines, **changed):
    folder.mkdir()
    text = "".join(f"{line} tag\n" for line in lines)
    (folder / "own.run").write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    run = {"collection": "starter", "embedder": "recorded", "file": "own.run", "sha256": digest} | changed
    (folder / "manifest.json").write_text(json.dumps({"name": "mine", "runs": [run]}))
    return folder


def test_a_run_of_the_collection_joins(tiny, tmp_path):
    folder = given(tmp_path / "own", ["q Q0 a 1 2.0", "s Q0 b 1 2.0", "s Q0 a 2 1.0"])
    ((key, (lists, _)),) = leaderboard.contributed(folder, {"starter": tiny}).items()
    assert key == ("mine", "recorded", "starter")
    assert lists == {"q": ["a"], "s": ["b", "a"]}
    # nDCG@10 of two queries whose only relevant entry is first
    assert leaderboard.measured(tiny, leaderboard.judged(tiny), lists)["nDCG@10"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("lines", "changed", "why"), DATA["refused"])
def test_what_cannot_be_a_run_of_it_is_refused_with_the_reason(tiny, tmp_path, lines, changed, why):
    folder = given(tmp_path / "own", lines, **changed)
    with pytest.raises(DataError, match=why):
        leaderboard.contributed(folder, {"starter": tiny})


def locomo(folder, asks="when?"):
    dataset = made(folder / "set", DATA["locomo"])
    audit = [{"question_id": "locomo_0_qa1", "question": asks, "correct_evidence": ["D1:1", "D3:1"]}]
    (folder / "errors.json").write_text(json.dumps(audit))
    return dataset, folder / "errors.json"


def test_a_corrected_key_changes_the_questions_that_it_names(tmp_path):
    qrels = leaderboard.corrected(*locomo(tmp_path)).qrels
    assert qrels == {"c-2:q000": {"c-2:D1:1": 1}, "c-2:q001": {"c-2:D1:1": 1, "c-2:D3:1": 1}}


def test_an_audit_of_other_questions_is_refused(tmp_path):
    with pytest.raises(DataError, match="locomo_0_qa1 does"):
        leaderboard.corrected(*locomo(tmp_path, "where?"))


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "[" * 100_000, '{"name": "mine", "runs": ["own.run"]}', '{"name": "mine", "runs": []}'),
        *(f'{{"name": "{name}", "runs": [{{}}]}}' for name in ("a | b", "<script>", "a\\nb")),
    ],
)
def test_a_manifest_that_is_none_says_what_it_needs(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(DataError, match="list of runs"):
        leaderboard.contributed(tmp_path, {})


def test_links_out_of_the_folder_are_not_read_and_a_pipe_is_not_waited_for(tiny, tmp_path):
    folder = given(tmp_path / "own", ["q Q0 a 1 2.0", "s Q0 b 1 2.0"])
    (folder / "own.run").rename(tmp_path / "elsewhere.run")
    (folder / "own.run").symlink_to(tmp_path / "elsewhere.run")
    with pytest.raises(DataError, match="outside its folder"):
        leaderboard.contributed(folder, {"starter": tiny})
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")
    with pytest.raises(DataError, match="regular file"):
        leaderboard.contributed(folder, {"starter": tiny})


def test_a_second_run_of_a_name_does_not_replace_the_first(tiny, tmp_path, monkeypatch):
    for name in ("first", "second"):
        given(tmp_path / name, ["q Q0 a 1 2.0", "s Q0 b 1 2.0"])
    monkeypatch.setattr(leaderboard, "GIVEN", tmp_path)
    with pytest.raises(DataError, match=r"already; take"):
        leaderboard.sections({"starter": tiny}, ("recorded",), False)


def test_a_table_has_a_cell_under_each_head(tiny, tmp_path, monkeypatch):
    """`make leaderboard` had ended here: a paired test holds its gain with the ends of its interval."""
    monkeypatch.setattr(leaderboard, "LISTS", tmp_path)
    monkeypatch.setattr(leaderboard, "verified", lambda *_: {})
    (tmp_path / "starter" / "recorded").mkdir(parents=True)
    facts = {"bm25": {"embedded": 0.0, "layers": 0}, "x": {"embedded": 1.0, "layers": 1, "bytes": 2e6}}
    for label, lines in (("bm25", "q Q0 a 1 1 x\ns Q0 a 1 1 x\n"), ("x", "q Q0 a 1 1 x\ns Q0 b 1 1 x\n")):
        (tmp_path / "starter" / "recorded" / f"{label}.run").write_text(lines)
    rows, _ = leaderboard.rows_of("starter", tiny, "recorded", facts, {})
    best, baseline = map(leaderboard.cells, rows)
    assert len(best) == len(baseline) == len(leaderboard.HEAD)
    assert (best[:2], best[7][:7], best[-3:]) == (["x", "1.0000"], "+0.5000", ["1.00", "2.00", ""])
    assert (baseline[0], baseline[7]) == ("bm25", "baseline")


def test_a_name_cannot_bring_markup_into_the_page():
    row = ["<b>mine</b> *", *["0.5000"] * 5, "[0.4, 0.6]", "+0.1 [+0.0, +0.2]", "0.0100", "better", "", "", ""]
    page = leaderboard_page.html("Told.", "Order.", ["set, kind"], [("set", "kind", "about", [row], {}, {}, {})])
    assert "<b>" not in page
    assert page.count("&lt;b&gt;mine&lt;/b&gt; *") == 2  # in the table of all and in its own


def test_a_value_that_is_wrong_is_seen(tiny):
    queries, lists = leaderboard.judged(tiny), {"x": {"q": ["a"], "s": ["a", "b"]}}
    values = {"x": leaderboard.measured(tiny, queries, lists["x"])}
    assert max(leaderboard.verified(tiny, queries, lists, values).values()) < 1e-9
    values["x"]["R@5"] = values["x"]["R@5"] - 0.25
    assert set(leaderboard.verified(tiny, queries, lists, values).values()) == {0.25}
