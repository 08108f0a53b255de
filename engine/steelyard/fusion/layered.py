"""Scores an entry by its layers, abstract to details, when the first layer passes a threshold (Cortex-Mem)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from steelyard.arrays import Bools
from steelyard.fusion.base import Expr
from steelyard.fusion.description import Description
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.fusion.reading import Reading
from steelyard.fusion.sums import Sum
from steelyard.grammar import number_text
from steelyard.table import SignalTable, count_rows


@dataclass(frozen=True)
class Layered(Sum):
    """``0.2*l0 + 0.3*l1 + 0.5*l2`` over the entries whose first layer reaches the threshold.

    For a query with no entry at `threshold`, the steps of `relax` below it are tried in order; when
    none finds an entry, every entry is ranked by the last layer alone. A layer that an entry lacks
    adds 0.
    """

    keyword: ClassVar[str] = "layered"
    shown_as: ClassVar[str] = "layered"
    THRESHOLDS: ClassVar = (0.2, 0.3, 0.4, 0.5, 0.6)

    threshold: float = 0.5
    relax: tuple[float, ...] = (0.4, 0.3)

    @classmethod
    def read(cls, call: Reading) -> Self:
        """Read the layers, coarse to fine, each with its weight; layers cannot be nested."""
        threshold = call.number("threshold", 0.5, -1.0)
        relax = call.take("relax")
        if relax is not None and not isinstance(relax, tuple):
            call.bad("relax", relax, "must be a list of thresholds such as [0.4, 0.3]")
            relax = None
        call.finish("threshold", "relax")
        terms = call.terms(None)
        if any(_holds_layers(term.expr) for term in terms):  # each would double the work of those around it
            call.fault("layered inside layered; name the layers l0, l1, l2 in one")
        return cls(terms, threshold, (0.4, 0.3) if relax is None else relax)

    def variants(self) -> Iterator[Expr]:
        """Iterate over the thresholds that tuning tries."""
        yield from (replace(self, threshold=step) for step in sorted({*self.THRESHOLDS, self.threshold}))

    def coordinates(self) -> tuple[float, ...]:
        """Return the threshold."""
        return (self.threshold,)

    def describe(self) -> Description:
        """State that it is not one fusion of lists."""
        return Description(
            "layered(...) gates entries by their first layer and relaxes; a hybrid query has no gate"
        )

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """Return the entries that pass the threshold, or those with the last layer where none passes."""
        layers, fallback = self.compile(table, within).branches
        return layers.rows | fallback.rows

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to two branches: the gated layers, and the last layer for queries where no entry passed.

        Layers are computed over every row that has one, so that the threshold does not change their scales.
        """
        rows = super().members(table, self.everywhere(table) if self._finders() else within)
        pairs = self._columns(table, rows)
        gated, passed = self._gate(table, *pairs[0])
        columns = tuple(_filled(column, present) for column, present in pairs)
        layers = Branch(gated & within, columns, self.weights, "layers, coarse to fine")
        last, present = pairs[-1]
        alone = present & ~passed[table.query] & within
        fallback = Branch(alone, (_filled(last, present),), (1.0,), "last layer alone")
        return Plan(len(table), (layers, fallback))

    def _gate(self, table: SignalTable, first: Column, present: Bools) -> tuple[Bools, Bools]:
        """The rows that pass their query's threshold, bool[N], and the queries where any does, bool[Q]."""
        gated = np.zeros(len(table), dtype=bool)
        passed = np.zeros(len(table.queries), dtype=bool)
        for step in (self.threshold, *(s for s in self.relax if s < self.threshold)):
            above = present & (first.values >= step) & ~passed[table.query]
            gated |= above
            passed |= count_rows(table, above) > 0
        return gated, passed

    def __str__(self) -> str:
        steps = ", ".join(number_text(step) for step in self.relax)
        options = f"threshold={number_text(self.threshold)}, relax=[{steps}]"
        return f"layered({', '.join(map(str, self.terms))}, {options})"


def _holds_layers(expr: Expr) -> bool:
    return isinstance(expr, Layered) or any(map(_holds_layers, expr.children()))


def _filled(column: Column, present: Bools) -> Column:
    values = np.where(present, column.values, 0.0)
    return Column(column.label, values, column.formula, column.inputs, column.inner)
