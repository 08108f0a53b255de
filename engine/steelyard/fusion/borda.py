"""Borda fusion (Aslam and Montague, SIGIR 2001): each list gives points to the candidates of the query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.fusion.base import Description
from steelyard.fusion.call import CallReader
from steelyard.fusion.plan import Branch, Column, Plan
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

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """Read the terms; a weight that is not written is 1."""
        call.finish()
        return cls(call.terms(1.0))

    def describe(self) -> Description:
        """State that other search engines have no such fusion."""
        return Description("borda(...) has no counterpart: a list gives points there to what it holds only")

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to one branch with a column of points for each list."""
        rows = self.members(table, within)
        columns = tuple(_points(table, column, present, rows) for column, present in self._columns(table, rows))
        return Plan(len(table), (Branch(rows, columns, self.weights, "Borda count"),))

    def __str__(self) -> str:
        return f"borda({', '.join(self._bare_terms())})"


def _points(table: SignalTable, column: Column, present: Bools, rows: Bools) -> Column:
    place = ranks(table, column.values, present)
    candidates, listed = (count_rows(table, one)[table.query].astype(np.float64) for one in (rows, present))
    points = np.where(present, candidates - place + 1, (candidates - listed + 1) / 2)
    formula = f"c - rank in {column.label} + 1, (c - n + 1) / 2 when not in the list"
    inputs = {"rank": place, column.label: column.values, "c, candidates": candidates, "n, listed": listed}
    return Column(column.label, np.where(rows, points, 0.0), formula, inputs, column.inner)
