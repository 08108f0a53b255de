"""Rank-biased centroids (Bailey, Moffat, Scholer and Thomas, SIGIR 2017)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from steelyard.base.arrays import Bools
from steelyard.fusion.base import Expr
from steelyard.fusion.call import CallReader
from steelyard.fusion.plan import Column
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
    no_counterpart: ClassVar[str] = "no hybrid query adds powers of a persistence"
    PHI: ClassVar = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)

    phi: float = 0.8

    @classmethod
    def _options(cls, call: CallReader) -> dict[str, object]:
        return {"phi": call.number("phi", cls.phi, 0.0, below=1.0)}

    def variants(self) -> Iterator[Expr]:
        """Iterate over the values of phi that tuning tries."""
        yield from (replace(self, phi=phi) for phi in sorted({*self.PHI, self.phi}))

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools) -> Column:
        formula = f"(1 - phi) * phi^(rank in {column.label} - 1), 0 when not in the list"
        return ranked_column(table, column, present, lambda rank: (1 - self.phi) * self.phi ** (rank - 1), formula)

    def _why(self) -> str:
        return f"rank-biased centroid, phi = {number_text(self.phi)}"

    def _written(self) -> list[str]:
        return [f"phi={number_text(self.phi)}"]
