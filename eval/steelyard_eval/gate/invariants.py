"""Promises that every list should keep, whatever its relevance: scope, validity, exclusion.

Systems document different promises (bm25 returns what has expired, soleri as shipped filters no vectors), and
lists of other engines none. So a promise counts where no list of the baseline broke it; breaking it then fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from steelyard.memory.entry import Entry
from steelyard.memory.filters import valid_at
from steelyard.memory.query import Query
from steelyard.memory.text import content
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.runs import Scored

_EXCLUDED = re.compile(r"(?:^|\s)-(\w+)")


def broken(
    dataset: Dataset, queries: Sequence[Query], lists: Sequence[Sequence[Scored]]
) -> Iterator[dict[str, int]]:
    """For every query how many entries of its list break each promise; kept promises are left out."""
    entries = {entry.id: entry for entry in dataset.entries}
    for query, ranking in zip(queries, lists, strict=True):
        listed = [entries[id_] for id_, _ in ranking if id_ in entries]
        counts = {name: sum(map(test, listed)) for name, test in _tests(query, dataset.clock(query))}
        yield {name: count for name, count in counts.items() if count}


def _tests(query: Query, clock: float) -> Iterator[tuple[str, Callable[[Entry], bool]]]:
    valid = valid_at(clock)
    yield "validity", lambda entry: bool(valid.failed(entry))
    if query.filters:
        yield "scope", lambda entry: bool(query.filters.failed(entry))
    words = {word.lower() for word in _EXCLUDED.findall(query.text)}
    if words:
        yield "exclusion", lambda entry: not words.isdisjoint(re.findall(r"\w+", content(entry).lower()))
