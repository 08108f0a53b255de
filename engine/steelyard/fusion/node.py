"""The base class of strategies, immutable values that print, parse back, and compile to a plan.

An expression ranks the rows that at least one of the retrievers it mentions returned. An
expression of scorers and priors alone ranks every candidate of the table.

Tuning, comparing and exporting use only what each family declares here (its weights, the variants of its
own parameters, its description), so that adding a family changes no other module.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from steelyard.base.arrays import Bools
from steelyard.base.errors import ConfigError
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.grammar import Call, Duration, number_text
from steelyard.node import Node, Option, Reader
from steelyard.retrievers import CANDIDATE_RETRIEVERS, SCORERS
from steelyard.signals import PRIORS
from steelyard.signals.formulas import SignalValues
from steelyard.table.signal_table import KEPT_ROWS, NO_FACTS, SignalTable

Needs = dict[str, Bools]
RECIPROCAL = "reciprocal"
"""The scale of RRF: an entry scores ``1 / (k + rank)``, and 0 when it is not in the list."""


@dataclass(frozen=True)
class Available:
    """The signals that tell entries apart in a data set, of which families make what `recommend` starts from."""

    lists: Mapping[str, float]
    """The lists that are fused, with their weights in a sum."""
    further: tuple[str, ...] = ()
    """Lists that are added to them, such as that of the graph."""
    tiers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The lists that may answer alone, each with those that answer where it finds too little."""
    layers: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    """Signals that are derived from facts, as expressions write them: to be added, and to multiply a score."""
    intents: tuple[str, ...] = ()
    """The intents that enough queries have."""

    @property
    def additions(self) -> list[tuple[str, ...]]:
        """Nothing, and each further list."""
        return [(), *((name,) for name in self.further)]

    @property
    def fused(self) -> list[str]:
        """The lists as terms, then with each further one; none where there is one list alone."""
        return [", ".join((*self.lists, *more)) for more in self.additions if len(self.lists) > 1]

    @property
    def sums(self) -> list[str]:
        """The weighted sums of the same."""
        return [self.sum_with(*more) for more in self.additions if len(self.lists) > 1]

    def sum_with(self, *more: str) -> str:
        """The weighted sum of the lists, with more signals in it: each 0.1, and 0.5 of a sum of 1 at most."""
        terms = [f"{weight:.4g}*{name}" for name, weight in self.lists.items()]
        terms += [f"{min(0.1, 0.5 / len(more)):.4g}*{name}" for name in more]
        return f"weighted_sum({', '.join(terms)}, normalize=minmax)"


