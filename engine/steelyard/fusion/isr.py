"""Inverse square rank fusion (Mourao, Martins and Magalhaes, Computerized Medical Imaging and Graphics, 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.fusion.plan import Branch, Column
from steelyard.fusion.sums import ListColumns, Sum, count_lists, ranked_column, times
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True)
class Isr(Sum):
    """``number of lists that contain the entry * sum of weight / rank^2``; ranks start at 1."""

    keyword: ClassVar[str] = "isr"
    shown_as: ClassVar[str] = "ISR"
    no_counterpart: ClassVar[str] = "no hybrid query adds 1 / rank^2"

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools) -> Column:
        formula = f"1 / (rank in {column.label})^2, 0 when not in the list"
        return ranked_column(table, column, present, lambda rank: 1.0 / (rank * rank), formula)

    def _multiplied(self, branch: Branch, lists: ListColumns) -> Branch:
        return times(branch, count_lists(lists), "lists that hold it")

    def _why(self) -> str:
        return "inverse square rank"


@dataclass(frozen=True)
class LogIsr(Isr):
    """``log(number of lists that contain the entry) * sum of weight / rank^2``; an entry of one list scores 0."""

    keyword: ClassVar[str] = "log_isr"
    shown_as: ClassVar[str] = "log ISR"

    def _multiplied(self, branch: Branch, lists: ListColumns) -> Branch:
        return times(branch, np.log(np.maximum(count_lists(lists), 1.0)), "log(lists that hold it)")
