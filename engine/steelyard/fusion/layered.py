"""From abstracts to details: layers of one entry, gated by the first (Cortex-Mem)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from steelyard.fusion.base import Expr, Term, nested, terms_without
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.grammar import number_text
from steelyard.table import Bools, SignalTable, count_rows


@dataclass(frozen=True)
class Layered(Expr):
    """``0.2*l0 + 0.3*l1 + 0.5*l2`` over the entries whose first layer reaches the threshold.

    A query whose first layer finds nothing at `threshold` tries the steps of `relax` below it, in
    order; when the last finds nothing, every entry is ranked by the last layer alone. A layer that
    an entry lacks adds 0.
    """

    terms: tuple[Term, ...]
    threshold: float = 0.5
    relax: tuple[float, ...] = (0.4, 0.3)

    def children(self) -> tuple[Expr, ...]:
        """The layers, coarse to fine."""
        return tuple(term.expr for term in self.terms)

    def without(self, missing: Collection[str]) -> Expr | None:
        """The layers that are left."""
        terms = terms_without(self.terms, missing)
        return Layered(terms, self.threshold, self.relax) if terms else None

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """The entries that pass the gate; where none does, those that have the last layer."""
        layers, fallback = self.compile(table, within).branches
        return layers.rows | fallback.rows

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Two branches: the gated layers, and the last layer where the gate stayed empty.

        Layers are computed over every row that has one, so that the gate does not move their scales.
        """
        rows = super().members(table, self.everywhere(table) if self._finders() else within)
        pairs = [nested(term.expr, table, rows) for term in self.terms]
        gated, passed = self._gate(table, *pairs[0])
        columns = tuple(_filled(column, present) for column, present in pairs)
        weights = tuple(term.weight for term in self.terms)
        layers = Branch(gated & within, columns, weights, "layers, coarse to fine")
        last, present = pairs[-1]
        alone = present & ~passed[table.query] & within
        fallback = Branch(alone, (_filled(last, present),), (1.0,), "last layer alone")
        return Plan(len(table), (layers, fallback))

    def _gate(self, table: SignalTable, first: Column, present: Bools) -> tuple[Bools, Bools]:
        """bool[N] rows that pass their query's threshold, and bool[Q] queries where any does."""
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


def _filled(column: Column, present: Bools) -> Column:
    values = np.where(present, column.values, 0.0)
    return Column(column.label, values, column.formula, column.inputs, column.inner)