class Expr(Node):
    """A node of a strategy: a frozen dataclass whose options may be expressions, terms and cases."""

    shown_as: ClassVar[str] = ""
    """The name of the family in tables and reports."""
    beyond: ClassVar[str] = ""
    """Why other search engines have no such fusion."""
    routes: ClassVar[bool] = False
    """Whether each query is answered by one of the children alone."""
    wraps: ClassVar[bool] = False
    """Whether its weights are those of its first child."""
    by_query: ClassVar[bool] = False
    """Whether that child is chosen by the query alone, rather than by what was found."""
    common: ClassVar[bool] = False
    """Whether most systems fuse in this way, so that tuning lays out more settings and weights for it."""
    weighted: ClassVar[bool] = True

    @classmethod
    def initial_strategies(cls, there: Available) -> dict[str, list[str]]:
        """The strategies of this family that recommending starts from, by the name of a row of its table.

        The first of a row is tried in all its shapes, the others as they are. By default a common family fuses the
        lists, and then the lists with each further one; other families gained nothing on public collections.
        """
        return {cls.shown_as: [f"{cls.keyword}({lists})" for lists in there.fused]} if cls.common else {}

    @cached_property
    def children(self) -> tuple[Expr, ...]:
        """The expressions directly below, in the order written."""
        below: list[Expr] = []
        _swapped([getattr(self, name) for name in self.options()], below.append)
        return tuple(below)

    def walk(self) -> Iterator[Expr]:
        """Iterate over it and all expressions in it, in the order written."""
        yield self
        for child in self.children:
            yield from child.walk()

    def with_children(self, children: Sequence[Expr]) -> Self:
        """Return the same expression over other children, given in the order of `self.children`."""
        left = iter(children)
        mine = {name: _swapped(getattr(self, name), lambda _: next(left)) for name in self.options()}
        return replace(self, **mine) if children else self  # type: ignore[type-var]  # a dataclass

    @abstractmethod
    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to a plan that ranks the rows of `within` (bool[N]) that this expression ranks."""

    @abstractmethod
    def without(self, missing: Collection[str]) -> Expr | None:
        """Remove the signals that are unavailable; None when nothing is left to rank by."""

    @property
    def own_terms(self) -> tuple[Term, ...]:
        """The weighted terms directly in it, whether or not tuning moves their weights."""
        terms = (getattr(self, name) for name, option in self.options().items() if option.kind == "terms")
        return next(terms, ()) if self.weighted else ()

    def with_terms(self, terms: Sequence[Term]) -> Self:
        """Return the same expression over other terms, as many as `own_terms`."""
        named = (name for name, option in self.options().items() if option.kind == "terms")
        return replace(self, **{name: tuple(terms) for name in named})  # type: ignore[type-var]  # a dataclass

    @cached_property
    def _weighed_names(self) -> tuple[tuple[str, float], ...]:
        return self._own_weights()

    def _own_weights(self) -> tuple[tuple[str, float], ...]:
        if self.routes or self.wraps:
            inner = self.children if self.routes else self.children[:1]
            return tuple(pair for child in inner for pair in child._weighed_names)
        return tuple((str(term.expr), term.weight) for term in self.own_terms)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights that tuning may change, in the order written: those of the outermost sums.

        There is one set for each tier and intent, since each ranks its own queries. The weights of a nested fusion
        are fixed, as part of a column of the sum around it.
        """
        return tuple(weight for _, weight in self._weighed_names)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """What each of `weights` multiplies, as expressions write it."""
        return tuple(name for name, _ in self._weighed_names)

    def with_weights(self, weights: ArrayLike) -> Self:
        """Return the same expression with other `weights`, as many; ConfigError when their number differs."""
        values = np.asarray(weights, dtype=np.float64).tolist()
        if len(values) != len(self.weights):
            raise ConfigError(f"{len(values)} weights for {self}, which has {len(self.weights)}; give one each")
        return self._weighed(iter(values)) if values else self

    def _weighed(self, weights: Iterator[float]) -> Self:
        if self.routes or self.wraps:
            inner = self.children if self.routes else self.children[:1]
            changed = [child.with_weights([next(weights) for _ in child.weights]) for child in inner]
            return self.with_children([*changed, *self.children[len(changed) :]])
        return self.with_terms([Term(next(weights), term.expr) for term in self.own_terms])

    @property
    def absolute(self) -> bool:
        """Whether a score says the same of an entry whatever else was found: then a threshold means something."""
        inner = self.children if self.routes or self.wraps else ()
        return bool(inner) and all(child.absolute for child in inner)

    def variants(self) -> Iterator[Expr]:
        """Iterate over this expression under each value of its own parameters that tuning tries."""
        values = [self._tried(option) for option in self.options().values()]
        for chosen in itertools.product(*values):
            yield replace(self, **dict(zip(self.options(), chosen, strict=True)))  # type: ignore[type-var]  # a dataclass

    def _tried(self, option: Option) -> Collection[Any]:
        """The values of an option that tuning tries, with its own."""
        own = getattr(self, option.name)
        return sorted({*option.tried, own}) if option.tried else (own,)

    def describe(self) -> Description:
        """Describe the expression for exporters, which do not know its family."""
        named = f"{self.keyword}(...) has no counterpart: {self.beyond}"
        return Description(named if self.beyond else f"{self} is not one fusion of lists")

    def active_branch(self, table: SignalTable) -> Expr:
        """The fusion that answers the only query of a table, without the factors around it."""
        return self.children[0].active_branch(table) if self.wraps else self

    @property
    def reads(self) -> frozenset[str]:
        """Names of the signals that it reads itself, of every query, beside those of its children."""
        return frozenset()

    @cached_property
    def signals(self) -> frozenset[str]:
        """Names of all signals that it mentions."""
        return self.reads.union(*(child.signals for child in self.children))

    @cached_property
    def retrievers(self) -> frozenset[str]:
        """Names of the signals in it that find entries: retrievers, and recorded lists of other engines."""
        return frozenset(name for name in self.signals if name not in SCORERS and name not in PRIORS)

    @cached_property
    def reads_ends(self) -> frozenset[str]:
        """Names of the retrievers in it whose scores are scaled by the ends of their formulas."""
        return frozenset().union(*(child.reads_ends for child in self.children))

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """The rows of `within` (bool[N]) that this expression ranks, bool[N]; the module has the rule."""
        finders = self.children[:1] if self.wraps else self._finders
        if not finders:
            return within
        rows = np.zeros(len(table), dtype=bool)
        for child in finders:
            rows |= child.members(table, within)
        return rows

    def at_least(self, least: float | None, table: SignalTable, within: Bools) -> Bools:
        """The rows of `members` that it scores so much, bool[N]; None for any score."""
        rows = self.members(table, within)
        if least is not None and rows.any():
            rows = rows & (self.compile(table, within).scores() >= least)  # they may be those of a caller
        return rows

    def everywhere(self, table: SignalTable) -> Bools:
        """The rows it may rank as a whole strategy, bool[N]: all of them, or the candidates for scorers alone."""
        if self.wraps:
            return self.children[0].everywhere(table)
        return np.ones(len(table), dtype=bool) if self.retrievers else table.exists

    @cached_property
    def fixed(self) -> bool:
        """Whether it needs the same signals for every query, whatever is found."""
        return not any(node.routes for node in self.walk())

    @cached_property
    def _finders(self) -> tuple[Expr, ...]:
        """The children that find entries; the others only score what these found."""
        return tuple(child for child in self.children if child.retrievers)

    def needs(self, table: SignalTable, retrievers: Collection[str]) -> Needs:
        """List the signals to fetch, each with the queries (bool[Q]) that need it, given what the table contains.

        Signals are fetched on demand: search fetches what is listed, joins it to the table and calls this again
        until nothing new is listed. `retrievers` are those of the system, all of which scorers alone need.
        """
        asked = [child for child in self._finders if not child.fixed]
        others = (child.signals for child in self.children if child not in asked)
        names = self.reads.union(*others).difference(PRIORS)
        if not self.retrievers:
            names |= CANDIDATE_RETRIEVERS & frozenset(retrievers)
        needed = dict.fromkeys(sorted(names), np.ones(len(table.queries), dtype=bool))
        for child in asked:
            needed = join_needs(needed, child.needs(table, retrievers))
        return needed


