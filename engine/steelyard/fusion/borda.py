"""Borda fusion (Aslam and Montague, SIGIR 2001): each list gives points to the candidates of the query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.fusion.plan import Column
from steelyard.fusion.sums import Sum
from steelyard.table.signal_table import SignalTable, count_rows, ranks


@dataclass(frozen=True)
class Borda(Sum):
    """``sum of weight * points``: with c candidates, the first of a list gets c points, the next c - 1, and so on.

    The candidates missing from a list of n share the points that are left, ``(c - n + 1) / 2`` each. The
    candidates are the entries that this expression ranks.
    """

    keyword: ClassVar[str] = "borda"
    shown_as: ClassVar[str] = "Borda"
    no_counterpart: ClassVar[str] = "a list gives points there to what it holds only"

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools) -> Column:
        place = ranks(table, column.values, present, column.only_list(table))
        candidates, listed = (count_rows(table, some)[table.query].astype(np.float64) for some in (rows, present))
        points = np.where(present, candidates - place + 1, (candidates - listed + 1) / 2)
        formula = f"c - rank in {column.label} + 1, (c - n + 1) / 2 when not in the list"
        inputs = {"rank": place, column.label: column.values, "c, candidates": candidates, "n, listed": listed}
        return Column(column.label, np.where(rows, points, 0.0), formula, inputs, column.inner)

    def _why(self) -> str:
        return "Borda count"
