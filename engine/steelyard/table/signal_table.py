"""The signal table: one live query or a whole recording, which every strategy is evaluated on.

Rows are (query, entry) pairs in CSR order: the rows of query ``q`` are ``offsets[q]:offsets[q+1]``,
sorted by entry. ``entry`` indexes ``entries``, the ids sorted by their UTF-8 bytes, so the tie rule
(score descending, then id ascending by bytes) is an integer comparison.

A column is ``float64[N]``. In a *retriever* column NaN means "not returned by this retriever", which
is not the same as a score of 0. Each has ``positions``: where a row was in the retriever's list before
it was cut at the depth (1 is best, 0 is absent). Filters that act after that cut leave gaps in the
positions, never in the ranks. A *scorer* column has a number in every row.

The facts that other signals are computed from are stored once per entry or once per query, so that half-lives and
severity maps can be tuned on a recording.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard.base.errors import ConfigError, nearest

if TYPE_CHECKING:
    from steelyard.embedders.embed import Vectors

NUMBER_FACTS = (
    *("importance", "created_at", "updated_at", "last_accessed_at", "valid_from", "valid_until"),
    *("access_count", "correction_count", "last_review", "stability", "half_life_days", "length"),
)
LABEL_FACTS = (
    *("severity", "domain", "document_type", "spec_level"),
    *("importance_tier", "memory_type", "context_type"),
)
ENDS = ("low", "high")
"""The facts of a query that say between which ends a retriever's scores can lie, before the name of its signal."""
RERANK = "rerank"
"""The column that is filled for the first places of a list alone, and read when the list is finished."""
LISTS = "lists"
"""The key of the fingerprint for lists of other engines, each with the hash of its contents."""
KEPT_ROWS = 100_000
"""Rows of a table that keeps what was computed of it: a search asks again for its hits, and strategies that are
tried on a recording ask for the same signals; a larger one would fill the memory."""


@dataclass(frozen=True)
class TagSets:
    """Sets of tags as CSR over a shared vocabulary; codes ascend within each set."""

    offsets: Indices
    codes: Ints

    @classmethod
    def of(cls, sets: Iterable[Sequence[str]], codes: dict[str, int]) -> TagSets:
        """Encode sets of tags, adding unseen tags to `codes`."""
        rows = [sorted({codes.setdefault(tag, len(codes)) for tag in tags}) for tags in sets]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return cls(offsets, np.array([code for row in rows for code in row], dtype=np.int32))


@dataclass(frozen=True)
class Labels:
    """One word per position, stored as codes int32[n] into a vocabulary."""

    codes: Ints
    words: tuple[str, ...]

    @classmethod
    def of(cls, labels: Iterable[str]) -> Labels:
        """Encode labels, keeping their order."""
        codes: dict[str, int] = {}
        encoded = np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int32)
        return cls(encoded, tuple(codes))

    def equal(self, *words: str) -> Bools:
        """Where the label is one of these words; bool[n]."""
        return self.mapped(dict.fromkeys(words, 1.0), 0.0) > 0

    def mapped(self, numbers: Mapping[str, float], other: float) -> Floats:
        """The number of each label, float64[n]; `other` for a word without one."""
        return np.array([numbers.get(word, other) for word in self.words] or [other], dtype=np.float64)[self.codes]


@dataclass(frozen=True)
class Facts:
    """What signals are computed from: numbers (NaN where unknown), labels and tag sets, each by position."""

    numbers: Mapping[str, Floats]
    labels: Mapping[str, Labels]
    tags: TagSets

    @classmethod
    def of(
        cls, items: Sequence[Any], numbers: Mapping[str, Floats], labels: Sequence[str], tags: dict[str, int]
    ) -> Facts:
        """Encode the labels and the tags of items by these names, adding unseen tags to the codes of `tags`."""
        words = {name: Labels.of(map(attrgetter(name), items)) for name in labels}
        return cls(numbers, words, TagSets.of((item.tags for item in items), tags))


NO_FACTS = Facts({}, {}, TagSets(np.zeros(1, np.int64), np.zeros(0, np.int32)))
"""The facts of a table built for a strategy that needs none."""


