"""What every strategy is: an immutable value that prints, parses back, compiles to a plan.

The rows an expression ranks are those that one of the retrievers it mentions returned; an
expression of scorers and priors alone ranks every candidate of the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.grammar import number_text
from steelyard.signals import PRIORS
from steelyard.table import FINDERS, SCORERS, Bools, SignalTable

Needs = dict[str, Bools]


class Expr(ABC):
    """A node of a strategy. Subclasses are frozen dataclasses, so equality and hash come for free."""

    @abstractmethod
    def children(self) -> tuple[Expr, ...]:
        """The expressions directly below."""

    @abstractmethod
    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """The plan that ranks those of the rows `within` that this expression ranks."""

    @abstractmethod
    def without(self, missing: Collection[str]) -> Expr | None:
        """The strategy that is left when these signals cannot be had; None when nothing is."""

    def signals(self) -> frozenset[str]:
        """Names of all signals mentioned."""
        return frozenset().union(*(child.signals() for child in self.children()))

    def retrievers(self) -> frozenset[str]:
        """Names of the signals mentioned that bring rows: retrievers, and recorded lists of other engines."""
        return frozenset(name for name in self.signals() if name not in SCORERS and name not in PRIORS)

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """bool[N]: those of the rows `within` that this expression ranks; see the module."""
        finders = self._finders()
        if not finders:
            return within
        found = np.zeros(len(table), dtype=bool)
        for child in finders:
            found |= child.members(table, within)
        return found

    def everywhere(self, table: SignalTable) -> Bools:
        """bool[N]: the rows it may rank where nothing around it says which; candidates for scorers alone."""
        return np.ones(len(table), dtype=bool) if self.retrievers() else table.exists

    def _finders(self) -> list[Expr]:
        """The children that bring rows of their own; the others score what those found."""
        return [child for child in self.children() if child.retrievers()]

    def needs(self, table: SignalTable, retrievers: Collection[str]) -> Needs:
        """Which fetched signals are needed for which queries, as far as the table can tell.

        Search fetches what is named, joins it to the table and asks again until nothing new is
        named. `retrievers` are those of the system; an expression of scorers alone needs them all.
        """
        finders = self._finders()
        others = [child.signals() for child in self.children() if child not in finders]
        names = frozenset().union(*others, self.signals() if not self.children() else ()) - PRIORS.keys()
        if not self.retrievers():
            names |= FINDERS & frozenset(retrievers)
        everywhere = np.ones(len(table.queries), dtype=bool)
        needed = dict.fromkeys(sorted(names), everywhere)
        for child in finders:
            needed = join_needs(needed, child.needs(table, retrievers))
        return needed


@dataclass(frozen=True, slots=True)
class Term:
    """A weighted part of a linear fusion."""

    weight: float
    expr: Expr

    def __str__(self) -> str:
        return f"{number_text(self.weight)}*{self.expr}"


def join_needs(first: Needs, second: Mapping[str, Bools]) -> Needs:
    """The union of two answers."""
    joined = dict(first)
    for name, queries in second.items():
        joined[name] = joined[name] | queries if name in joined else queries
    return dict(sorted(joined.items()))


def terms_without(terms: tuple[Term, ...], missing: Collection[str]) -> tuple[Term, ...]:
    """The parts that can still be computed; none when no part is left that finds entries."""
    pairs = ((term.weight, term.expr.without(missing)) for term in terms)
    left = tuple(Term(weight, expr) for weight, expr in pairs if expr is not None)
    return left if _find(left) or not _find(terms) else ()


def _find(terms: tuple[Term, ...]) -> bool:
    return any(term.expr.retrievers() for term in terms)


def nested(expr: Expr, table: SignalTable, within: Bools) -> tuple[Column, Bools]:
    """An inner expression as a raw column, and the rows where it has a value.

    A single column passes through as it is, so that `explain` shows no empty level.
    """
    plan = expr.compile(table, within)
    present = np.zeros(len(table), dtype=bool)
    for branch in plan.branches:
        present |= branch.rows
    if len(plan.branches) == 1 and is_bare(plan.branches[0]):
        return plan.branches[0].columns[0], present
    return Column(str(expr), plan.scores(), str(expr), inner=plan), present


def is_bare(branch: Branch) -> bool:
    """True for one column of weight 1 and nothing else."""
    return len(branch.columns) == 1 and branch.weights == (1.0,) and branch.factor is None
