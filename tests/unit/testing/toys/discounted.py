"""A fusion in one file: every list counts by the discount of DCG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.fusion.base import Description
from steelyard.fusion.call import CallReader
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.fusion.sums import Sum, ranked_column
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True)
class Discounted(Sum):
    """``sum of weight / log2(rank + 1)`` over the lists that hold the entry; ranks start at 1."""

    keyword: ClassVar[str] = "discounted"
    shown_as: ClassVar[str] = "discounted ranks"

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """A weight that is not written is 1."""
        call.finish()
        return cls(call.terms(1.0))

    def describe(self) -> Description:
        """Why no exporter can write it."""
        return Description("discounted(...) has no counterpart: no hybrid query adds 1 / log2(rank + 1)")

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """One branch with a column for each list."""
        rows = self.members(table, within)
        columns = tuple(_discount(table, column, present) for column, present in self._columns(table, rows))
        return Plan(len(table), (Branch(rows, columns, self.weights, "discounted ranks"),))

    def __str__(self) -> str:
        return f"discounted({', '.join(self._bare_terms())})"


def _discount(table: SignalTable, column: Column, present: Bools) -> Column:
    formula = f"1 / log2(rank in {column.label} + 1), 0 when not in the list"
    return ranked_column(table, column, present, lambda rank: 1.0 / np.log2(rank + 1.0), formula)
