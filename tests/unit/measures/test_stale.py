"""Stale above current, on lists whose stale places are counted by hand."""

import pytest

from steelyard.memory.entry import Entry, Relation
from steelyard_eval.compare.result import Succession

FACTS = Succession.of(
    [
        Entry("first", superseded_by="second", created_at=1.0),
        Entry("second", created_at=2.0),
        Entry("third", created_at=3.0, relations=(Relation("supersedes", "second"),)),
        Entry("proposed", relations=(Relation("supersedes", "plain", status="proposed"),)),
        Entry("rule", valid_until=5.0),
        Entry("plain"),
        Entry("torn", superseded_by="nowhere"),
    ]
)


@pytest.mark.parametrize(
    ("ids", "clock", "stale"),
    [
        (["first", "second", "third"], 9.0, ["first", "second"]),
        (["third", "second", "first"], 9.0, []),
        (["second", "first", "third"], 9.0, ["second"]),  # for first, second stands above it
        (["third", "first"], 9.0, []),  # third came after what took the place of first
        (["first", "second"], 2.0, ["first"]),  # third was not there yet, so second was current
        (["first"], 1.5, []),
        (["rule"], 4.9, []),
        (["rule"], 5.0, ["rule"]),  # valid before valid_until
        (["plain", "torn", "proposed", "unknown"], 9.0, []),
    ],
)
def test_what_is_stale_has_nothing_above_it_that_took_its_place(ids, clock, stale):
    assert FACTS.stale(ids, clock) == stale


def test_entries_that_replace_each_other_end():
    turn = Succession.of([Entry("a", superseded_by="b"), Entry("b", superseded_by="a")])
    assert turn.stale(["a", "b"], 0.0) == ["a"]


def test_a_corpus_without_such_facts_has_nothing_to_say():
    assert not Succession.of([Entry("a"), Entry("b", superseded_by="a", created_at=3.0)]).ends
    assert not Succession.of([Entry("a"), Entry("b", superseded_by="elsewhere")])
