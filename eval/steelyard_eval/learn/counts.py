"""The counts of a log: how often each entry was shown at each place of a query, and acted upon there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.feedback.log import ACTIONS
from steelyard_eval.learn.top10 import PLACES, LoggedPairs

KINDS = ACTIONS
CODE = {kind: at for at, kind in enumerate(KINDS)}
NEGATIVE_KINDS = frozenset({"dismissed", "failed", "thumbs_down", "none_useful"})
"""Acts that speak against an entry; all others speak for it."""
POSITIVE = np.array([kind not in NEGATIVE_KINDS for kind in KINDS])  # bool[A]: which kinds speak for an entry
EVERYTHING_SHOWN = "none_useful"  # the act on a whole list: nothing in it was of use
WORTH = np.array([1.0 if kind != EVERYTHING_SHOWN else 0.1 for kind in KINDS])
"""float64[A]: what one act counts as. That on a whole list is one act, shared by its ten places."""


@dataclass(frozen=True)
class PositionCounts:
    """Counts by (row of the pairs, place), joined to the rows of `LoggedPairs`."""

    row: Indices  # int64[M], ascending
    place: Indices  # int64[M], from 0
    shown: Floats  # float64[M]: how often the entry was shown there
    acts: Floats  # float64[M, A]: how often it was acted upon there, by `KINDS`; the sum is at most `shown`
    query: Indices  # int64[M]: the query of each cell

    @classmethod
    def of(cls, pairs: LoggedPairs, row: Indices, place: Indices, shown: Floats, acts: Floats) -> PositionCounts:
        """Count equal (row, place) pairs together; rows of -1 are left out."""
        keep = row >= 0
        cell, counted, by_kind = grouped(row[keep] * PLACES + place[keep], shown[keep], acts[keep])
        # Repeated acts may exceed the number of shows.
        share = np.minimum(1.0, counted / np.maximum(by_kind.sum(axis=1), 1e-12))
        rows = cell // PLACES
        return cls(rows, cell % PLACES, counted, by_kind * share[:, None], pairs.query[rows])

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def positive(self) -> Floats:
        """float64[M]: acts of the kinds that speak for an entry."""
        return np.asarray(self.acts[:, POSITIVE].sum(axis=1), dtype=np.float64)

    @cached_property
    def queries(self) -> Indices:
        """The distinct queries, ascending; int64."""
        return np.unique(self.query)

    def where(self, kept: Bools) -> PositionCounts:
        """Some of the cells; bool[M]."""
        names = "row", "place", "shown", "acts", "query"
        return replace(self, **{name: getattr(self, name)[kept] for name in names})

    def on(self, queries: Indices) -> PositionCounts:
        """The cells of some queries."""
        return self.where(np.isin(self.query, queries))

    def by_kind(self) -> dict[str, int]:
        """How many acts there are of each kind that occurs."""
        totals = self.acts.sum(axis=0)
        return {kind: int(total) for kind, total in zip(KINDS, totals, strict=True) if total > 0}


@dataclass(frozen=True)
class Hits:
    """The counts of a log, M of them: numbers of query and entry, -1 for one that is in no recording."""

    query: Indices  # int64[M]
    fold: Indices  # int64[M]: of the client
    largest: Bools  # bool[M]: whether they are of the largest client
    entry: Indices  # int64[M]
    place: Indices  # int64[M], from 0
    shown: Floats  # float64[M]
    acts: Floats  # float64[M, A]

    def matched(self, query_of: Indices, entry_of: Indices) -> Hits:
        """The same by the numbers of a recording, int64 each; the last of `entry_of` is of unknown entries."""
        return replace(self, query=query_of[self.query], entry=entry_of[self.entry])

    @property
    def known(self) -> tuple[Indices, Indices]:
        """int64[K] each: query and entry where both are known."""
        known = (self.query >= 0) & (self.entry >= 0)
        return self.query[known], self.entry[known]

    @property
    def listless(self) -> bool:
        """Whether every list is one entry that was acted upon: a tally, such as Soleri keeps, and no lists."""
        acted = self.acts.sum(axis=1) >= self.shown - 1e-9
        return bool(len(acted)) and bool(acted.all()) and not self.place.any()

    def cells(self, pairs: LoggedPairs, part: Bools | slice = slice(None)) -> PositionCounts:
        """The counts, or a part of them, by rows of the pairs."""
        row = pairs.find(self.query[part], self.entry[part])
        return PositionCounts.of(pairs, row, self.place[part], self.shown[part], self.acts[part])


def grouped(key: Indices, shown: Floats, acts: Floats) -> tuple[Indices, Floats, Floats]:
    """Counts of equal keys together, by ascending key: int64[M], float64[M] and float64[M, A]."""
    known, inverse = np.unique(key, return_inverse=True)
    return known, sums(inverse, shown, len(known)), column_sums(inverse, acts, len(known))


def sums(numbers: NDArray[np.integer], weights: Floats, size: int = 0) -> Floats:
    """float64[max(size, highest number + 1)]: the sum of the weights of each number."""
    return np.bincount(numbers, weights, size).astype(np.float64, copy=False)


def column_sums(numbers: NDArray[np.integer], columns: Floats, size: int) -> Floats:
    """float64[size, A]: the same of every column of float64[n, A]."""
    summed = np.zeros((size, columns.shape[1]))
    for column in np.flatnonzero(columns.any(axis=0)).tolist():
        summed[:, column] = sums(numbers, columns[:, column], size)
    return summed
