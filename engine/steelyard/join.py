"""From what retrievers and scorers return to a table: rows are the union of each query's lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.entry import Entry
from steelyard.errors import ConfigError
from steelyard.query import Query
from steelyard.stores.base import Found
from steelyard.table import FACT_FIELDS, NO_FACTS, Floats, Ints, SignalTable, entry_facts, query_facts

Lists = Mapping[str, Sequence[Found]]
"""What each retriever returned for one query."""
ScoreIds = Callable[[Query, Sequence[str]], Floats]


def join(
    queries: Sequence[Query],
    clocks: Sequence[float],
    lists: Sequence[Lists],
    scorers: Mapping[str, ScoreIds],
    get: Callable[[Sequence[str], Sequence[str]], list[Entry]] | None,
    directories: Callable[[Sequence[str]], list[str]] | None = None,
) -> SignalTable:
    """The table of these queries; `get` fetches the entries whose facts it carries, None leaves them out.

    `directories` gives the ids of the directories of entries, where layers are read.

    Raises ConfigError when a retriever or scorer gave a number that is not finite.
    """
    ids = sorted({found.id for own in lists for part in own.values() for found in part})
    code = {id_: at for at, id_ in enumerate(ids)}
    coded = [{name: _codes(code, part) for name, part in own.items()} for own in lists]
    unions = [np.unique(np.concatenate([np.zeros(0, np.int32), *own.values()])) for own in coded]
    offsets = np.cumsum([0, *map(len, unions)], dtype=np.int64)
    columns, positions = _fill(lists, coded, unions, offsets)
    for name, score in scorers.items():
        parts = (score(q, [ids[e] for e in union]) for q, union in zip(queries, unions, strict=True))
        columns[name] = np.concatenate([np.zeros(0), *(_finite(name, part) for part in parts)])
    tags: dict[str, int] = {}
    return SignalTable(
        queries=tuple(query.id for query in queries),
        entries=tuple(ids),
        offsets=offsets,
        entry=np.concatenate([np.zeros(0, np.int32), *unions]),
        columns=columns,
        positions=positions,
        about=entry_facts(get(ids, FACT_FIELDS), tags) if get else NO_FACTS,
        asked=query_facts(queries, clocks, tags),
        directory=_homes(code, ids, directories(ids)) if directories else None,
    )


def _homes(code: Mapping[str, int], ids: Sequence[str], directories: Sequence[str]) -> Ints | None:
    """The directory of each entry as its place among the ids; itself where that is no candidate of any query."""
    if directories == ids:
        return None
    return np.array(
        [code.get(home, code[id_]) for id_, home in zip(ids, directories, strict=True)], dtype=np.int32
    )


def _fill(
    lists: Sequence[Lists], coded: Sequence[Mapping[str, Ints]], unions: Sequence[Ints], offsets: NDArray[np.int64]
) -> tuple[dict[str, Floats], dict[str, Ints]]:
    """Columns and positions of all retrievers; NaN and 0 where an entry was not returned."""
    size = int(offsets[-1])
    names = sorted({name for own in lists for name in own})
    columns = {name: np.full(size, np.nan) for name in names}
    positions = {name: np.zeros(size, dtype=np.int32) for name in names}
    for begin, own, codes, union in zip(offsets, lists, coded, unions, strict=False):
        for name, part in own.items():
            rows = begin + np.searchsorted(union, codes[name])
            columns[name][rows] = _finite(name, [found.score for found in part])
            positions[name][rows] = [found.position for found in part]
    return columns, positions


def _codes(code: Mapping[str, int], part: Iterable[Found]) -> Ints:
    return np.array([code[found.id] for found in part], dtype=np.int32)


def _finite(name: str, values: Any) -> Floats:  # noqa: ANN401 -- a list or an array of numbers
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ConfigError(f"{name} returned a score that is not a finite number; check its vectors and weights")
    return array