@dataclass(frozen=True)
class SignalTable:
    """Signals of query-candidate pairs; the module describes the layout."""

    queries: tuple[str, ...]
    """Ids of the Q queries."""
    entries: tuple[str, ...]
    """Ids of the E entries, sorted by bytes."""
    offsets: Indices
    """int64[Q+1]: query q has the rows ``offsets[q]:offsets[q+1]``."""
    entry: Ints
    """int32[N]: index into `entries` of each row, ascending within each query."""
    columns: Mapping[str, Floats]
    """float64[N]: signals by name."""
    positions: Mapping[str, Ints]
    """int32[N]: positions in each retriever's list, from 1; 0 where the row is absent."""
    entry_facts: Facts
    """Facts of the E entries."""
    query_facts: Facts
    """Facts of the Q queries, among them ``low NAME`` and ``high NAME``: the ends of a retriever's scores."""
    fingerprint: Mapping[str, object] = field(default_factory=dict)
    """What replay cannot change (models, tokenizers, depths ...), as JSON values."""
    directory: Ints | None = None
    """int32[E]: the entry whose abstract and overview stand for each entry; itself where it has its own or lies in
    no directory. None where every entry is its own."""
    vectors: Vectors | None = None
    """float32[E, dim]: the stored vector of each entry, zeros where it has none; None where none is compared."""

    def __len__(self) -> int:
        return len(self.entry)

    @cached_property
    def query(self) -> Ints:
        """Index of the query each row belongs to; int32[N]."""
        return np.repeat(np.arange(len(self.queries), dtype=np.int32), np.diff(self.offsets))

    @cached_property
    def derived(self) -> dict[Hashable, Any]:
        """What was computed of this table, by whoever computes it."""
        return {}

    @cached_property
    def parent(self) -> Indices:
        """int64[N]: the row of each row's directory for the same query, -1 where the query has no such row."""
        rows = np.arange(len(self), dtype=np.int64)
        if self.directory is None:
            return rows
        first = self.query.astype(np.int64) * len(self.entries)
        keys, wanted = first + self.entry, first + self.directory[self.entry]
        places = np.minimum(np.searchsorted(keys, wanted), max(len(self) - 1, 0))
        return np.where(keys[places] == wanted, places, -1) if len(self) else rows

    @cached_property
    def exists(self) -> Bools:
        """The candidates: rows that fts, bm25, vector or a recorded list returned; bool[N]."""
        kinds = _kinds()
        others = kinds.SCORERS | kinds.SEPARATE_SIGNALS | kinds.DEPENDENT | {*kinds.LAYERS, RERANK}
        rows = np.zeros(len(self), dtype=bool)
        for name in self.columns.keys() - others:
            rows |= ~np.isnan(self.columns[name])
        return rows

    @cached_property
    def others_places(self) -> Mapping[str, Ints]:
        """The positions in lists of other engines, by name: their order ranks equal scores, too."""
        lists = self.fingerprint.get(LISTS)
        names = lists if isinstance(lists, Mapping) else ()
        return {name: self.positions[name] for name in names if name in self.columns and name in self.positions}

    def fact(self, name: str) -> Floats:
        """A number of each row's entry, float64[N]; NaN where it is not known."""
        return self.entry_facts.numbers[name][self.entry]

    def column(self, name: str) -> Floats:
        """Return the column of a signal, float64[N]; ConfigError when it was not recorded."""
        if name in self.columns:
            return self.columns[name]
        fetched, held = _kinds().FETCHED, ", ".join(sorted(self.columns)) or "none"
        remedy = nearest(name, fetched | self.columns.keys())
        if name in fetched:
            remedy = "; record it, and name it among the configuration's retrievers"
        raise ConfigError(f"signal {name!r} is not in this table (it holds {held}){remedy}")

    def at_depth(self, depths: Mapping[str, int | None]) -> SignalTable:
        """Mask each named retriever beyond its depth, None for all, and drop those that are not named.

        Ranks, counts and maxima are taken from the result, never from a deeper list. ConfigError for a depth below
        1 or beyond the recorded one.
        """
        if (key := ("depths", *sorted(depths.items()))) in self.derived:
            return cast("SignalTable", self.derived[key])
        recorded = self.fingerprint.get("max_depth", {})
        named = _kinds().SCORERS | depths.keys() | {RERANK}
        columns = {name: column for name, column in self.columns.items() if name in named}
        for name, depth in depths.items():
            if depth is None or name not in columns or name not in self.positions:
                continue
            deepest = recorded.get(name) if isinstance(recorded, Mapping) else None
            if depth < 1 or (deepest is not None and depth > deepest):
                raise ConfigError(
                    f"depth {depth} of {name!r} is outside 1..{deepest}, the depth that was recorded; "
                    f"record again with a larger depth"
                )
            if (beyond := self.positions[name] > depth).any():
                columns[name] = np.where(beyond, np.nan, columns[name])
        if all(columns.get(name) is column for name, column in self.columns.items()):
            return self
        masked = replace(self, columns=columns)
        if len(self) <= KEPT_ROWS:  # another strategy finds there what this computes
            self.derived[key] = masked
        return masked


