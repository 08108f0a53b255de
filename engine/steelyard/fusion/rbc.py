"""Rank-biased centroids (Bailey, Moffat, Scholer and Thomas, SIGIR 2017)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from steelyard.base.arrays import Bools
from steelyard.fusion.base import Description, Expr
from steelyard.fusion.call import CallReader
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.fusion.sums import Sum, ranked_column
from steelyard.grammar import number_text
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True)
class Rbc(Sum):
    """``sum of weight * (1 - phi) * phi^(rank - 1)``: a reader continues to the next entry with probability phi.

    `phi` is at least 0 and below 1. At 0 only the first entry of each list counts.
    """

    keyword: ClassVar[str] = "rbc"
    shown_as: ClassVar[str] = "RBC"
    PHI: ClassVar = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)

    phi: float = 0.8

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """Read the terms and phi; a weight that is not written is 1."""
        phi = call.number("phi", 0.8, 0.0, below=1.0)
        call.finish("phi")
        return cls(call.terms(1.0), phi)

    def variants(self) -> Iterator[Expr]:
        """Iterate over the values of phi that tuning tries."""
        yield from (replace(self, phi=phi) for phi in sorted({*self.PHI, self.phi}))

    def coordinates(self) -> tuple[float, ...]:
        """Return phi."""
        return (self.phi,)

    def describe(self) -> Description:
        """State that other search engines have no such fusion."""
        return Description("rbc(...) has no counterpart: no hybrid query adds powers of a persistence")

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to one branch with a column ``(1 - phi) * phi^(rank - 1)`` for each list."""
        rows = self.members(table, within)
        columns = tuple(self._gain(table, column, present) for column, present in self._columns(table, rows))
        why = f"rank-biased centroid, phi = {number_text(self.phi)}"
        return Plan(len(table), (Branch(rows, columns, self.weights, why),))

    def _gain(self, table: SignalTable, column: Column, present: Bools) -> Column:
        formula = f"(1 - phi) * phi^(rank in {column.label} - 1), 0 when not in the list"
        return ranked_column(table, column, present, lambda rank: (1 - self.phi) * self.phi ** (rank - 1), formula)

    def __str__(self) -> str:
        return f"rbc({', '.join([*self._bare_terms(), f'phi={number_text(self.phi)}'])})"
