"""The signal table: one live query or a whole recording, which every strategy is evaluated on.

Rows are (query, entry) pairs in CSR order: the rows of query ``q`` are ``offsets[q]:offsets[q+1]``,
sorted by entry. ``entry`` indexes ``entries``, the ids sorted by their UTF-8 bytes, so the tie rule
(score descending, then id ascending by bytes) is an integer comparison.

A column is ``float64[N]``. In a *retriever* column NaN means "not returned by this retriever", which
is not the same as a score of 0. Each has ``positions``: where a row was in the retriever's list before
it was cut at the depth (1 is best, 0 is absent). Filters that act after that cut leave gaps in the
positions, never in the ranks. A *scorer* column has a number in every row.

Facts are stored once per entry or once per query. Signals such as recency are computed from them when
they are used, so that half-lives and severity maps can be tuned on a recording.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard.base.errors import ConfigError, nearest
from steelyard.embedders.embed import Vectors
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.retrievers import RETRIEVER_KINDS, SCORER_KINDS, layers_read

RETRIEVERS = frozenset(RETRIEVER_KINDS)
"""Signals that have a value only for the entries they returned."""
SCORERS = frozenset(SCORER_KINDS)
"""Signals computed for every candidate, whichever retriever found it."""
FETCHED = RETRIEVERS | SCORERS
"""Signals stored in the table as columns; the others are derived from facts."""
RERANK = "rerank"
"""The column that is filled for the first places of a list alone, and read when the list is finished."""
LAYERS = tuple(kind.name for kind in RETRIEVER_KINDS.values() if kind.whole)
"""Signals with a value for every entry in scope; layered strategies apply their own threshold to them."""
ASIDE = frozenset(kind.name for kind in RETRIEVER_KINDS.values() if kind.aside is not None)
"""Signals of entries that are searched separately and merged into the ranking by a finish stage."""
DEPENDENT = frozenset(kind.name for kind in RETRIEVER_KINDS.values() if kind.after)
"""Signals whose retrievers start from what others found."""
FINDERS = RETRIEVERS - ASIDE - DEPENDENT - frozenset(LAYERS)
"""Signals whose lists, cut at a depth, make the candidates of strategies that name no retriever."""
EMBEDDING = frozenset(name for name in FETCHED if layers_read({name}))
"""Signals that need the query's embedding."""

