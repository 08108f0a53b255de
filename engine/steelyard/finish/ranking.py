"""Ranked lists of many queries, and the one rule that sorts them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Floats, Ints
from steelyard.table.signal_table import SignalTable, best_first


@dataclass(frozen=True)
class Ranking:
    """Ranked lists of many queries, best first, as CSR.

    Attributes
    ----------
    offsets : int64[Q+1]
        Query q has the places ``offsets[q]:offsets[q+1]``.
    row : int64[R]
        Indices of table rows.
    score : float64[R]
        Their scores.
    """

    offsets: NDArray[np.int64]
    row: NDArray[np.int64]
    score: Floats

    def keep(self, kept: NDArray[np.bool_]) -> Ranking:
        """Return the same lists with only the given places (bool[R])."""
        before = np.concatenate(([0], np.cumsum(kept)))
        return Ranking(before[self.offsets].astype(np.int64), self.row[kept], self.score[kept])


def order(table: SignalTable, scores: Floats, ties: Ints | None = None) -> Ranking:
    """Sort the scored rows of every query: score descending, then id ascending by bytes.

    `scores` is float64[N], NaN for rows that are not ranked; `ties` int32[N] comes before the id, see `Plan.ties`.
    """
    row = np.flatnonzero(~np.isnan(scores))
    offsets = np.searchsorted(row, table.offsets).astype(np.int64)
    row = row[best_first(offsets, scores[row], None if ties is None else ties[row])]
    return Ranking(offsets, row.astype(np.int64), scores[row])
