"""Strategies around strategies: by what a first search found, by a query's intent, and multiplied by factors."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, cast

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.fusion.node import Available, Description, Expr, Fallback, Needs, Signal, Term, join_needs
from steelyard.fusion.plan import Plan
from steelyard.grammar import number_text
from steelyard.node import opt
from steelyard.signals import PRIORS
from steelyard.table.signal_table import SignalTable, count_rows, ranks


class Routed(Expr):
    """What ranks each query by one of its children alone."""

    routes: ClassVar[bool] = True

    @abstractmethod
    def routed(self, table: SignalTable, within: Bools) -> Iterable[tuple[Bools, Expr]]:
        """The rows that each child may rank, bool[N]; the signals of one that has none may not be fetched."""

    def _routed(self, table: SignalTable, within: Bools) -> Iterator[tuple[Bools, Expr]]:
        return ((rows, expr) for rows, expr in self.routed(table, within) if rows.any())

    def members(self, table: SignalTable, within: Bools) -> Bools:
        members = np.zeros(len(table), dtype=bool)
        for rows, expr in self._routed(table, within):
            members |= expr.members(table, rows)
        return members

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        plans = (expr.compile(table, rows) for rows, expr in self._routed(table, within))
        return Plan(len(table), tuple(branch for plan in plans for branch in plan.branches))


@dataclass(frozen=True)
class Tiered(Routed):
    """Ranks by `first` where it ranks at least `min_results` entries, and by `then` for the other queries.

    So an expensive search runs only where a cheap one found too little (EchoVault). All entries found count, also
    where a strategy around it asks for some of them; with `least` only those that score so much by `first`. With
    `disputed` that strategy stands for `then` where one entry alone counts, and the lists that `then` adds found
    entries, of which another one leads each (EchoVault since c4348a6).
    """

    shown_as: ClassVar[str] = "tiered"

    first: Expr = opt(kind="strategy", bare=True)
    min_results: int = opt(3, low=0, integer=True, tried=(1, 3, 5, 10, 20, 50))
    then: Expr = opt(kind="strategy", late=True)
    least: float | None = opt(None, quiet=True)
    disputed: Expr | None = opt(None, kind="strategy", quiet=True)

    @classmethod
    def initial_strategies(cls, there: Available) -> dict[str, list[str]]:
        # Each list that may answer alone, before the RRF of those behind it and of each further one.
        return {
            f"{first} first" if len(there.tiers) > 1 else cls.shown_as: [
                f"tiered({first}, min_results=10, then=rrf({', '.join((*behind, *more))}))"
                for more in there.additions
            ]
            for first, behind in there.tiers.items()
        }

    def describe(self) -> Description:
        if self.least is not None or self.disputed:
            return Description("tiered(...) counts by least= and disputed=, which a hybrid query cannot say")
        few = f"the first finds fewer than {self.min_results}"
        why = f"tiered(...) runs its second tier only where {few}; a hybrid query always fuses all lists"
        return Fallback(why, first=self.first, then=self.then, min_results=self.min_results)

    def without(self, missing: Collection[str]) -> Expr | None:
        first, then = self.first.without(missing), self.then.without(missing)
        if first is None or then is None:
            return first or then
        # Where the second tier loses a signal, the first answers alone.
        disputed = self.disputed and self.disputed.without(missing)
        return replace(self, first=first, disputed=disputed) if then == self.then else first

    def needs(self, table: SignalTable, retrievers: Collection[str]) -> Needs:
        needed = self.first.needs(table, retrievers)
        if any(queries.any() for name, queries in needed.items() if name not in table.columns):
            return needed
        # The second tier is fetched only for the queries where the first found too little.
        counted = self.first.at_least(self.least, table, self.first.everywhere(table))
        short = count_rows(table, counted) < self.min_results
        for expr in self.children[1:]:
            later = expr.needs(table, retrievers)
            needed = join_needs(needed, {name: queries & short for name, queries in later.items()})
        return needed

    def routed(self, table: SignalTable, within: Bools) -> Iterable[tuple[Bools, Expr]]:
        everywhere = self.first.everywhere(table)  # all that was found decides, as in `needs`, not what is within
        counted = self.first.at_least(self.least, table, everywhere)
        enough = (count_rows(table, counted) >= self.min_results)[table.query]
        yield within & everywhere & enough, self.first
        other = ~enough & self._disputes(table, counted)[table.query]
        yield within & self.then.everywhere(table) & ~enough & ~other, self.then
        if self.disputed:
            yield within & self.disputed.everywhere(table) & other, self.disputed

    def _disputes(self, table: SignalTable, counted: Bools) -> Bools:
        """The queries of which one entry counts, and another one leads each list that `then` adds, bool[Q]."""
        found, leads = np.zeros((2, len(table.queries)), dtype=bool)
        for name in (self.then.retrievers - self.first.retrievers) & table.columns.keys() if self.disputed else ():
            held = ~np.isnan(table.columns[name])
            found |= count_rows(table, held) > 0
            leads |= count_rows(table, counted & (ranks(table, table.columns[name], held, name) == 1)) > 0
        disputes: Bools = (count_rows(table, counted) == 1) & found & ~leads
        return disputes


@dataclass(frozen=True)
class ByIntent(Routed):
    """Ranks each query by the strategy of its intent, or by the default when it has none (system-spec-kit)."""

    shown_as: ClassVar[str] = "by intent"
    beyond: ClassVar[str] = "it is another strategy for each intent; export each in a file of its own"
    by_query: ClassVar[bool] = True

    default: Expr = opt(kind="strategy")
    cases: tuple[tuple[str, Expr], ...] = opt((), kind="cases")

    @classmethod
    def initial_strategies(cls, there: Available) -> dict[str, list[str]]:
        cases = [", ".join(f"{case}={mixture}" for case in ("default", *there.intents)) for mixture in there.sums]
        return {cls.shown_as: [f"{cls.keyword}({case})" for case in cases if there.intents]}

    def without(self, missing: Collection[str]) -> Expr | None:
        default = self.default.without(missing)
        left = ((intent, expr.without(missing)) for intent, expr in self.cases)
        cases = tuple((intent, expr) for intent, expr in left if expr is not None)
        return None if default is None else replace(self, default=default, cases=cases)

    def needs(self, table: SignalTable, retrievers: Collection[str]) -> Needs:
        needed: Needs = {}
        for queries, expr in self.routes_of(table):
            if queries.any():
                needs = expr.needs(table, retrievers)
                needed = join_needs(needed, {name: asked & queries for name, asked in needs.items()})
        return needed

    def active_branch(self, table: SignalTable) -> Expr:
        return next(expr for queries, expr in self.routes_of(table) if queries[0]).active_branch(table)

    def routed(self, table: SignalTable, within: Bools) -> Iterable[tuple[Bools, Expr]]:
        routes = self.routes_of(table)
        return ((within & expr.everywhere(table) & queries[table.query], expr) for queries, expr in routes)

    def routes_of(self, table: SignalTable) -> list[tuple[Bools, Expr]]:
        """The strategies, each with its queries (bool[Q])."""
        intents = table.query_facts.labels["intent"]
        named = [(intents.equal(intent), expr) for intent, expr in self.cases]
        return [(~intents.equal(*(intent for intent, _ in self.cases)), self.default), *named]


def intents_of(strategy: Expr) -> frozenset[str]:
    """Return the intents that change what the strategy, a part of it, or one of its signals does."""
    cases = (intent for node in strategy.walk() if isinstance(node, ByIntent) for intent, _ in node.cases)
    return frozenset(cases).union(*(PRIORS[name].intents for name in strategy.signals & PRIORS.keys()))


@dataclass(frozen=True)
class Boost(Expr):
    """``score * product of (1 + weight * (factor - 1))``, the product kept within `low` and `high`.

    Factors are signals that every entry has. A weight of 1 multiplies by the factor as it is, 0 switches it off.
    The weights that tuning moves are those of the strategy inside; other weights of factors are variants.
    """

    shown_as: ClassVar[str] = "boosted"
    beyond: ClassVar[str] = "it multiplies scores by factors"
    wraps: ClassVar[bool] = True

    expr: Expr = opt(kind="strategy", bare=True)
    factors: tuple[Term, ...] = opt(kind="terms", bare=True)
    low: float = opt(0.1, low=0, quiet=True)
    high: float = opt(10.0, low=0, quiet=True)

    @classmethod
    def initial_strategies(cls, there: Available) -> dict[str, list[str]]:
        factors = product(there.fused[:1], ("", "0.5*"), (*there.factors, *there.facts))
        return {cls.shown_as: [f"boost(rrf({lists}), {amount}{fact})" for lists, amount, fact in factors]}

    def problems(self) -> Iterator[str]:
        if self.low > self.high:
            low, high = number_text(self.low), number_text(self.high)
            yield f"boost: low = {low} is above high = {high}; exchange them"
        for term in self.factors:
            if not isinstance(term.expr, Signal) or term.expr.retrievers:
                yield f"boost: {term.expr} is not a factor; name one that every entry has, such as decay"

    def variants(self) -> Iterator[Expr]:
        yield self  # then each factor at several strengths, the others as they are; and none of them at all
        for i, term in enumerate(self.factors):
            for amount in (0.0, 0.5, 1.0):
                if amount != term.weight:
                    changed = (*self.factors[:i], Term(amount, term.expr), *self.factors[i + 1 :])
                    yield replace(self, factors=changed)
        off = tuple(Term(0.0, term.expr) for term in self.factors)
        if len(off) > 1 and off != self.factors:
            yield replace(self, factors=off)

    def without(self, missing: Collection[str]) -> Expr | None:
        expr = self.expr.without(missing)
        left = tuple(term for term in self.factors if term.expr.without(missing) is not None)
        return replace(self, expr=expr, factors=left) if expr is not None and left else expr

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        parts: dict[str, Floats] = {}
        whole = np.ones(len(table))
        for term in self.factors:
            part = 1.0 + term.weight * (cast(Signal, term.expr).derived(table).values - 1.0)
            whole = whole * part
            if term.weight:
                parts[str(term.expr) if term.weight == 1 else str(term)] = part
        factor = np.clip(whole, self.low, self.high)
        text = f"product of 1 + weight * (factor - 1), within {number_text(self.low)}..{number_text(self.high)}"
        branches = []
        for branch in self.expr.compile(table, within).branches:
            known, formula, both = branch.factor_inputs, text, factor
            if branch.factor is not None:
                known = known or {branch.factor_formula: branch.factor}
                formula, both = f"{branch.factor_formula}, and {text}", branch.factor * factor
            inputs = {**known, **parts}
            branches.append(replace(branch, factor=both, factor_formula=formula, factor_inputs=inputs))
        return Plan(len(table), tuple(branches))
