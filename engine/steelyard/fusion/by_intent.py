"""Another strategy for another intent (system-spec-kit)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from steelyard.fusion.base import Expr, Needs, join_needs
from steelyard.fusion.plan import Branch, Plan
from steelyard.table import Bools, SignalTable


@dataclass(frozen=True)
class ByIntent(Expr):
    """The strategy named for the query's intent, else the default."""

    default: Expr
    cases: tuple[tuple[str, Expr], ...] = ()

    def children(self) -> tuple[Expr, ...]:
        """The default and the cases, in the order written."""
        return (self.default, *(expr for _, expr in self.cases))

    def without(self, missing: Collection[str]) -> Expr | None:
        """The cases that are left; the default decides whether anything is."""
        default = self.default.without(missing)
        if default is None:
            return None
        left = ((intent, expr.without(missing)) for intent, expr in self.cases)
        return ByIntent(default, tuple((intent, expr) for intent, expr in left if expr is not None))

    def needs(self, table: SignalTable, retrievers: Collection[str]) -> Needs:
        """Each strategy's needs, for the queries of its intent."""
        needed: Needs = {}
        for queries, expr in self._routes(table):
            if queries.any():
                own = expr.needs(table, retrievers)
                needed = join_needs(needed, {name: asked & queries for name, asked in own.items()})
        return needed

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """The rows of the strategy that answers each query."""
        found = np.zeros(len(table), dtype=bool)
        for queries, expr in self._routes(table):
            rows = within & expr.everywhere(table) & queries[table.query]
            if rows.any():
                found |= expr.members(table, rows)
        return found

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """The branches of every strategy, each restricted to its own queries."""
        branches: tuple[Branch, ...] = ()
        for queries, expr in self._routes(table):
            rows = within & expr.everywhere(table) & queries[table.query]
            if rows.any():
                branches += expr.compile(table, rows).branches
        return Plan(len(table), branches)

    def _routes(self, table: SignalTable) -> list[tuple[Bools, Expr]]:
        intents = table.asked.labels["intent"]
        named = [(intents.equal(intent), expr) for intent, expr in self.cases]
        taken = np.zeros(len(intents.codes), dtype=bool)
        for queries, _ in named:
            taken |= queries
        return [(~taken, self.default), *named]

    def __str__(self) -> str:
        return f"by_intent({', '.join([f'default={self.default}', *(f'{i}={e}' for i, e in self.cases)])})"


def intents_of(strategy: Expr) -> frozenset[str]:
    """The intents for which the strategy, or a part of it, has another strategy than its default."""
    own = frozenset(intent for intent, _ in strategy.cases) if isinstance(strategy, ByIntent) else frozenset()
    return own.union(*map(intents_of, strategy.children()))
