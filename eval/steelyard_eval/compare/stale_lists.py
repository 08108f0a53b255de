"""How often contenders show what was replaced or has expired above what took its place."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.memory.query import Query
from steelyard_eval.compare.lists import Made
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.paired import exact_interval
from steelyard_eval.measures.stale import Succession
from steelyard_eval.result.structs import Cell, Estimate, Table

COLUMNS = ["outdated", "stale", "of", "share", "fewer", "more", "most_often"]


def stale_lists(
    dataset: Dataset, queries: Sequence[Query], made: Sequence[Made], cutoff: int, baseline: str
) -> list[Table]:
    """A row for each contender; none where no entry of the corpus was replaced or expires.

    `more` and `fewer` count queries whose list is stale here and not in the baseline, and the other way round.
    """
    facts = Succession.of(dataset.entries)
    if not facts:
        return []
    clocks = {query.id: dataset.clock(query) for query in queries}
    lists = {one.label: _stale(facts, one, clocks, cutoff) for one in made}
    rows = [_row(one, lists[one.label], None if one.label == baseline else lists[baseline]) for one in made]
    return [Table("stale", COLUMNS, rows)]


def _stale(facts: Succession, one: Made, clocks: dict[str, float], cutoff: int) -> dict[str, list[str]]:
    lists = zip(one.ranked.queries, one.ranked.lists(), strict=True)
    stale = {query: facts.stale(ids[:cutoff], clocks[query]) for query, ids in lists}
    return {query: ids for query, ids in stale.items() if ids}


def _row(one: Made, own: dict[str, list[str]], before: dict[str, list[str]] | None) -> list[Cell]:
    asked = len(one.ranked.queries)
    shown = sorted(id_ for ids in own.values() for id_ in ids)
    share = Estimate(len(own) / max(asked, 1), *exact_interval(len(own), asked))
    fewer, more = (None, None) if before is None else (len(before.keys() - own), len(own.keys() - before))
    return [one.label, len(own), asked, share, fewer, more, max(shown, key=shown.count, default=None)]