@dataclass(frozen=True, slots=True)
class Term:
    """A weighted part of a linear fusion."""

    weight: float
    expr: Expr

    def __str__(self) -> str:
        return f"{number_text(self.weight)}*{self.expr}"


@dataclass(frozen=True)
class Description:
    """What exporters learn of an expression, whose family they do not know; `beyond` is why it is ours alone."""

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


def _swapped(value: Any, swap: Callable[[Expr], Any]) -> Any:  # noqa: ANN401 -- the value of any option
    """The value of an option with its expressions swapped; others stay."""
    if isinstance(value, Expr):
        return swap(value)
    if isinstance(value, Term):
        return Term(value.weight, swap(value.expr))
    if isinstance(value, tuple | list):
        return tuple(_swapped(part, swap) for part in value)
    return value


def join_needs(first: Needs, second: Mapping[str, Bools]) -> Needs:
    """Unite two results of `Expr.needs`."""
    shared = {name: first[name] | second[name] for name in first.keys() & second.keys()}
    return dict(sorted({**first, **second, **shared}.items()))


def nested(expr: Expr, table: SignalTable, within: Bools) -> tuple[Column, Bools]:
    """Evaluate an inner expression to a raw column, and return it with the rows that have a value (bool[N]).

    A single column is returned unchanged, so that `explain` shows no empty level.
    """
    plan = expr.compile(table, within)
    present = np.zeros(len(table), dtype=bool)
    for branch in plan.branches:
        present |= branch.ranked
    if len(plan.branches) == 1 and (alone := plan.branches[0].alone) is not None:
        return alone, present
    return Column(str(expr), plan.scores(), str(expr), inner=plan), present


