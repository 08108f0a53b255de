"""The six combinations of Fox and Shaw (TREC-2, 1993): sum, MNZ, ANZ, median, maximum, minimum.

Only the lists that contain an entry count. Fox and Shaw normalise scores to 0..1 first, so `normalize` is
minmax by default. Sums take weights, 1 when left out; a median, maximum or minimum takes none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.fusion.base import Linear
from steelyard.fusion.call import CallReader
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.fusion.sums import ListColumns, NormalizedSum, count_lists, times
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True)
class _Comb(NormalizedSum):
    """What the six have in common."""

    no_counterpart: ClassVar[str] = "a hybrid query adds the scores of lists up"

    normalize: str = "minmax"


@dataclass(frozen=True)
class CombSum(_Comb):
    """``sum of weight * normalize(signal)`` over the lists that contain the entry."""

    keyword: ClassVar[str] = "comb_sum"
    shown_as: ClassVar[str] = "CombSUM"

    def describe(self) -> Linear:
        """Describe it as the weighted sum that it is."""
        return Linear("", self.terms, self.normalize)


@dataclass(frozen=True)
class CombMnz(_Comb):
    """CombSUM times the number of lists that contain the entry."""

    keyword: ClassVar[str] = "comb_mnz"
    shown_as: ClassVar[str] = "CombMNZ"

    def _multiplied(self, branch: Branch, lists: ListColumns) -> Branch:
        return times(branch, count_lists(lists), "lists that hold it")


@dataclass(frozen=True)
class CombAnz(_Comb):
    """CombSUM divided by the number of lists that contain the entry."""

    keyword: ClassVar[str] = "comb_anz"
    shown_as: ClassVar[str] = "CombANZ"

    def _multiplied(self, branch: Branch, lists: ListColumns) -> Branch:
        return times(branch, 1.0 / np.maximum(count_lists(lists), 1.0), "1 / lists that hold it")


@dataclass(frozen=True)
class CombMed(_Comb):
    """The median over the lists that contain the entry; for an even number, the mean of the middle two."""

    keyword: ClassVar[str] = "comb_med"
    shown_as: ClassVar[str] = "CombMED"
    combine: ClassVar[str] = "median"

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """Read the terms; a weight is a fault, because it would not mean what it means in a sum."""
        if any(item.weight is not None for item in call.call.items):
            call.fault(f"{cls.keyword} takes no weights; drop them, or use comb_sum")
        return super().read(call)

    @property
    def weights(self) -> tuple[float, ...]:
        """Always empty."""
        return ()

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to one branch of one column, which combines the lists that contain each row."""
        rows = self.members(table, within)
        lists = self._columns(table, rows)
        scaled = (self._scaled(table, *pair, rows) for pair in lists)
        parts = tuple(
            replace(column, values=np.where(present, column.values, np.nan))
            for column, (_, present) in zip(scaled, lists, strict=True)
        )
        values = np.where(rows, self._combined(np.array([part.values for part in parts])), 0.0)
        formula = f"{self.combine} over the lists that hold it"
        column = Column(str(self), values, formula, parts=parts, combine=self.combine)
        return Plan(len(table), (Branch(rows, (column,), (1.0,), self.shown_as),))

    def _combined(self, values: Floats) -> Floats:
        """Combine float64[lists, N], NaN where a list does not contain the row, to float64[N]."""
        ordered = np.sort(values, axis=0)  # NaN comes last
        held = np.maximum((~np.isnan(values)).sum(axis=0), 1)
        low, high = (np.take_along_axis(ordered, row[None, :], axis=0)[0] for row in ((held - 1) // 2, held // 2))
        middle: Floats = np.where(low == high, low, (low + high) / 2)
        return middle


@dataclass(frozen=True)
class CombMax(CombMed):
    """The maximum over the lists that contain the entry."""

    keyword: ClassVar[str] = "comb_max"
    shown_as: ClassVar[str] = "CombMAX"
    combine: ClassVar[str] = "max"

    def _combined(self, values: Floats) -> Floats:
        greatest: Floats = np.fmax.reduce(values, axis=0)
        return greatest


@dataclass(frozen=True)
class CombMin(CombMed):
    """The minimum over the lists that contain the entry."""

    keyword: ClassVar[str] = "comb_min"
    shown_as: ClassVar[str] = "CombMIN"
    combine: ClassVar[str] = "min"

    def _combined(self, values: Floats) -> Floats:
        least: Floats = np.fmin.reduce(values, axis=0)
        return least
