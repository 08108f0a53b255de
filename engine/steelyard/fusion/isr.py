"""Inverse square rank fusion (Mourao, Martins and Magalhaes, Computerized Medical Imaging and Graphics, 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.fusion.base import Description
from steelyard.fusion.call import CallReader
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.fusion.sums import Sum, count_lists, ranked_column
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True)
class Isr(Sum):
    """``number of lists that contain the entry * sum of weight / rank^2``; ranks start at 1."""

    keyword: ClassVar[str] = "isr"
    shown_as: ClassVar[str] = "ISR"
    factor_formula: ClassVar[str] = "lists that hold it"

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """Read the terms; a weight that is not written is 1."""
        call.finish()
        return cls(call.terms(1.0))

    def describe(self) -> Description:
        """State that other search engines have no such fusion."""
        return Description(f"{self.keyword}(...) has no counterpart: no hybrid query adds 1 / rank^2")

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to one branch: a column ``1 / rank^2`` for each list, and the factor as a multiplier."""
        rows = self.members(table, within)
        pairs = self._columns(table, rows)
        columns = tuple(_inverse_square(table, column, present) for column, present in pairs)
        factor, formula = self._factor(count_lists(pairs)), self.factor_formula
        branch = Branch(rows, columns, self.weights, "inverse square rank", factor, formula, f"times {formula}")
        return Plan(len(table), (branch,))

    def _factor(self, lists: Floats) -> Floats:
        return lists

    def __str__(self) -> str:
        return f"{self.keyword}({', '.join(self._bare_terms())})"


@dataclass(frozen=True)
class LogIsr(Isr):
    """``log(number of lists that contain the entry) * sum of weight / rank^2``; an entry of one list scores 0."""

    keyword: ClassVar[str] = "log_isr"
    shown_as: ClassVar[str] = "log ISR"
    factor_formula: ClassVar[str] = "log(lists that hold it)"

    def _factor(self, lists: Floats) -> Floats:
        found: Floats = np.log(np.maximum(lists, 1.0))
        return found


def _inverse_square(table: SignalTable, column: Column, present: Bools) -> Column:
    formula = f"1 / (rank in {column.label})^2, 0 when not in the list"
    return ranked_column(table, column, present, lambda rank: 1.0 / (rank * rank), formula)
