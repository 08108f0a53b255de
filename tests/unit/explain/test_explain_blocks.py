"""Columns of an explained list, from records written out by hand."""

import pytest

from steelyard_eval.common.console import GAP, grid
from steelyard_eval.common.console import table as text_table
from steelyard_eval.explain.text import TextBlock, _changes, _listed, _signals, _text


def test_changes_are_counted_by_their_kind():
    kinds = ["moved", "left", "moved", "entered", "moved", "left"]
    change = {"before": 1, "after": 2, "id": "a", "grade": None, "by": None}
    change |= {"headline": "", "standing": True, "why": ""}
    block = _changes([change | {"kind": kind} for kind in kinds], 10)
    assert block.lines[0].split(": ")[1].split(", ") == ["0 stayed", "3 moved", "1 entered", "2 left"]


def test_relevant_entries_that_moved_come_first_and_none_is_cut_for_another():
    change = {"before": 1, "after": 12, "by": None, "headline": "", "standing": None, "why": ""}
    rows = [("e1", "moved", 0), ("e2", "stayed", 3), ("e3", "entered", None), ("e4", "left", 3)]
    changes = [change | {"id": id_, "kind": kind, "grade": grade} for id_, kind, grade in rows]
    block = _changes(changes, 2)
    assert [row[2] for row in block.rows] == ["e4", "e1"]
    assert block.lines[0].find("; 2 more") > 0


def test_columns_of_zeros_are_left_out_and_a_long_list_and_its_changes_are_cut_at_the_limit():
    def entry(at, tags):
        signals = {"bm25": {"value": 9.0 - at, "position": at}, "tags": {"value": tags, "position": None}}
        terms = [{"weight": 0.1, "signal": "tags", "contribution": 0.1 * tags}]
        facts = {"rank": at, "id": f"e{at}", "grade": None, "score": 9.0 - at, "factor": None, "headline": ""}
        return facts | {"signals": signals, "contributions": terms}

    about = {"label": "mine", "role": "only", "strategy": "bm25", "system": "mine", "metrics": None, "limit": 2}
    about |= {"depths": {}, "unasked": [], "finish": [], "intent": "", "matched": "", "ranked": 7}
    block = _listed({**about, "entries": [entry(at, 0.0) for at in (1, 2, 3)]}, {"text": "x"})
    assert block.heads == ["rank", "entry", "grade", "score", "bm25", "title"]
    assert [row[1] for row in block.rows] == ["e1", "e2"]
    assert block.lines[-1].endswith(": tags")
    assert "3 listed" in block.lines[1]
    assert "0.1*tags" in _listed({**about, "entries": [entry(1, 0.0), entry(2, 1.0)]}, {"text": "x"}).heads

    change = {"kind": "left", "before": 1, "after": None, "id": "a", "grade": None, "by": None}
    change |= {"headline": "", "standing": None, "why": ""}
    block = _changes([change] * 3, 2)
    assert len(block.rows) == 2
    assert block.lines[0].find("; 1 more") > 0


@pytest.mark.parametrize(
    ("columns", "title"), [(69, "a title of six words here"), (68, "a title of six words ..."), (67, None)]
)
def test_a_title_of_a_list_is_cut_at_a_word_or_left_out(monkeypatch, columns, title):
    """A rank of 4, an entry of 36 and two gaps leave 25 of 69 for 25 letters, and 24 is the least."""
    monkeypatch.setenv("COLUMNS", str(columns))
    row = ["1", "i" * 36, "a title of six words here"]
    shown = _text(TextBlock([""], ["rank", "entry", "title"], [row])).splitlines()[-1]
    assert shown.split("i" * 36)[1].strip() == (title or "")


def test_columns_fill_a_table_to_the_last_character_and_the_last_is_folded_and_whole(monkeypatch):
    row = {"k": "k" * 20, "a": "a" * 26, "b": "b" * 26, "c": "c" * 26, "why": " ".join(["reason"] * 9)}
    exactly = 20 + 2 * (GAP + 26)  # the key and two columns
    for width, tables in ((exactly, 2), (exactly - 1, 4)):
        monkeypatch.setenv("COLUMNS", str(width))
        shown = text_table([row])
        assert shown.count("k" * 20) == tables
        assert shown.count("reason") == 9
        assert max(map(len, shown.splitlines())) <= width
    two = grid(["rank", *row], [["1", *row.values()]], [True, *[False] * len(row)], keys=2)
    assert two.count(" 1  " + "k" * 20) == 4


def test_a_change_says_why_whole_and_a_weight_of_nothing_has_no_column():
    why = "place 85 in fts"
    change = {"kind": "entered", "before": None, "after": 1, "id": "a", "grade": None, "by": "severity"}
    change |= {"headline": "Storm plan", "standing": None, "why": why, "changes": {}}
    assert _changes([change], 2).rows[0][-1] == f"severity; before: {why}"

    terms = [
        {"weight": weight, "signal": name, "contribution": weight} for weight, name in ((0.0, "tags"), (1.0, "x"))
    ]
    entry = {"signals": {"tags": {"value": 1.0, "position": None}}, "score": 3.0, "contributions": terms}
    assert list(_signals([entry], [], 4)) == ["tags", "1*x"]
