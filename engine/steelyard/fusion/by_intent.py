"""A strategy for each query intent (system-spec-kit)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.fusion.available import Available
from steelyard.fusion.base import Description, Expr, Needs, join_needs
from steelyard.fusion.call import CallReader, Family
from steelyard.fusion.plan import Plan
from steelyard.fusion.progress import Progress, progress_of_all
from steelyard.signals import PRIORS
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True)
class ByIntent(Family):
    """Ranks each query by the strategy of its intent, or by the default when the intent has none."""

    keyword: ClassVar[str] = "by_intent"
    shown_as: ClassVar[str] = "by intent"
    routes: ClassVar[bool] = True
    by_query: ClassVar[bool] = True

    default: Expr
    cases: tuple[tuple[str, Expr], ...] = ()

    @classmethod
    def starts(cls, there: Available) -> dict[str, list[str]]:
        """A weighted sum for each intent, all alike at first."""
        cases = [", ".join(f"{case}={mixture}" for case in ("default", *there.intents)) for mixture in there.sums]
        return {cls.shown_as: [f"{cls.keyword}({case})" for case in cases if there.intents]}

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """Read each option as an intent and its strategy; `default` is required."""
        if call.call.items:
            call.fault("by_intent takes default= and one intent=strategy each; name the strategies")
        default = call.branch("default", call.take("default"))
        return cls(default, tuple((intent, call.branch(intent, value)) for intent, value in call.rest().items()))

    def children(self) -> tuple[Expr, ...]:
        """Return the default and the cases, in the order written."""
        return (self.default, *(expr for _, expr in self.cases))

    def with_children(self, children: Sequence[Expr]) -> Self:
        """Return other strategies for the same intents."""
        default, *others = children
        return type(self)(default, tuple(zip((intent for intent, _ in self.cases), others, strict=True)))

    def describe(self) -> Description:
        """State that it is not one fusion of lists."""
        return Description("by_intent(...) is another strategy for each intent; export each in a file of its own")

    def without(self, missing: Collection[str]) -> Expr | None:
        """Drop the cases that cannot be computed; None when the default cannot."""
        default = self.default.without(missing)
        if default is None:
            return None
        left = ((intent, expr.without(missing)) for intent, expr in self.cases)
        return ByIntent(default, tuple((intent, expr) for intent, expr in left if expr is not None))

    def needs(self, table: SignalTable, retrievers: Collection[str]) -> Needs:
        """List what each strategy needs, for the queries of its intent."""
        needed: Needs = {}
        for queries, expr in self._routes(table):
            if queries.any():
                needs = expr.needs(table, retrievers)
                needed = join_needs(needed, {name: asked & queries for name, asked in needs.items()})
        return needed

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """Return the rows of the strategy that answers each query."""
        members = np.zeros(len(table), dtype=bool)
        for rows, expr in self._rows(table, within):
            members |= expr.members(table, rows)
        return members

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile every strategy, each restricted to its own queries."""
        plans = (expr.compile(table, rows) for rows, expr in self._rows(table, within))
        return Plan(len(table), tuple(branch for plan in plans for branch in plan.branches))

    def answering(self, table: SignalTable) -> Expr:
        """That of the query's intent."""
        return next(expr for queries, expr in self._routes(table) if queries[0]).answering(table)

    def progress(self, table: SignalTable) -> Progress | None:
        """Each strategy's, of the queries of its intent."""
        parts = ((queries, expr.progress(table)) for queries, expr in self._routes(table) if queries.any())
        return progress_of_all(part and part.of(queries) for queries, part in parts)

    def _rows(self, table: SignalTable, within: Bools) -> Iterator[tuple[Bools, Expr]]:
        """The rows that each strategy may rank, bool[N], where there are any."""
        for queries, expr in self._routes(table):
            rows = within & expr.everywhere(table) & queries[table.query]
            if rows.any():
                yield rows, expr

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
    """Return the intents that change what the strategy, a part of it, or one of its signals does."""
    intents = frozenset(intent for intent, _ in strategy.cases) if isinstance(strategy, ByIntent) else frozenset()
    signals = (PRIORS[name].intents for name in strategy.signals() & PRIORS.keys())
    return intents.union(*signals, *map(intents_of, strategy.children()))
