"""Random tables that hold everything a table may hold, and the ways to cut and rename them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.base.arrays import Bools, Floats
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.retrievers import FETCHED, RETRIEVERS
from steelyard.stores.base import ScoredId
from steelyard.table.join import join
from steelyard.table.signal_table import Facts, Labels, SignalTable, TagSets

NOW = 1_795_305_600.0
"""2026-11-22T00:00:00Z, the clock of the queries of random tables."""
YEAR = 365 * 86_400.0


def random_table(
    rng: np.random.Generator,
    queries: int = 5,
    entries: int = 15,
    columns: Collection[str] = FETCHED,
    *,
    ties: bool = True,
) -> SignalTable:
    """A valid table: lists of any length, queries without candidates, gaps in positions, all facts.

    With `ties` scores come from a few values; without, no two scores, dates or importances of a
    query are equal.
    """
    corpus = [_entry(rng, i, ties) for i in range(entries)]
    asked = [_query(rng, i) for i in range(queries)]
    lists = [_lists(rng, corpus, sorted(RETRIEVERS & set(columns)), ties) for _ in asked]
    numbers = {name: _scores(rng, queries * entries, ties) for name in sorted(set(columns) - RETRIEVERS)}
    place = {entry.id: i for i, entry in enumerate(corpus)}

    def score(name: str, query: Query, ids: Sequence[str]) -> Floats:
        return numbers[name][[int(query.id[1:]) * entries + place[id_] for id_ in ids]]

    scorers = {name: lambda query, ids, name=name: score(name, query, ids) for name in numbers}
    return join(asked, [NOW] * queries, lists, scorers, lambda ids, _: [corpus[place[id_]] for id_ in ids])


def _entry(rng: np.random.Generator, at: int, ties: bool) -> Entry:
    born = NOW - YEAR * float(rng.integers(-1, 4) if ties else rng.uniform(0.01, 4))
    return Entry(
        id=f"e{at:03}",
        severity=str(rng.choice(["", "critical", "warning", "suggestion", "odd"])),
        domain=str(rng.choice(["", "auth", "data"])),
        tags=_tags(rng),
        importance=float(rng.integers(1, 11) if ties else rng.uniform(1, 10)) if not ties or at % 3 else None,
        created_at=born if not ties or at % 4 else None,
        updated_at=born + 86_400.0 if ties and at % 5 == 0 else None,
        **_memory(np.random.default_rng(at), born),
    )


def _memory(rng: np.random.Generator, born: float) -> dict[str, Any]:
    """What a memory may have beside its text, from a source of chance of its own."""
    fields: dict[str, object] = {
        "document_type": str(rng.choice(["", "spec", "readme", "odd"])),
        "spec_level": str(rng.choice(["", "1", "3", "odd"])),
        "importance_tier": str(rng.choice(["", "critical", "temporary", "odd"])),
        "memory_type": str(rng.choice(["", "working", "semantic", "meta-cognitive", "odd"])),
        "context_type": str(rng.choice(["", "decision"])),
        "text": "x" * int(rng.integers(0, 200)),
    }
    numbers = {
        "access_count": float(rng.integers(0, 40)),
        "correction_count": float(rng.integers(0, 4)),
        "stability": float(rng.uniform(0, 20)),
        "half_life_days": float(rng.uniform(0, 50)),
        "last_review": born + float(rng.uniform(0, 1e6)),
        "last_accessed_at": born + float(rng.uniform(0, 1e6)),
    }
    return fields | {name: value for name, value in numbers.items() if rng.random() < 0.7}


def _query(rng: np.random.Generator, at: int) -> Query:
    intent, domain = str(rng.choice(["", "fix", "learn", "find_spec"])), str(rng.choice(["", "auth", "data"]))
    return Query(f"query {at}", id=f"q{at}", intent=intent, domain=domain, tags=_tags(rng))


def _tags(rng: np.random.Generator) -> tuple[str, ...]:
    return tuple(str(tag) for tag in rng.choice(["a", "b", "c", "d"], size=rng.integers(0, 5), replace=False))


def _lists(
    rng: np.random.Generator, corpus: Sequence[Entry], names: Sequence[str], ties: bool
) -> dict[str, list[ScoredId]]:
    """Lists as retrievers return them: best first, ties by id, sometimes with gaps after a late filter."""
    lists: dict[str, list[ScoredId]] = {}
    silent = rng.random() < 0.15
    for name in names:
        size = 0 if silent or rng.random() < 0.15 else int(rng.integers(1, len(corpus) + 1))
        ids = [corpus[i].id for i in rng.choice(len(corpus), size=size, replace=False)]
        scores = _scores(rng, size, ties).tolist()
        best = sorted(zip(ids, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))
        step = int(rng.integers(1, 3))
        lists[name] = [ScoredId(id_, score, 1 + i * step) for i, (id_, score) in enumerate(best)]
    return lists


def _scores(rng: np.random.Generator, size: int, ties: bool) -> Floats:
    return rng.choice([-0.4, 0.0, 0.1, 0.3, 0.7, 1.9], size=size) if ties else rng.uniform(-0.3, 2.0, size=size)


def same_bits(left: ArrayLike, right: ArrayLike) -> bool:
    """Equal in shape, type and every bit: NaN equals NaN, 0.0 differs from -0.0."""
    first, second = np.asarray(left), np.asarray(right)
    same_kind = first.dtype == second.dtype and first.shape == second.shape
    return same_kind and first.tobytes() == second.tobytes()


def select_rows(table: SignalTable, kept: Bools) -> SignalTable:
    """The table with only these rows (bool[N])."""
    before = np.concatenate(([0], np.cumsum(kept)))
    return replace(
        table,
        offsets=before[table.offsets].astype(np.int64),
        entry=table.entry[kept],
        columns={name: values[kept] for name, values in table.columns.items()},
        positions={name: values[kept] for name, values in table.positions.items()},
    )


def select_queries(table: SignalTable, chosen: Sequence[int]) -> SignalTable:
    """The table of these queries alone, in ascending order of their places."""
    places = np.array(chosen, dtype=np.int64)
    rows = select_rows(table, np.isin(table.query, places))
    ends = np.concatenate(([0], np.cumsum(np.diff(table.offsets)[places]))).astype(np.int64)
    return replace(
        rows,
        queries=tuple(table.queries[i] for i in chosen),
        offsets=ends,
        query_facts=_facts(table.query_facts, places),
    )


def renamed(table: SignalTable, names: NDArray[np.int64]) -> tuple[SignalTable, NDArray[np.int64]]:
    """The same table after entry `e` got the name of entry ``names[e]``, a permutation.

    Returns the table, and for each of its rows the row it was before.
    """
    codes = names[table.entry]
    before = np.lexsort((codes, table.query))
    moved = replace(
        table,
        entry=codes[before].astype(np.int32),
        columns={name: values[before] for name, values in table.columns.items()},
        positions={name: values[before] for name, values in table.positions.items()},
        entry_facts=_facts(table.entry_facts, np.argsort(names)),
    )
    return moved, before


def _facts(facts: Facts, places: NDArray[np.int64]) -> Facts:
    sets = [facts.tags.codes[facts.tags.offsets[i] : facts.tags.offsets[i + 1]] for i in places]
    ends = np.concatenate(([0], np.cumsum([len(codes) for codes in sets]))).astype(np.int64)
    tags = TagSets(ends, np.concatenate([np.zeros(0, np.int32), *sets]))
    numbers = {name: values[places] for name, values in facts.numbers.items()}
    labels = {name: Labels(coded.codes[places], coded.words) for name, coded in facts.labels.items()}
    return Facts(numbers, labels, tags)