def _kinds() -> Any:  # noqa: ANN401 -- a module
    from steelyard import retrievers  # when it is first asked: a table alone loads no store

    return retrievers


def ranks(table: SignalTable, values: Floats, rows: Bools, name: str = "") -> Floats:
    """Rank rows within each query, from 1, by value descending and ties by ascending id; NaN elsewhere.

    `values` float64[N] are finite on `rows` bool[N]. `name` is the list of another engine that they are of: ties
    keep its order.
    """
    of, among, known = table.derived.get(key := ("ranks", id(values)), (None, None, None))
    if of is values and np.array_equal(among, rows):
        return np.asarray(known)
    places = np.flatnonzero(rows)
    query = table.query[places]
    offsets = np.searchsorted(places, table.offsets)
    ranked = np.full(len(table), np.nan)
    theirs = table.others_places.get(name)
    best = best_first(offsets, values[places], None if theirs is None else theirs[places])
    ranked[places[best]] = np.arange(len(places)) - offsets[query] + 1
    if len(table) <= KEPT_ROWS and any(values is column for column in table.columns.values()):
        table.derived[key] = values, rows, ranked
    return ranked


def best_first(offsets: Indices, values: Floats, ties: Ints | None = None) -> Indices:
    """Sort the values of each query, best first, by the tie rule of the project: int64[n], indices into `values`.

    Query q has the values (float64[n], without NaN) ``offsets[q]:offsets[q+1]``. Equal values ascend by `ties`,
    int32[n], then by id: rows are stored so, and the sort is stable. Queries are sorted one by one: it is faster
    than all at once because each fits the processor's cache.
    """
    order = np.empty(len(values), dtype=np.int64)
    falling = -values
    for begin, end in itertools.pairwise(offsets.tolist()):
        if ties is None:
            order[begin:end] = begin + np.argsort(falling[begin:end], kind="stable")
        else:
            order[begin:end] = begin + np.lexsort((ties[begin:end], falling[begin:end]))
    return order


def per_query(table: SignalTable, rows: Bools, reduce: np.ufunc, values: Floats, empty: float) -> Floats:
    """Reduce `values` (float64[N]) over the given rows of each query, `empty` where it has none; float64[Q].

    Each query is reduced over its own contiguous rows, so its result does not depend on other queries.
    """
    places = np.flatnonzero(rows)
    counts = np.bincount(table.query[places], minlength=len(table.queries))
    result = np.full(len(table.queries), empty)
    if len(places):
        begin = np.concatenate(([0], np.cumsum(counts)[:-1]))[counts > 0]
        result[counts > 0] = reduce.reduceat(values[places], begin)
    return result


def count_rows(table: SignalTable, rows: Bools) -> Indices:
    """Count the given rows (bool[N]) of each query; int64[Q]."""
    return np.bincount(table.query[rows], minlength=len(table.queries)).astype(np.int64)
