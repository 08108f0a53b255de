"""What a search gives back: hits with their signals, and the explanation of each score."""

from dataclasses import replace

import pytest

from steelyard import Searcher, Vault
from steelyard.base.errors import VaultError
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.results import hits_of
from steelyard.retrievers.kinds import Intent
from steelyard.systems import find_system

ENTRIES = (
    Entry("a", title="red apple", text="an apple a day"),
    Entry("b", title="green pear", text="no fruit of this name"),
    Entry("c", title="apple tree", text="in the garden"),
)


@pytest.fixture
def vault(tmp_path):
    config = find_system("bm25").config(10, "")
    with Vault(tmp_path / "v.db", create=True) as vault:
        vault.upsert(ENTRIES)
        vault.searcher = Searcher(vault, config, None)
        yield vault


def test_hits_are_in_order_and_hold_what_the_strategy_read(vault):
    found = vault.searcher.search("apple")

    assert [hit.rank for hit in found.hits] == [1, 2]
    assert {hit.entry.id for hit in found.hits} == {"a", "c"}
    assert found.hits[0].score >= found.hits[1].score
    for hit in found.hits:  # a strategy of one signal: the score is that signal
        assert hit.signals == {"bm25": pytest.approx(hit.score)}
    assert (found.embedding_calls, found.degraded) == (0, False)


def test_a_recording_has_no_more_of_a_list_than_asked(vault):
    """Two entries have the word."""
    query = Query("apple")
    assert [len(vault.searcher.part([query], ["bm25"], depth).entry) for depth in (1, 2, None)] == [1, 2, 2]


def test_what_a_classifier_gives_is_recorded_whether_its_system_knows_it_or_not(vault):
    """As it is searched: a query passes once through what a system makes of it."""
    reading = replace(vault.searcher.system.reading, intents=("find",), classify=Intent)
    vault.searcher.system = replace(vault.searcher.system, reading=reading)
    assert vault.searcher.record([Query("apple", id="1")], {"bm25"}, 5, "corpus").queries == ("1",)


def test_an_entry_that_is_gone_by_now_is_named(vault):
    found = vault.searcher.search("apple")
    vault.delete(["c"])

    with pytest.raises(VaultError, match="'c' was deleted"):
        hits_of(vault, found.table, found.ranking, found.strategy, found.fused)
