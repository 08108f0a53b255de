"""A fusion whose scores are multiplied by factors of the rows: what kind of document, how important, how old."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, cast

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.fusion.available import Available
from steelyard.fusion.base import Description, Expr, Term
from steelyard.fusion.call import FAULTY, CallReader, Family
from steelyard.fusion.plan import Branch, Plan
from steelyard.fusion.signal import Signal
from steelyard.grammar import number_text
from steelyard.table.signal_table import SignalTable

LOW, HIGH = 0.1, 10.0
"""The bounds of the product where none are written."""


@dataclass(frozen=True)
class Boost(Family):
    """``score * product of (1 + weight * (factor - 1))``, the product kept within `low` and `high`.

    A weight of 1 multiplies by the factor as it is, 0 switches it off.
    """

    keyword: ClassVar[str] = "boost"
    shown_as: ClassVar[str] = "boosted"
    wraps: ClassVar[bool] = True
    AMOUNTS: ClassVar = (0.0, 0.5, 1.0)

    expr: Expr
    factors: tuple[Term, ...]
    low: float = LOW
    high: float = HIGH

    @classmethod
    def starts(cls, there: Available) -> dict[str, list[str]]:
        """The RRF of the lists, boosted by each signal that is derived from facts, in full and by half."""
        boosted = [
            f"boost(rrf({lists}), {amount}{fact})"
            for lists in there.fused[:1]
            for amount in ("", "0.5*")
            for fact in (*there.factors, *there.facts)
        ]
        return {cls.shown_as: boosted}

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """The strategy first, without a weight; then the factors, each 1 unless a weight is written."""
        low, high = call.number("low", LOW, 0.0), call.number("high", HIGH, 0.0)
        call.finish("low", "high")
        if low > high:
            call.fault(f"boost: low = {number_text(low)} is above high = {number_text(high)}; exchange them")
        first, *others = call.terms(1.0)
        if not others or call.call.items[0].weight is not None:
            call.fault(
                "boost takes an unweighted strategy and at least one factor, "
                "as in boost(rrf(fts, vector), 0.5*decay)"
            )
        for term in others:
            if not isinstance(term.expr, Signal) or term.expr.retrievers():
                call.fault(f"boost: {term.expr} is not a factor; name one that every entry has, such as decay")
        known = [Term(t.weight, t.expr) for t in others if isinstance(t.expr, Signal)]
        return cls(first.expr, tuple(known) or (Term(1.0, call.build(FAULTY)),), low, high)

    def children(self) -> tuple[Expr, ...]:
        """The strategy and the factors."""
        return (self.expr, *(term.expr for term in self.factors))

    def with_children(self, children: Sequence[Expr]) -> Self:
        """Another strategy and other factors under the same weights."""
        first, *others = children
        weights = (term.weight for term in self.factors)
        return replace(self, expr=first, factors=tuple(map(Term, weights, others)))

    @property
    def own_terms(self) -> tuple[Term, ...]:
        """The factors."""
        return self.factors

    def with_terms(self, terms: Sequence[Term]) -> Self:
        """The same strategy under other factors."""
        return replace(self, factors=tuple(terms))

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of the strategy inside. Factors are multiplied, so their weights are variants."""
        return self.expr.weights

    def _weighed(self, weights: list[float]) -> Self:
        return replace(self, expr=self.expr.with_weights(weights))

    def variants(self) -> Iterator[Expr]:
        """Each factor at several strengths, the others as they are; and none of them at all."""
        yield self
        for i, term in enumerate(self.factors):
            for amount in self.AMOUNTS:
                if amount != term.weight:
                    changed = (*self.factors[:i], Term(amount, term.expr), *self.factors[i + 1 :])
                    yield replace(self, factors=changed)
        off = tuple(Term(0.0, term.expr) for term in self.factors)
        if len(off) > 1 and off != self.factors:
            yield replace(self, factors=off)

    def describe(self) -> Description:
        """What it is."""
        names = ", ".join(str(term.expr) for term in self.factors)
        return Description(f"boost(...) multiplies scores by {names}, which has no counterpart")

    def without(self, missing: Collection[str]) -> Expr | None:
        """The strategy that is left, under the factors that are left."""
        expr = self.expr.without(missing)
        left = tuple(term for term in self.factors if term.expr.without(missing) is not None)
        if expr is None or not left:
            return expr
        return replace(self, expr=expr, factors=left)

    def answering(self, table: SignalTable) -> Expr:
        """The fusion inside."""
        return self.expr.answering(table)

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """The rows of the strategy."""
        return self.expr.members(table, within)

    def everywhere(self, table: SignalTable) -> Bools:
        """The rows that the strategy inside may rank."""
        return self.expr.everywhere(table)

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """The branches of the strategy, their factors multiplied by ours."""
        parts = {
            _written(term): 1.0 + term.weight * (cast(Signal, term.expr).derived(table).values - 1.0)
            for term in self.factors
        }
        product = np.ones(len(table))
        for term in self.factors:
            product = product * parts[_written(term)]
        factor = np.clip(product, self.low, self.high)
        text = f"product of 1 + weight * (factor - 1), within {number_text(self.low)}..{number_text(self.high)}"
        acting = {_written(term): parts[_written(term)] for term in self.factors if term.weight}
        inner = self.expr.compile(table, within).branches
        return Plan(len(table), tuple(_times(branch, factor, text, acting) for branch in inner))

    def __str__(self) -> str:
        parts = [str(self.expr), *map(_written, self.factors)]
        parts += [f"low={number_text(self.low)}"] if self.low != LOW else []
        parts += [f"high={number_text(self.high)}"] if self.high != HIGH else []
        return f"boost({', '.join(parts)})"


def _written(factor: Term) -> str:
    return str(factor.expr) if factor.weight == 1 else str(factor)


def _times(branch: Branch, factor: Floats, text: str, parts: dict[str, Floats]) -> Branch:
    if branch.factor is None:
        return replace(branch, factor=factor, factor_formula=text, factor_inputs=parts)
    known = dict(branch.factor_inputs) or {branch.factor_formula: branch.factor}
    both = f"{branch.factor_formula}, and {text}"
    return replace(branch, factor=branch.factor * factor, factor_formula=both, factor_inputs=known | parts)
