"""What every strategy is: an immutable value that prints, parses back, compiles to a plan and describes itself.

The rows an expression ranks are those that one of the retrievers it mentions returned; an
expression of scorers and priors alone ranks every candidate of the table.

Tuning, comparing and exporting work with what a family says of itself (its weights, the variants of its own
parameters, its description), so that a new family needs no change anywhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ConfigError
from steelyard.fusion.description import Description
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.fusion.progress import Progress, together
from steelyard.grammar import number_text
from steelyard.signals import PRIORS
from steelyard.table import FINDERS, SCORERS, Bools, SignalTable

if TYPE_CHECKING:
    from steelyard.fusion.reading import Reading
    from steelyard.fusion.signal import Signal

Needs = dict[str, Bools]


class Expr(ABC):
    """A node of a strategy. Subclasses are frozen dataclasses, so equality and hash come for free."""

    keyword: ClassVar[str] = ""
    """The name of the family in the grammar."""
    shown_as: ClassVar[str] = ""
    """The name of the family in tables and reports."""
    routes: ClassVar[bool] = False
    """Whether each query is answered by one of the children alone."""
    by_query: ClassVar[bool] = False
    """Whether the query alone, and not what was found, decides which child answers it."""

    @classmethod
    @abstractmethod
    def read(cls, call: Reading) -> Self:
        """The expression that a call of this family stands for; faults are collected in `call`."""

    @abstractmethod
    def children(self) -> tuple[Expr, ...]:
        """The expressions directly below."""

    @abstractmethod
    def with_children(self, children: Sequence[Expr]) -> Expr:
        """The same expression over other children, one for each of `children`."""

    @abstractmethod
    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """The plan that ranks those of the rows `within` that this expression ranks."""

    @abstractmethod
    def without(self, missing: Collection[str]) -> Expr | None:
        """The strategy that is left when these signals cannot be had; None when nothing is."""

    @property
    def leaf(self) -> Signal | None:
        """The signal that this expression is; None for a fusion."""
        return None

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights that tuning may move, in the order written.

        They are those of the outermost sums: one set a tier and an intent, since each ranks queries of its own.
        Weights of nested fusions belong to the columns of the sum around them.
        """
        return tuple(weight for child in self.children() for weight in child.weights) if self.routes else ()

    def with_weights(self, weights: ArrayLike) -> Expr:
        """The same expression under other `weights`, float64[len(self.weights)].

        Raises ConfigError when their number is another.
        """
        values = np.asarray(weights, dtype=np.float64).tolist()
        if len(values) != len(self.weights):
            raise ConfigError(f"{len(values)} weights for {self}, which has {len(self.weights)}; give one each")
        return self._weighed(values) if values else self

    def _weighed(self, weights: list[float]) -> Expr:
        """The expression under so many weights as it has."""
        left = iter(weights)
        return self.with_children(
            [child.with_weights([next(left) for _ in child.weights]) for child in self.children()]
        )

    def variants(self) -> Iterator[Expr]:
        """The expression with each value of its own parameters that tuning tries; itself is one of them."""
        yield self

    def coordinates(self) -> tuple[float, ...]:
        """Its own parameters as numbers on a scale of about 1: near variants have near coordinates."""
        return ()

    def describe(self) -> Description:
        """What exporters to other systems may know of it."""
        return Description(f"{self} is not one fusion of lists")

    def progress(self, table: SignalTable) -> Progress | None:
        """How far the layered searches in it went; None where there are none."""
        return together(child.progress(table) for child in self.children())

    def ranks_candidates(self) -> bool:
        """Whether it, or a tier or case in it, names no retriever, and so ranks whatever the system's find."""
        if not self.retrievers():
            return True
        inner = self.children() if self.routes else self._finders()
        return any(child.ranks_candidates() for child in inner)

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


def nested(expr: Expr, table: SignalTable, within: Bools) -> tuple[Column, Bools]:
    """An inner expression as a raw column, and the rows where it has a value.

    A single column passes through as it is, so that `explain` shows no empty level.
    """
    plan = expr.compile(table, within)
    present = np.zeros(len(table), dtype=bool)
    for branch in plan.branches:
        present |= branch.ranked
    if len(plan.branches) == 1 and is_bare(plan.branches[0]):
        return plan.branches[0].columns[0], present
    return Column(str(expr), plan.scores(), str(expr), inner=plan), present


def is_bare(branch: Branch) -> bool:
    """True for one signal of weight 1 and nothing else."""
    alone = len(branch.columns) == 1 and branch.weights == (1.0,) and branch.factor is None
    return alone and branch.floor is None and not branch.columns[0].parts