@dataclass(frozen=True)
class Signal(Expr):
    """A leaf: a fetched column, or a signal derived from facts with its options (``recency(half_life=365d)``)."""

    shown_as: ClassVar[str] = "single"

    name: str
    given: tuple[tuple[str, Duration | str], ...] = ()
    """The options that are printed: spans always, a word where it is not the default."""

    @classmethod
    def read(cls, call: Call, reader: Reader) -> Self | None:
        known = PRIORS[call.name].options if call.name in PRIORS else {}
        read = reader.options(call, known)
        if call.items:
            reader.faults.append(f"signal {call.name!r} takes no signals in brackets; remove them")
        written = (name for name, value in read.items() if not known[name].quiet or value != known[name].default)
        return cls(call.name, tuple((name, read[name]) for name in written))

    def option(self, name: str) -> Any:  # noqa: ANN401 -- the value of any option
        """Return an option, or its default when it is not written; None when the signal has no such option."""
        known = PRIORS[self.name].options if self.name in PRIORS else {}
        return dict(self.given).get(name, known[name].default if name in known else None)

    @property
    def absolute(self) -> bool:
        return True

    def variants(self) -> Iterator[Expr]:
        given = dict(self.given)
        written = given.get("half_life")
        if not isinstance(written, Duration):
            yield self
            return
        for factor in (0.25, 0.5, 1.0, 2.0, 4.0):
            span = Duration(written.amount * factor, written.unit)
            yield replace(self, given=tuple((given | {"half_life": span}).items()))

    @property
    def reads(self) -> frozenset[str]:
        return frozenset({self.name})

    def members(self, table: SignalTable, within: Bools) -> Bools:
        if not self.retrievers:  # a scorer or a prior, which every row has
            return within
        if self.name not in table.columns:
            return np.zeros(len(table), dtype=bool)
        return within & ~np.isnan(table.columns[self.name])

    def without(self, missing: Collection[str]) -> Expr | None:
        return None if self.name in missing else self

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        rows, derived, text = self.members(table, within), self.derived(table), str(self)
        column = Column(text, derived.values, derived.formula, derived.inputs)
        return Plan(len(table), (Branch(rows, (column,), (1.0,), text),))

    def derived(self, table: SignalTable) -> SignalValues:
        """Its values, NaN where a retriever did not return the row; ConfigError where the table lacks them."""
        if self.name not in PRIORS:
            return SignalValues(table.column(self.name), self.name)
        if table.entry_facts is NO_FACTS:
            raise ConfigError(f"{self} needs facts, which this table lacks; search again with {self}")
        key = (self.name, self.given)
        if (derived := table.derived.get(key)) is None:
            derived = PRIORS[self.name](table, dict(self.given))
            if len(table.queries) == 1 or len(table) <= KEPT_ROWS:  # a search asks again for its hits
                table.derived[key] = derived
        return derived

    @lru_cache(maxsize=1024)  # noqa: B019 -- a search writes the same signals again, and they are small
    def __str__(self) -> str:
        written = ", ".join(f"{name}={value}" for name, value in self.given)
        return f"{self.name}({written})" if written else self.name


def compile_plan(table: SignalTable, strategy: Expr) -> Plan:
    """Compile a strategy over a table; ConfigError when it lacks a signal that one of its queries needs."""
    for name, queries in strategy.needs(table, ()).items():
        if queries.any():
            table.column(name)
    return strategy.compile(table, strategy.everywhere(table))
