"""A fusion in one file: every list counts by the discount of DCG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.fusion.plan import Column
from steelyard.fusion.sums import Sum, ranked_column
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True)
class Discounted(Sum):
    """``sum of weight / log2(rank + 1)`` over the lists that hold the entry; ranks start at 1."""

    keyword: ClassVar[str] = "discounted"
    shown_as: ClassVar[str] = "discounted ranks"
    no_counterpart: ClassVar[str] = "no hybrid query adds 1 / log2(rank + 1)"

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools) -> Column:
        formula = f"1 / log2(rank in {column.label} + 1), 0 when not in the list"
        return ranked_column(table, column, present, lambda rank: 1.0 / np.log2(rank + 1.0), formula)
