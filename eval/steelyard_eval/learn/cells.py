"""The counts of a log: how often each entry was shown at each place of a query, and acted upon there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.learn.acts import KINDS, POSITIVE
from steelyard_eval.learn.tally import column_sums, sums
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
