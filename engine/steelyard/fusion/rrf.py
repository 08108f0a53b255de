"""Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009) with convergence bonuses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from steelyard.fusion.base import Expr, Term, nested, terms_without
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.grammar import number_text
from steelyard.table import Bools, Floats, SignalTable, ranks


@dataclass(frozen=True, slots=True)
class Bonus:
    """What an entry found by two or more lists gets.

    times(x): its score times 1 + x; once(x): plus x; each(x): plus x for every list after the first.
    """

    kind: str
    amount: float

    def __str__(self) -> str:
        return f"{self.kind}({number_text(self.amount)})"


@dataclass(frozen=True)
class Rrf(Expr):
    """``sum of weight / (k + rank)`` over the lists that hold the entry; ranks start at 1."""

    terms: tuple[Term, ...]
    k: float = 60.0
    bonus: Bonus | None = None

    def children(self) -> tuple[Expr, ...]:
        """The expressions whose rankings are fused."""
        return tuple(term.expr for term in self.terms)

    def without(self, missing: Collection[str]) -> Expr | None:
        """The fusion of the lists that are left."""
        terms = terms_without(self.terms, missing)
        return Rrf(terms, self.k, self.bonus) if terms else None

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """One branch, a column ``1 / (k + rank)`` a list; the bonus is a factor or a last column."""
        rows = self.members(table, within)
        columns: list[Column] = []
        lists = np.zeros(len(table))
        for term in self.terms:
            column, present = nested(term.expr, table, rows)
            lists += present
            columns.append(self._reciprocal(table, column, present))
        weights = [term.weight for term in self.terms]
        factor = None
        if self.bonus is not None and self.bonus.kind == "times":
            factor = np.where(lists >= 2, 1.0 + self.bonus.amount, 1.0)
        elif self.bonus is not None:
            columns.append(Column("lists after the first", self._extra(lists), "convergence", {"lists": lists}))
            weights.append(self.bonus.amount)
        why = f"reciprocal rank fusion, k = {number_text(self.k)}"
        branch = Branch(rows, tuple(columns), tuple(weights), why, factor, f"bonus {self.bonus}")
        return Plan(len(table), (branch,))

    def _reciprocal(self, table: SignalTable, column: Column, present: Bools) -> Column:
        place = ranks(table, column.values, present)
        values = np.where(present, 1.0 / (self.k + place), 0.0)
        formula = f"1 / (k + rank in {column.label}), 0 when not in the list"
        return Column(column.label, values, formula, {"rank": place, column.label: column.values}, column.inner)

    def _extra(self, lists: Floats) -> Floats:
        beyond = np.maximum(lists - 1.0, 0.0)
        return beyond if self.bonus is not None and self.bonus.kind == "each" else np.minimum(beyond, 1.0)

    def __str__(self) -> str:
        parts = [str(term.expr) if term.weight == 1 else str(term) for term in self.terms]
        parts.append(f"k={number_text(self.k)}")
        if self.bonus is not None:
            parts.append(f"bonus={self.bonus}")
        return f"rrf({', '.join(parts)})"
