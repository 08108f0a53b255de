"""The pivot of the design: one table of signals, for one live query or for a whole recording.

Rows are (query, entry) pairs in CSR order: the rows of query ``q`` are ``offsets[q]:offsets[q+1]``,
sorted by entry. ``entry`` indexes ``entries``, the ids sorted by their UTF-8 bytes, so the one tie
rule (score descending, then id ascending by bytes) is an integer comparison.

A column is ``float64[N]``. A *retriever* column says which entries its retriever returned: NaN means
"not returned", which is not 0. It comes with ``positions``: the place of each row in the list whose
depth the retriever cuts (1 is best, 0 is absent). Filters that act after that cut leave gaps in the
positions, never in the ranks. A *scorer* column holds a number for every row.

Facts are stored once per entry or once per query; signals such as recency are derived from them on
read, so that half-lives and severity maps can be tuned on a recording.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from steelyard.arrays import Bools as Bools  # others import them from here
from steelyard.arrays import Floats as Floats
from steelyard.arrays import Indices as Indices
from steelyard.arrays import Ints as Ints
from steelyard.entry import Entry
from steelyard.errors import ConfigError, nearest
from steelyard.query import Query
from steelyard.retrievers import RETRIEVER_KINDS, SCORER_KINDS, layers_read

RETRIEVERS = frozenset(RETRIEVER_KINDS)
"""Signals with a value only for the entries they returned."""
SCORERS = frozenset(SCORER_KINDS)
"""Signals computed for every candidate, whoever found it."""
FETCHED = RETRIEVERS | SCORERS
"""Signals that stand in the table as columns; the others are derived from facts."""
LAYERS = tuple(kind.name for kind in RETRIEVER_KINDS.values() if kind.whole)
"""Signals that cover every entry in scope; layered strategies gate them themselves."""
ASIDE = frozenset(kind.name for kind in RETRIEVER_KINDS.values() if kind.aside is not None)
"""Signals of entries that are searched beside the others and merged when the list is finished."""
FINDERS = RETRIEVERS - ASIDE - frozenset(LAYERS)
"""Signals whose lists, cut at a depth, make the candidates of strategies that name no retriever."""
EMBEDDING = frozenset(name for name in FETCHED if layers_read({name}))
"""Signals that need the query's embedding."""

NUMBER_FACTS = (
    "importance",
    "created_at",
    "updated_at",
    "last_accessed_at",
    "valid_from",
    "valid_until",
)
LABEL_FACTS = ("severity", "domain")
FACT_FIELDS = (*NUMBER_FACTS, *LABEL_FACTS, "tags")
"""What has to be read of an entry for its facts."""


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
    """A word a position, as codes int32[n] into a vocabulary."""

    codes: Ints
    words: tuple[str, ...]

    @classmethod
    def of(cls, labels: Iterable[str]) -> Labels:
        """Encode labels, in their order."""
        codes: dict[str, int] = {}
        found = np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int32)
        return cls(found, tuple(codes))

    def equal(self, word: str) -> Bools:
        """bool[n]: where the label is this word."""
        same: Bools = self.codes == (self.words.index(word) if word in self.words else -1)
        return same

    def in_terms_of(self, other: Labels) -> Ints:
        """int32[n]: the codes these words have in another vocabulary, -1 where they have none."""
        code = {word: at for at, word in enumerate(other.words)}
        return np.array([code.get(word, -1) for word in self.words] or [-1], dtype=np.int32)[self.codes]


@dataclass(frozen=True)
class Facts:
    """What signals are computed from: numbers (NaN where unknown), labels, and tag sets, by position."""

    numbers: Mapping[str, Floats]
    labels: Mapping[str, Labels]
    tags: TagSets


NO_FACTS = Facts({}, {}, TagSets(np.zeros(1, np.int64), np.zeros(0, np.int32)))
"""The facts of a table that was made for a strategy that needs none."""


def entry_facts(entries: Sequence[Entry], tag_codes: dict[str, int]) -> Facts:
    """Facts of entries, in their order; `tag_codes` is shared with the query facts."""
    numbers = {
        name: np.array([np.nan if (v := getattr(e, name)) is None else v for e in entries], dtype=np.float64)
        for name in NUMBER_FACTS
    }
    labels = {name: Labels.of(getattr(e, name) for e in entries) for name in LABEL_FACTS}
    return Facts(numbers, labels, TagSets.of((e.tags for e in entries), tag_codes))


def query_facts(queries: Sequence[Query], clocks: Sequence[float], tag_codes: dict[str, int]) -> Facts:
    """Facts of queries, in their order: the clock (seconds UTC), intent, domain and tags."""
    labels = {name: Labels.of(getattr(q, name) for q in queries) for name in ("intent", "domain")}
    return Facts(
        {"clock": np.array(clocks, dtype=np.float64)}, labels, TagSets.of((q.tags for q in queries), tag_codes)
    )


