"""Joins what retrievers and scorers return to a table; its rows are the union of each query's lists."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Floats, Ints
from steelyard.base.errors import ConfigError
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.retrievers.kinds import UNKNOWN
from steelyard.stores.base import ScoredId, ScoredIds
from steelyard.table.signal_table import ENDS, LABEL_FACTS, NO_FACTS, NUMBER_FACTS, Facts, SignalTable

Lists = Mapping[str, Sequence[ScoredId]]
"""The list of each retriever for one query."""
Ends = Mapping[str, tuple[float, float]]
"""The least and the most that the scores of each retriever can be for one query; NaN where that is not known."""
ScoreIds = Callable[[Query, Sequence[str]], Floats]
FACT_FIELDS = (*NUMBER_FACTS[:-1], *LABEL_FACTS, "tags", "text")
"""What has to be read of an entry for its facts; `length` is the number of characters of its text."""


def join(
    queries: Sequence[Query],
    clocks: Sequence[float],
    lists: Sequence[Lists],
    scorers: Mapping[str, ScoreIds],
    get: Callable[[Sequence[str], Sequence[str]], list[Entry]] | None,
    directories: Callable[[tuple[str, ...]], Ints | None] | None = None,
    ends: Sequence[Ends] = (),
) -> SignalTable:
    """Build the table of some queries.

    `clocks` are seconds UTC, `lists` those of each query; `scorers` score its candidates, by signal. `get` fetches
    the entries whose facts it contains, None for a table without; `directories` gives the place of each entry's
    directory among them, where layers are read. ConfigError for a score that is not a finite number, or is
    missing.
    """
    return complete([part(queries, lists, scorers, ends)], queries, clocks, get, directories)


@dataclass(frozen=True)
class Part:
    """The rows of some queries, as in `SignalTable`, without facts."""

    entries: Sequence[str]
    offsets: NDArray[np.int64]
    entry: Ints
    columns: Mapping[str, Floats]
    positions: Mapping[str, Ints]
    ends: Mapping[str, Floats]
    """float64[Q, 2]: see `Ends`."""


def part(
    queries: Sequence[Query], lists: Sequence[Lists], scorers: Mapping[str, ScoreIds], ends: Sequence[Ends] = ()
) -> Part:
    """Join the lists of some queries, and score their candidates; see `join`."""
    if not (scorers or any(lists)):  # before anything is looked up
        return Part((), np.zeros(len(lists) + 1, np.int64), np.zeros(0, np.int32), {}, {}, {})
    listed = [{name: _arrays(name, found) for name, found in by_name.items()} for by_name in lists]
    distinct = {id(own): own for by_name in listed for own, _, _ in by_name.values()}
    ids, *places = (_united if len(lists) == 1 else _united.__wrapped__)(*distinct.values())
    codes = dict(zip(distinct, places, strict=True))
    unions: list[Ints] = []
    for by_name in listed:
        held = np.zeros(len(ids), dtype=bool)
        for own, _, _ in by_name.values():
            held[codes[id(own)]] = True
        unions.append(np.flatnonzero(held).astype(np.int32))
    offsets = np.cumsum([0, *map(len, unions)], dtype=np.int64)
    names = sorted({name for by_name in listed for name in by_name})
    columns = {name: np.full(offsets[-1], np.nan) for name in names}
    positions = {name: np.zeros(offsets[-1], dtype=np.int32) for name in names}
    for begin, by_name, union in zip(offsets, listed, unions, strict=False):
        whole = len(union) and union[-1] == len(union) - 1  # then a number is its own place
        for name, (own, scores, at) in by_name.items():
            rows = begin + (codes[id(own)] if whole else np.searchsorted(union, codes[id(own)]))
            columns[name][rows], positions[name][rows] = scores, at
    for name, score in scorers.items():
        columns[name] = np.zeros(offsets[-1])
        for query, union, begin, end in zip(queries, unions, offsets, offsets[1:], strict=False):
            columns[name][begin:end] = _finite(name, score(query, [ids[e] for e in union]), len(union))
    bounded = sorted({name for pairs in ends for name in pairs})
    scales = {name: np.array([pairs.get(name, UNKNOWN) for pairs in ends], dtype=np.float64) for name in bounded}
    return Part(ids, offsets, np.concatenate([np.zeros(0, np.int32), *unions]), columns, positions, scales)


def _arrays(name: str, found: Sequence[ScoredId]) -> tuple[tuple[str, ...], Floats, Any]:
    """The ids of a list, their scores and their positions."""
    if isinstance(found, ScoredIds):
        return found.ids, _finite(name, found.scores, len(found)), found.positions
    scores = _finite(name, [item.score for item in found], len(found))
    return tuple(item.id for item in found), scores, [item.position for item in found]


def _finite(name: str, values: Any, count: int) -> Floats:  # noqa: ANN401 -- a list or an array of numbers
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (count,):  # one alone would stand for all
        raise ConfigError(f"{name} returned {array.size} scores for {count} entries; it must give one for each")
    if not np.isfinite(array).all():
        raise ConfigError(f"{name} returned a score that is not a finite number; check its vectors and weights")
    return array


@lru_cache(4)  # the ids of one query's lists, which may be as long as the store
def _united(*parts: tuple[str, ...]) -> tuple[Any, ...]:
    """The ids of several tuples, ascending, and of each tuple int32[n], the places of its ids among them."""
    first = max(parts, key=len, default=())
    alike = len(parts) > 1 and all(part == first for part in parts)
    ids = tuple(sorted(first if alike else set().union(*parts)))
    code = {id_: place for place, id_ in enumerate(ids)}
    return ids, *(np.array([code[id_] for id_ in part], dtype=np.int32) for part in parts)


def complete(
    parts: Sequence[Part],
    queries: Sequence[Query],
    clocks: Sequence[float],
    get: Callable[[Sequence[str], Sequence[str]], list[Entry]] | None,
    directories: Callable[[tuple[str, ...]], Ints | None] | None,
) -> SignalTable:
    """Put the parts of all queries together, in their order, and add what is known of queries and entries."""
    whole = parts[0] if len(parts) == 1 else _together(parts)
    ids = tuple(whole.entries)
    tags: dict[str, int] = {}
    return SignalTable(
        queries=tuple(query.id for query in queries),
        entries=ids,
        offsets=whole.offsets,
        entry=whole.entry,
        columns=whole.columns,
        positions=whole.positions,
        entry_facts=entry_facts(get(ids, FACT_FIELDS) if ids else (), tags) if get else NO_FACTS,
        query_facts=query_facts(queries, clocks, tags, whole.ends),
        directory=directories(ids) if directories else None,
    )


def _together(parts: Sequence[Part]) -> Part:
    """One part of the same bits as if it had been made at once."""
    ids = sorted(set().union(*(part.entries for part in parts)))
    code = {id_: i for i, id_ in enumerate(ids)}
    entry = [np.array([code[id_] for id_ in part.entries], dtype=np.int32)[part.entry] for part in parts]
    rows, queries = [len(part.entry) for part in parts], [np.diff(part.offsets) for part in parts]
    return Part(
        ids,
        np.concatenate([[0], np.cumsum(np.concatenate(queries))]),
        np.concatenate(entry),
        _stacked([part.columns for part in parts], rows),
        _stacked([part.positions for part in parts], rows),
        _stacked([part.ends for part in parts], list(map(len, queries))),
    )


def _stacked(maps: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> dict[str, Any]:
    """The arrays of each name one after another; NaN, or 0 of whole numbers, where a part has none."""
    stacked = {}
    for name in sorted(set().union(*maps)):
        like = next(arrays[name] for arrays in maps if name in arrays)
        empty = 0 if like.dtype == np.int32 else np.nan
        none = (np.full((size, *like.shape[1:]), empty, like.dtype) for size in sizes)
        stacked[name] = np.concatenate([arrays.get(name, gap) for arrays, gap in zip(maps, none, strict=True)])
    return stacked


def entry_facts(entries: Sequence[Entry], tag_codes: dict[str, int]) -> Facts:
    """Collect the facts of entries, in the order given; `tag_codes` is shared with `query_facts`."""
    held = {name: list(map(attrgetter(name), entries)) for name in NUMBER_FACTS[:-1]}
    held["length"] = [len(entry.text.strip()) for entry in entries]
    numbers = {name: np.array(values, dtype=np.float64) for name, values in held.items()}  # None becomes NaN
    return Facts.of(entries, numbers, LABEL_FACTS, tag_codes)


def query_facts(
    queries: Sequence[Query],
    clocks: Sequence[float],
    tag_codes: dict[str, int],
    ends: Mapping[str, Floats] = MappingProxyType({}),
) -> Facts:
    """Collect those of queries: clock (seconds UTC), intent, domain, tags, and `ends`, float64[Q, 2] by signal."""
    numbers = {"clock": np.array(clocks, dtype=np.float64)}
    for name, values in ends.items():
        numbers |= {f"{end} {name}": values[:, i] for i, end in enumerate(ENDS)}
    return Facts.of(queries, numbers, ("intent", "domain"), tag_codes)
