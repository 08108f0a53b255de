"""The counts of a log: how often each entry was shown at each place of a query, and acted upon there.

What is learned from a list are its entries, their places and what was done with them, whatever engine made it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.learn.reader import Log
from steelyard_eval.learn.tally import KINDS, POSITIVE, column_sums, sums
from steelyard_eval.learn.top10 import PLACES, LoggedPairs


@dataclass(frozen=True)
class PositionCounts:
    """Counts by (row of the pairs, place), joined to the rows of `LoggedPairs`.

    Attributes
    ----------
    row : int64[M], ascending; place : int64[M], from 0
    shown : float64[M]
        How often the entry was shown there.
    acts : float64[M, A]
        How often it was acted upon there, by the kinds of `acts.KINDS`; the sum is at most `shown`.
    query : int64[M]
        The query of each cell.
    """

    row: Indices
    place: Indices
    shown: Floats
    acts: Floats
    query: Indices

    @classmethod
    def of(cls, pairs: LoggedPairs, row: Indices, place: Indices, shown: Floats, acts: Floats) -> PositionCounts:
        """Count equal (row, place) pairs together; rows of -1 are left out."""
        keep = row >= 0
        known, inverse = np.unique(row[keep] * PLACES + place[keep], return_inverse=True)
        counted = sums(inverse, shown[keep], len(known))
        by_kind = column_sums(inverse, acts[keep], len(known))
        rows = known // PLACES
        return cls(rows, known % PLACES, counted, _at_most(by_kind, counted), pairs.query[rows])

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


def _at_most(acts: Floats, shown: Floats) -> Floats:
    """Acts brought down to the number of shows, where repeated ones exceed it."""
    total = acts.sum(axis=1)
    return np.asarray(acts * np.minimum(1.0, shown / np.maximum(total, 1e-12))[:, None], dtype=np.float64)


@dataclass(frozen=True)
class MatchedImpressions:
    """The counts of a log, matched to queries and entries of a recording; M keys.

    Attributes
    ----------
    policy, query, fold, entry, place : int64[M]; mixed, largest : bool[M]
        `Log.columns`; `entry` is -1 for one that is in no recording, `query` for one that was not recorded.
    shown : float64[M]; acts : float64[M, A]
    """

    policy: Indices
    mixed: Bools
    query: Indices
    fold: Indices
    largest: Bools
    entry: Indices
    place: Indices
    shown: Floats
    acts: Floats

    @classmethod
    def of(cls, log: Log, query_of: Indices, entry_of: Indices) -> MatchedImpressions:
        """Translate a log's numbers: `query_of` to queries of a recording, `entry_of` to its entries.

        Both are int64, -1 for what it lacks; the last of `entry_of` stands for unknown entries.
        """
        policy, mixed, query, fold, largest, entry, place = log.columns
        return cls(
            policy,
            mixed > 0,
            query_of[query],
            fold,
            largest > 0,
            entry_of[entry],
            place,
            log.tally.shown,
            log.tally.acts,
        )

    @property
    def known(self) -> Bools:
        """bool[M]: whose query and entry are known."""
        return np.asarray((self.query >= 0) & (self.entry >= 0), dtype=np.bool_)

    @property
    def listless(self) -> bool:
        """Whether every list is one entry that was acted upon: a tally, such as Soleri keeps, and no lists."""
        acted = self.acts.sum(axis=1) >= self.shown - 1e-9
        return bool(len(acted)) and bool(acted.all()) and not self.place.any()

    def cells(self, pairs: LoggedPairs, part: Bools | slice = slice(None)) -> PositionCounts:
        """The counts, or a part of them, by rows of the pairs."""
        row = pairs.find(self.query[part], self.entry[part])
        return PositionCounts.of(pairs, row, self.place[part], self.shown[part], self.acts[part])