@dataclass(frozen=True)
class SignalTable:
    """Signals of query-candidate pairs; see the module for the layout.

    Attributes
    ----------
    queries : ids of the Q queries.
    entries : ids of the E entries, sorted by bytes.
    offsets : int64[Q+1]; entry : int32[N], ascending within each query.
    columns : name -> float64[N]; positions : retriever name -> int32[N].
    about : facts of the entries; asked : facts of the queries.
    fingerprint : what replay cannot change (models, tokenizers, depths ...), JSON values.
    directory : int32[E], the entry whose abstract and overview stand for each entry; itself where it has its
        own or lies in no directory. None where every entry is its own.
    """

    queries: tuple[str, ...]
    entries: tuple[str, ...]
    offsets: Indices
    entry: Ints
    columns: Mapping[str, Floats]
    positions: Mapping[str, Ints]
    about: Facts
    asked: Facts
    fingerprint: Mapping[str, object] = field(default_factory=dict)
    directory: Ints | None = None

    def __len__(self) -> int:
        return len(self.entry)

    @cached_property
    def query(self) -> Ints:
        """int32[N]: the query each row belongs to."""
        return np.repeat(np.arange(len(self.queries), dtype=np.int32), np.diff(self.offsets))

    @cached_property
    def home(self) -> Indices:
        """int64[N]: the row of each row's directory for the same query, -1 where the query has no such row."""
        rows = np.arange(len(self), dtype=np.int64)
        if self.directory is None:
            return rows
        first = self.query.astype(np.int64) * len(self.entries)
        keys, wanted = first + self.entry, first + self.directory[self.entry]
        at = np.minimum(np.searchsorted(keys, wanted), max(len(self) - 1, 0))
        found: Indices = np.where(keys[at] == wanted, at, -1) if len(self) else rows
        return found

    @cached_property
    def exists(self) -> Bools:
        """bool[N]: the candidates, rows that fts, bm25, vector or a recorded list returned."""
        found = np.zeros(len(self), dtype=bool)
        for name in self.columns.keys() - SCORERS - ASIDE - set(LAYERS):
            found |= ~np.isnan(self.columns[name])
        return found

    def column(self, name: str) -> Floats:
        """The column of a signal, float64[N]; ConfigError when it was not recorded."""
        if name not in self.columns:
            remedy = (
                "; record it, and name it among the configuration's retrievers"
                if name in FETCHED
                else nearest(name, FETCHED | self.columns.keys())
            )
            held = ", ".join(sorted(self.columns)) or "none"
            raise ConfigError(f"signal {name!r} is not in this table (it holds {held}){remedy}")
        return self.columns[name]

    def at_depth(self, depths: Mapping[str, int | None]) -> SignalTable:
        """Keep the retrievers named, and of each the first `depth` places of its list (None: all of them).

        Ranks, counts and maxima are taken from the result, never from a deeper list. A retriever that is
        not named is no part of the configuration, so its column goes.
        Raises ConfigError for a depth below 1 or beyond the depth that was recorded.
        """
        recorded = self.fingerprint.get("max_depth", {})
        columns = {name: c for name, c in self.columns.items() if name in depths or name in SCORERS}
        for name, depth in depths.items():
            if depth is None or name not in columns or name not in self.positions:
                continue
            deepest = recorded.get(name) if isinstance(recorded, Mapping) else None
            if depth < 1 or (deepest is not None and depth > deepest):
                raise ConfigError(
                    f"depth {depth} of {name!r} is outside 1..{deepest}, the depth that was recorded; "
                    f"record again with a larger depth"
                )
            columns[name] = np.where(self.positions[name] <= depth, columns[name], np.nan)
        return replace(self, columns=columns)

    def slice(self, begin: int, end: int) -> SignalTable:
        """The table of the queries begin..end-1: views of this one's rows, so that a mapped file is not read.

        Facts of entries are shared as they are.
        """
        first, last = int(self.offsets[begin]), int(self.offsets[end])
        return replace(
            self,
            queries=self.queries[begin:end],
            offsets=self.offsets[begin : end + 1] - first,
            entry=self.entry[first:last],
            columns={name: values[first:last] for name, values in self.columns.items()},
            positions={name: values[first:last] for name, values in self.positions.items()},
            asked=_facts_of(self.asked, begin, end),
        )


def _facts_of(facts: Facts, begin: int, end: int) -> Facts:
    """The facts of the positions begin..end-1, as views."""
    ends = facts.tags.offsets[begin : end + 1]
    return Facts(
        {name: values[begin:end] for name, values in facts.numbers.items()},
        {name: Labels(own.codes[begin:end], own.words) for name, own in facts.labels.items()},
        TagSets(ends - ends[0], facts.tags.codes[ends[0] : ends[-1]]),
    )


def ranks(table: SignalTable, values: Floats, rows: Bools) -> Floats:
    """Rank from 1 of each of the given rows within its query, by value descending, ties by id.

    Returns float64[N], NaN outside `rows`.
    """
    at = np.flatnonzero(rows)
    query = table.query[at]
    offsets = np.searchsorted(at, table.offsets)
    ranked = np.full(len(table), np.nan)
    ranked[at[best_first(offsets, values[at])]] = np.arange(len(at)) - offsets[query] + 1
    return ranked


def best_first(offsets: Indices, values: Floats) -> Indices:
    """The one tie rule: int64[n], the order of each query's values (float64[n], no NaN), best first.

    Rows are stored by ascending id, so a stable sort leaves ties in id order. Queries are sorted one by one,
    which is faster than all at once: each fits the cache.
    """
    order = np.empty(len(values), dtype=np.int64)
    falling = -values
    for begin, end in itertools.pairwise(offsets.tolist()):
        order[begin:end] = begin + np.argsort(falling[begin:end], kind="stable")
    return order


def per_query(table: SignalTable, rows: Bools, reduce: np.ufunc, values: Floats, empty: float) -> Floats:
    """Reduce `values` over the given rows of each query; float64[Q], `empty` where it has none.

    Each query is reduced over its own contiguous rows, so the result does not depend on the others.
    """
    at = np.flatnonzero(rows)
    counts = np.bincount(table.query[at], minlength=len(table.queries))
    result = np.full(len(table.queries), empty)
    if len(at):
        begin = np.concatenate(([0], np.cumsum(counts)[:-1]))[counts > 0]
        result[counts > 0] = reduce.reduceat(values[at], begin)
    return result


def count_rows(table: SignalTable, rows: Bools) -> Indices:
    """Number of the given rows in each query; int64[Q]."""
    return np.bincount(table.query[rows], minlength=len(table.queries)).astype(np.int64)
