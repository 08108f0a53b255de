"""How often contenders show what was replaced or has expired above what took its place."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.memory.query import Query
from steelyard_eval.common.documents.results import StaleRecord
from steelyard_eval.compare.arena import ArenaRow
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.paired import exact_interval
from steelyard_eval.measures.stale import Succession


def stale_lists(
    dataset: Dataset, queries: Sequence[Query], rows: Sequence[ArenaRow], cutoff: int, baseline: str
) -> list[StaleRecord]:
    """A row for each contender; none where no entry of the corpus was replaced or expires.

    `more` and `fewer` count queries whose list is stale here and not in the baseline, and the other way round.
    """
    facts = Succession.of(dataset.entries)
    if not facts:
        return []
    clocks = {query.id: dataset.clock(query) for query in queries}
    lists = {row.label: _stale(facts, row, clocks, cutoff) for row in rows}
    return [_row(row, lists[row.label], lists[baseline]) for row in rows]


def _stale(facts: Succession, row: ArenaRow, clocks: dict[str, float], cutoff: int) -> dict[str, list[str]]:
    lists = zip(row.ranked.queries, row.ranked.lists(), strict=True)
    stale = {query: facts.stale(ids[:cutoff], clocks[query]) for query, ids in lists}
    return {query: ids for query, ids in stale.items() if ids}


def _row(row: ArenaRow, own: dict[str, list[str]], before: dict[str, list[str]]) -> StaleRecord:
    asked = len(row.ranked.queries)
    low, high = exact_interval(len(own), asked)
    more, fewer = len(own.keys() - before.keys()), len(before.keys() - own.keys())
    share = len(own) / max(asked, 1)
    return {
        "label": row.label,
        "queries": asked,
        "stale": len(own),
        "share": share,
        "low": low,
        "high": high,
        "more": more,
        "fewer": fewer,
        "entries": own,
    }
