"""The base class of strategies, immutable values that print, parse back, and compile to a plan.

An expression ranks the rows that at least one of the retrievers it mentions returned. An
expression of scorers and priors alone ranks every candidate of the table.

Tuning, comparing and exporting use only what each family declares here (its weights, the variants of its
own parameters, its description), so that adding a family changes no other module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from steelyard.base.arrays import Bools
from steelyard.base.errors import ConfigError
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.fusion.progress import Progress, progress_of_all
from steelyard.grammar import number_text
from steelyard.signals import PRIORS
from steelyard.table.signal_table import FINDERS, SCORERS, SignalTable

Needs = dict[str, Bools]
RECIPROCAL = "reciprocal"
"""The scale of RRF: an entry scores ``1 / (k + rank)``, and 0 when it is not in the list."""


Told = TypeVar("Told")
Own = TypeVar("Own", bound="Expr")


def told_once(method: Callable[[Own], Told]) -> Callable[[Own], Told]:
    """What an expression says of itself alone is kept with it: it cannot change, and every search asks."""
    name = f"_told_{method.__name__}"

    @wraps(method)
    def told(self: Own) -> Told:
        kept: dict[str, Told] = self.__dict__
        if name not in kept:
            kept[name] = method(self)
        return kept[name]

    return told


class Expr(ABC):
    """A node of a strategy. Subclasses are frozen dataclasses, which define equality and hash."""

    keyword: ClassVar[str] = ""
    """The name of the family in the grammar."""
    shown_as: ClassVar[str] = ""
    """The name of the family in tables and reports."""
    routes: ClassVar[bool] = False
    """Whether each query is answered by one of the children alone."""
    wraps: ClassVar[bool] = False
    """Whether its weights are those of its first child."""
    by_query: ClassVar[bool] = False
    """Whether that child is chosen by the query alone, rather than by what was found."""
    common: ClassVar[bool] = False
    """Whether most systems fuse in this way, so that tuning lays out more settings and weights for it."""

    @abstractmethod
    def children(self) -> tuple[Expr, ...]:
        """The expressions directly below."""

    @abstractmethod
    def with_children(self, children: Sequence[Expr]) -> Expr:
        """Return the same expression over other children, given in the order of `self.children()`."""

    @abstractmethod
    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to a plan that ranks the rows of `within` (bool[N]) that this expression ranks."""

    @abstractmethod
    def without(self, missing: Collection[str]) -> Expr | None:
        """Remove the signals that are unavailable; None when nothing is left to rank by."""

    @property
    def own_terms(self) -> tuple[Term, ...]:
        """The weighted terms directly in it, whether or not tuning moves their weights."""
        return ()

    def with_terms(self, terms: Sequence[Term]) -> Expr:
        """Return the same expression over other terms, as many as `own_terms`."""
        return self

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights that tuning may change, in the order written.

        These are the weights of the outermost sums: one set for each tier and intent, since each ranks its own
        queries. The weights of a nested fusion are fixed, as part of a column of the sum around it.
        """
        return tuple(weight for child in self.children() for weight in child.weights) if self.routes else ()

    @property
    def weight_names(self) -> tuple[str, ...]:
        """What each of `weights` multiplies, as expressions write it."""
        if self.routes or self.wraps:
            return tuple(name for child in self.children() for name in child.weight_names)[: len(self.weights)]
        return tuple(map(str, self.children()))[: len(self.weights)]

    def with_weights(self, weights: ArrayLike) -> Expr:
        """Return the same expression with other `weights`, float64[len(self.weights)].

        Raises ConfigError when the number of weights differs.
        """
        values = np.asarray(weights, dtype=np.float64).tolist()
        if len(values) != len(self.weights):
            raise ConfigError(f"{len(values)} weights for {self}, which has {len(self.weights)}; give one each")
        return self._weighed(values) if values else self

    def _weighed(self, weights: list[float]) -> Expr:
        """The expression with these weights, whose number has been checked."""
        left = iter(weights)
        return self.with_children(
            [child.with_weights([next(left) for _ in child.weights]) for child in self.children()]
        )

    @property
    def absolute(self) -> bool:
        """Whether a score says the same of an entry whatever else was found: then a threshold means something."""
        inner = self.children() if self.routes or self.wraps else ()
        return bool(inner) and all(child.absolute for child in inner)

    def variants(self) -> Iterator[Expr]:
        """Iterate over this expression under each value of its own parameters that tuning tries."""
        yield self

    def describe(self) -> Description:
        """Describe the expression for exporters, which do not know its family."""
        return Description(f"{self} is not one fusion of lists")

    def answering(self, table: SignalTable) -> Expr:
        """The fusion that answers the only query of a table, without the factors around it."""
        return self

    def progress(self, table: SignalTable) -> Progress | None:
        """How far the layered searches in it went; None where there are none."""
        return progress_of_all(child.progress(table) for child in self.children())

    def ranks_candidates(self) -> bool:
        """Whether it, or a tier or case in it, names no retriever and so ranks all candidates of the system."""
        if not self.retrievers():
            return True
        inner = self.children() if self.routes else self._finders()
        return any(child.ranks_candidates() for child in inner)

    @property
    def reads(self) -> frozenset[str]:
        """Names of the signals that it reads itself, of every query, beside those of its children."""
        return frozenset()

    @told_once
    def signals(self) -> frozenset[str]:
        """Names of all signals that it mentions."""
        return self.reads.union(*(child.signals() for child in self.children()))

    @told_once
    def retrievers(self) -> frozenset[str]:
        """Names of the signals in it that find entries: retrievers, and recorded lists of other engines."""
        return frozenset(name for name in self.signals() if name not in SCORERS and name not in PRIORS)

    @property
    @told_once
    def reads_ends(self) -> frozenset[str]:
        """Names of the retrievers in it whose scores are scaled by the ends of their formulas."""
        return frozenset().union(*(child.reads_ends for child in self.children()))

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """The rows of `within` (bool[N]) that this expression ranks, bool[N]; the module has the rule."""
        finders = self._finders()
        if not finders:
            return within
        rows = np.zeros(len(table), dtype=bool)
        for child in finders:
            rows |= child.members(table, within)
        return rows

    def everywhere(self, table: SignalTable) -> Bools:
        """The rows it may rank as a whole strategy, bool[N]: all of them, or the candidates for scorers alone."""
        return np.ones(len(table), dtype=bool) if self.retrievers() else table.exists

    @told_once
    def _finders(self) -> list[Expr]:
        """The children that find entries; the others only score what these found."""
        return [child for child in self.children() if child.retrievers()]

    def needs(self, table: SignalTable, retrievers: Collection[str]) -> Needs:
        """List the signals to fetch and for which queries, given what the table already contains.

        Signals are fetched on demand: search fetches what is listed, joins it to the table and calls
        this again until nothing new is listed.

        Parameters
        ----------
        table : SignalTable
            What has been fetched so far.
        retrievers : collection of str
            The retrievers of the system; an expression of scorers alone needs all of them.

        Returns
        -------
        dict of str to bool[Q]
            For each signal, the queries that need it.
        """
        names = self._read_everywhere()
        if not self.retrievers():
            names |= FINDERS & frozenset(retrievers)
        needed = dict.fromkeys(sorted(names), np.ones(len(table.queries), dtype=bool))
        for child in self._finders():
            needed = join_needs(needed, child.needs(table, retrievers))
        return needed

    @told_once
    def _read_everywhere(self) -> frozenset[str]:
        """The signals that it reads of every query, without those of the children that find entries."""
        finders = self._finders()
        others = [child.signals() for child in self.children() if child not in finders]
        return self.reads.union(*others).difference(PRIORS)


@dataclass(frozen=True, slots=True)
class Term:
    """A weighted part of a linear fusion."""

    weight: float
    expr: Expr

    def __str__(self) -> str:
        return f"{number_text(self.weight)}*{self.expr}"


@dataclass(frozen=True)
class Description:
    """What exporters learn of an expression, whose family they do not know.

    Most families are described as one of two things that other search engines have, too: a weighted sum of lists
    on one scale (`Linear`), or a second search where the first found too little (`Fallback`). `beyond` is the
    reason why another engine cannot do it; empty when it can.
    """

    beyond: str = ""


@dataclass(frozen=True)
class Linear(Description):
    """``sum of weight * scale(term)``, where `scale` names a normalisation, or is `RECIPROCAL` with its `k`."""

    terms: tuple[Term, ...] = ()
    scale: str = "none"
    k: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Fallback(Description):
    """`first` answers the queries for which it finds at least `min_results` entries, `then` the others."""

    first: Expr
    then: Expr
    min_results: int


def join_needs(first: Needs, second: Mapping[str, Bools]) -> Needs:
    """Unite two results of `Expr.needs`."""
    joined = {**first, **second}
    for name in first.keys() & second.keys():
        joined[name] = first[name] | second[name]
    return dict(sorted(joined.items()))


def nested(expr: Expr, table: SignalTable, within: Bools) -> tuple[Column, Bools]:
    """Evaluate an inner expression to a raw column, and return it with the rows that have a value (bool[N]).

    A single column is returned unchanged, so that `explain` shows no empty level.
    """
    plan = expr.compile(table, within)
    present = np.zeros(len(table), dtype=bool)
    for branch in plan.branches:
        present |= branch.ranked
    if len(plan.branches) == 1 and is_bare(plan.branches[0]):
        return plan.branches[0].columns[0], present
    return Column(str(expr), plan.scores(), str(expr), inner=plan), present


def is_bare(branch: Branch) -> bool:
    """Whether a branch is one signal of weight 1 and nothing else."""
    alone = len(branch.columns) == 1 and branch.weights == (1.0,) and branch.factor is None
    return alone and branch.floor is None and not branch.columns[0].parts