NUMBER_FACTS = tuple(
    """importance created_at updated_at last_accessed_at valid_from valid_until access_count correction_count
    last_review stability half_life_days length""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
LABEL_FACTS = tuple(
    "severity domain document_type spec_level importance_tier memory_type context_type".split()  # noqa: SIM905 -- as above
)
ENDS = ("low", "high")
"""The facts of a query that say between which ends a retriever's scores can lie, before the name of its signal."""
KEPT_ROWS = 100_000
"""Rows of a table that keeps what was computed of it: a search asks again for its hits, and strategies that are
tried on a recording ask for the same signals; a larger one would fill the memory."""
_numbers, _labels = attrgetter(*NUMBER_FACTS[:-1]), attrgetter(*LABEL_FACTS)
FACT_FIELDS = (*(name for name in NUMBER_FACTS if name != "length"), *LABEL_FACTS, "tags", "text")
"""What has to be read of an entry for its facts; `length` is the number of characters of its text."""


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

    def __iter__(self) -> Iterator[str]:
        return (self.words[code] for code in self.codes.tolist())

    def equal(self, word: str) -> Bools:
        """Where the label is this word; bool[n]."""
        same: Bools = self.codes == (self.words.index(word) if word in self.words else -1)
        return same

    def in_terms_of(self, other: Labels) -> Ints:
        """Translate these labels to the vocabulary of `other`; int32[n], -1 for words it does not contain."""
        code = {word: i for i, word in enumerate(other.words)}
        return np.array([code.get(word, -1) for word in self.words] or [-1], dtype=np.int32)[self.codes]


@dataclass(frozen=True)
class Facts:
    """What signals are computed from: numbers (NaN where unknown), labels and tag sets, each by position."""

    numbers: Mapping[str, Floats]
    labels: Mapping[str, Labels]
    tags: TagSets


NO_FACTS = Facts({}, {}, TagSets(np.zeros(1, np.int64), np.zeros(0, np.int32)))
"""The facts of a table built for a strategy that needs none."""


def entry_facts(entries: Sequence[Entry], tag_codes: dict[str, int]) -> Facts:
    """Collect the facts of entries, in the order given; `tag_codes` is shared with `query_facts`."""
    rows = [(*_numbers(entry), len(entry.text.strip())) for entry in entries]
    numbers = np.array(rows, dtype=np.float64).reshape(-1, len(NUMBER_FACTS)).T.copy()  # None becomes NaN
    words = zip(*map(_labels, entries), strict=True) if entries else repeat((), len(LABEL_FACTS))
    labels = dict(zip(LABEL_FACTS, map(Labels.of, words), strict=True))
    tags = TagSets.of((e.tags for e in entries), tag_codes)
    return Facts(dict(zip(NUMBER_FACTS, numbers, strict=True)), labels, tags)


def query_facts(
    queries: Sequence[Query],
    clocks: Sequence[float],
    tag_codes: dict[str, int],
    ends: Mapping[str, Floats] = MappingProxyType({}),
) -> Facts:
    """Collect the facts of queries, in the order given: clock (seconds UTC), intent, domain, tags, and the ends of
    the scores of retrievers, float64[Q, 2] by signal.
    """
    labels = {name: Labels.of(getattr(q, name) for q in queries) for name in ("intent", "domain")}
    scales = {f"{end} {name}": values[:, i] for name, values in ends.items() for i, end in enumerate(ENDS)}
    numbers = {"clock": np.array(clocks, dtype=np.float64)} | scales
    return Facts(numbers, labels, TagSets.of((q.tags for q in queries), tag_codes))


@dataclass(frozen=True)
class SignalTable:
    """Signals of query-candidate pairs; the module describes the layout.

    Attributes
    ----------
    queries : tuple of str
        Ids of the Q queries.
    entries : tuple of str
        Ids of the E entries, sorted by bytes.
    offsets : int64[Q+1]
        Query q has the rows ``offsets[q]:offsets[q+1]``.
    entry : int32[N]
        Index into `entries` of each row, ascending within each query.
    columns : mapping of str to float64[N]
        Signals by name.
    positions : mapping of str to int32[N]
        Positions in each retriever's list, from 1; 0 where the row is absent.
    about : Facts
        Facts of the E entries.
    asked : Facts
        Facts of the Q queries, among them ``low NAME`` and ``high NAME``: the ends of a retriever's scores.
    fingerprint : mapping
        What replay cannot change (models, tokenizers, depths ...), as JSON values.
    directory : int32[E] or None
        The entry whose abstract and overview stand for each entry; itself where it has its own or lies in no
        directory. None where every entry is its own.
    vectors : float32[E, dim] or None
        The stored vector of each entry, zeros where it has none; None where no stage compares entries.
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
    vectors: Vectors | None = None

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
    def home(self) -> Indices:
        """int64[N]: the row of each row's directory for the same query, -1 where the query has no such row."""
        rows = np.arange(len(self), dtype=np.int64)
        if self.directory is None:
            return rows
        first = self.query.astype(np.int64) * len(self.entries)
        keys, wanted = first + self.entry, first + self.directory[self.entry]
        places = np.minimum(np.searchsorted(keys, wanted), max(len(self) - 1, 0))
        home: Indices = np.where(keys[places] == wanted, places, -1) if len(self) else rows
        return home

    @cached_property
    def exists(self) -> Bools:
        """The candidates: rows that fts, bm25, vector or a recorded list returned; bool[N]."""
        rows = np.zeros(len(self), dtype=bool)
        for name in self.columns.keys() - SCORERS - ASIDE - DEPENDENT - {*LAYERS, RERANK}:
            rows |= ~np.isnan(self.columns[name])
        return rows

    def column(self, name: str) -> Floats:
        """Return the column of a signal, float64[N]; ConfigError when it was not recorded."""
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
        """Mask each named retriever beyond its depth, and drop the retrievers that are not named.

        Ranks, counts and maxima are taken from the result, never from a deeper list.

        Parameters
        ----------
        depths : mapping of str to int or None
            How many positions of each retriever's list to keep; None keeps all of them. A retriever
            that is not named is not part of the configuration, so its column is dropped.

        Raises
        ------
        ConfigError
            For a depth below 1 or beyond the recorded depth.
        """
        key = ("depths", *sorted(depths.items()))
        masked: SignalTable | None = self.derived.get(key)
        if masked is None:
            masked = self._masked(depths)
            if masked is not self and len(self) <= KEPT_ROWS:  # another strategy finds there what this computes
                self.derived[key] = masked
        return masked

    def _masked(self, depths: Mapping[str, int | None]) -> SignalTable:
        recorded = self.fingerprint.get("max_depth", {})
        kept = SCORERS | depths.keys() | {RERANK}
        columns = {name: column for name, column in self.columns.items() if name in kept}
        same = len(columns) == len(self.columns)
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
                columns[name], same = np.where(beyond, np.nan, columns[name]), False
        return self if same else replace(self, columns=columns)

    def slice(self, begin: int, end: int) -> SignalTable:
        """Return the table of the queries begin..end-1, as views, so that a memory-mapped file is not read.

        Facts of entries are shared with this table.
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
        {name: Labels(labels.codes[begin:end], labels.words) for name, labels in facts.labels.items()},
        TagSets(ends - ends[0], facts.tags.codes[ends[0] : ends[-1]]),
    )


def ranks(table: SignalTable, values: Floats, rows: Bools) -> Floats:
    """Rank rows within each query, from 1, by value descending and ties by ascending id.

    Parameters
    ----------
    values : float64[N]
        Finite on `rows`.
    rows : bool[N]
        The rows to rank.

    Returns
    -------
    float64[N]
        The ranks; NaN outside `rows`.
    """
    key = ("ranks", id(values))
    of, among, known = table.derived.get(key, (None, None, None))
    if of is values and np.array_equal(among, rows):
        return np.asarray(known)
    places = np.flatnonzero(rows)
    query = table.query[places]
    offsets = np.searchsorted(places, table.offsets)
    ranked = np.full(len(table), np.nan)
    ranked[places[best_first(offsets, values[places])]] = np.arange(len(places)) - offsets[query] + 1
    if len(table) <= KEPT_ROWS and any(values is column for column in table.columns.values()):
        table.derived[key] = values, rows, ranked
    return ranked


def best_first(offsets: Indices, values: Floats) -> Indices:
    """Sort the values of each query, best first, by the tie rule of the project.

    Rows are stored by ascending id, so a stable sort leaves ties in id order. Queries are sorted one by one,
    which is faster than sorting all at once because each fits the processor's cache.

    Parameters
    ----------
    offsets : int64[Q+1]
        Query q has the values ``offsets[q]:offsets[q+1]``.
    values : float64[n]
        Without NaN.

    Returns
    -------
    int64[n]
        Indices into `values`, best first within each query.
    """
    order = np.empty(len(values), dtype=np.int64)
    falling = -values
    for begin, end in itertools.pairwise(offsets.tolist()):
        order[begin:end] = begin + np.argsort(falling[begin:end], kind="stable")
    return order


def per_query(table: SignalTable, rows: Bools, reduce: np.ufunc, values: Floats, empty: float) -> Floats:
    """Reduce `values` (float64[N]) over the given rows of each query; float64[Q].

    Each query is reduced over its own contiguous rows, so its result does not depend on other queries.
    A query without any of the rows gets `empty`.
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
