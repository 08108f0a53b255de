"""Weighted sum of normalised signals."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from steelyard.fusion.base import Expr, Term, nested, terms_without
from steelyard.fusion.normalize import NORMALIZERS
from steelyard.fusion.plan import Branch, Plan
from steelyard.table import Bools, SignalTable


@dataclass(frozen=True)
class WeightedSum(Expr):
    """``sum of weight * normalize(signal)``; a signal that did not return the entry adds 0."""

    terms: tuple[Term, ...]
    normalize: str = "none"

    def children(self) -> tuple[Expr, ...]:
        """The expressions that are summed."""
        return tuple(term.expr for term in self.terms)

    def without(self, missing: Collection[str]) -> Expr | None:
        """The sum of the terms that are left, under their own weights."""
        terms = terms_without(self.terms, missing)
        return WeightedSum(terms, self.normalize) if terms else None

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """One branch, one normalised column a term."""
        rows = self.members(table, within)
        columns = []
        for term in self.terms:
            column, present = nested(term.expr, table, rows)
            columns.append(NORMALIZERS[self.normalize](table, column, present))
        weights = tuple(term.weight for term in self.terms)
        return Plan(len(table), (Branch(rows, tuple(columns), weights, "weighted sum"),))

    def __str__(self) -> str:
        parts = [str(term) for term in self.terms]
        if self.normalize != "none":
            parts.append(f"normalize={self.normalize}")
        return f"weighted_sum({', '.join(parts)})"
