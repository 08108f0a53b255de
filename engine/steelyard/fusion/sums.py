"""The code that families of weighted sums share.

`WeightedTerms` has the terms and their weights, `Sum` adds up a column of each. `NormalizedSum` brings each term
onto one scale by its values, `ranked_column` by its ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.fusion.available import Available
from steelyard.fusion.base import Description, Expr, Linear, Term, nested
from steelyard.fusion.call import CallReader, Family
from steelyard.fusion.normalize import ABSOLUTE, NORMALIZERS, TRIED, WITH_ENDS, fixed_ends, has_ends
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.fusion.walk import leaves
from steelyard.signals import PRIORS
from steelyard.table.signal_table import FETCHED, SignalTable, ranks

BOUNDED = (FETCHED | PRIORS.keys()) - {"fts", "bm25"}
"""Signals in 0..1. Tuning tries other normalisations only for sums with a signal that may be larger."""
ListColumns = Sequence[tuple[Column, Bools]]
"""Columns, each with the rows where it has a value (bool[N])."""


@dataclass(frozen=True)
class WeightedTerms(Family):
    """Expressions with a weight each."""

    terms: tuple[Term, ...]

    def children(self) -> tuple[Expr, ...]:
        """Return the expressions of the terms, in the order written."""
        return tuple(term.expr for term in self.terms)

    def with_children(self, children: Sequence[Expr]) -> Self:
        """Return the same weights over other expressions."""
        return replace(self, terms=tuple(map(Term, self._own_weights, children)))

    @property
    def own_terms(self) -> tuple[Term, ...]:
        """The terms, where they have weights."""
        return self.terms if self.weights else ()

    def with_terms(self, terms: Sequence[Term]) -> Self:
        """Return the same fusion of other terms."""
        return replace(self, terms=tuple(terms))

    def without(self, missing: Collection[str]) -> Expr | None:
        """Drop the terms that cannot be computed; the others keep their weights."""
        terms = terms_without(self.terms, missing)
        return replace(self, terms=terms) if terms else None

    @property
    def _own_weights(self) -> tuple[float, ...]:
        return tuple(term.weight for term in self.terms)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each term."""
        return self._own_weights

    def _weighed(self, weights: list[float]) -> Self:
        return replace(self, terms=tuple(map(Term, weights, self.children())))

    def _columns(self, table: SignalTable, rows: Bools) -> ListColumns:
        """Each term as a raw column."""
        return [nested(term.expr, table, rows) for term in self.terms]


@dataclass(frozen=True)
class Sum(WeightedTerms):
    """Terms that are added up; a family says what column a term becomes, and may multiply the rows by a factor.

    Options of a family are fields of the same names; it reads them in `_options` and prints them in `_written`.
    """

    no_counterpart: ClassVar[str] = ""
    """Why other search engines have no such fusion."""
    unwritten: ClassVar[float | None] = 1.0
    """The weight of a term without one; None where each has to be written."""

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """Read the options and the terms."""
        options = cls._options(call)
        call.finish(*options)
        return cls(call.terms(cls.unwritten), **options)

    @classmethod
    def _options(cls, call: CallReader) -> dict[str, object]:
        """The options that are written, by the names of their fields."""
        return {}

    def describe(self) -> Description:
        """State that other search engines have no such fusion."""
        return Description(f"{self.keyword}(...) has no counterpart: {self.no_counterpart}")

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to one branch with a column for each term."""
        rows = self.members(table, within)
        lists = self._columns(table, rows)
        columns = (*self._scale(table, lists, rows), *self._bonuses(lists))
        branch = Branch(rows, columns, self.weights, self._why())
        return Plan(len(table), (self._multiplied(branch, lists),))

    def _scale(self, table: SignalTable, lists: ListColumns, rows: Bools) -> Iterator[Column]:
        """The column that each list adds to the sum over `rows`."""
        return (self._scaled(table, *pair, rows) for pair in lists)

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools) -> Column:
        """The column that a list (its values, and the rows that it contains) adds to the sum over `rows`."""
        raise NotImplementedError

    def _bonuses(self, lists: ListColumns) -> tuple[Column, ...]:
        """Columns that follow those of the terms."""
        return ()

    def _multiplied(self, branch: Branch, lists: ListColumns) -> Branch:
        """The branch with a factor of its rows, where the family has one."""
        return branch

    def _why(self) -> str:
        """What the sum is, for `explain`."""
        return self.shown_as

    def _written(self) -> list[str]:
        """The options as text."""
        return []

    def __str__(self) -> str:
        bare = self.unwritten is not None  # then a weight of 1 is left out
        terms = [str(term.expr) if bare and term.weight == 1 else str(term) for term in self.terms]
        return f"{self.keyword}({', '.join([*terms, *self._written()])})"


@dataclass(frozen=True)
class NormalizedSum(Sum):
    """A sum whose terms are normalised within each query; see `steelyard.fusion.normalize`."""

    normalize: str = "none"

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """Read as any sum; each term of a scale with theoretical ends has to have them."""
        made = super().read(call)
        for term in made.terms if made.normalize in WITH_ENDS else ():
            if not has_ends(term.expr):
                call.fault(f"{cls.keyword}: normalize={made.normalize} has no scale for {term.expr}; {_ENDED}")
        return made

    @classmethod
    def _options(cls, call: CallReader) -> dict[str, object]:
        return {"normalize": call.word("normalize", cls.normalize, tuple(NORMALIZERS))}

    def variants(self) -> Iterator[Expr]:
        """Iterate over all normalisations when terms are on different scales, else its own alone."""
        tried = TRIED if self.normalize in TRIED else (self.normalize,)
        raw = len(self.terms) > 1 and any(leaf.name not in BOUNDED for leaf in leaves(self))
        yield from (replace(self, normalize=name) for name in (tried if raw else (self.normalize,)))

    @property
    def absolute(self) -> bool:
        """Whether neither its normalisation nor a part of it follows what else was found."""
        return self.normalize in ABSOLUTE and all(child.absolute for child in self.children())

    @property
    def reads_ends(self) -> frozenset[str]:
        """On a scale with theoretical ends its signals whose ends differ from query to query."""
        signals = self.signals() if self.normalize in WITH_ENDS else ()
        return super().reads_ends.union(name for name in signals if fixed_ends(name) is None)

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools) -> Column:
        return NORMALIZERS[self.normalize](table, column, present)

    def _written(self) -> list[str]:
        return [f"normalize={self.normalize}"]


_ENDED = "its formula gives no ends, as those of bm25, vector, cosine, tfidf, the layers and priors of 0..1 do"


def ranked_column(
    table: SignalTable, column: Column, present: Bools, points: Callable[[Floats], Floats], formula: str
) -> Column:
    """Replace the values of a list by points for its ranks.

    Parameters
    ----------
    column, present : Column, bool[N]
        The list: its values, and the rows that it contains.
    points : callable
        From ranks (float64, from 1) to points.
    formula : str
        The same in words, for `explain`.

    Returns
    -------
    Column
        ``points(rank)`` of each row in the list, 0 for the others.
    """
    place = ranks(table, column.values, present, column.only_list(table))
    values = np.where(present, points(place), 0.0)
    return Column(column.label, values, formula, {"rank": place, column.label: column.values}, column.inner)


def count_lists(lists: ListColumns) -> Floats:
    """Count the lists that contain each row; float64[N]."""
    count: Floats = np.sum([present for _, present in lists], axis=0, dtype=np.float64)
    return count


def times(branch: Branch, factor: Floats, formula: str) -> Branch:
    """The branch with a factor, float64[N], which the formula says in words."""
    return replace(branch, factor=factor, factor_formula=formula, multiplied=f"times {formula}")


def terms_without(terms: tuple[Term, ...], missing: Collection[str]) -> tuple[Term, ...]:
    """Keep the terms that can be computed without these signals; none when no term is left that finds entries."""
    pairs = ((term.weight, term.expr.without(missing)) for term in terms)
    left = tuple(Term(weight, expr) for weight, expr in pairs if expr is not None)
    return left if _find(left) or not _find(terms) else ()


def _find(terms: tuple[Term, ...]) -> bool:
    return any(term.expr.retrievers() for term in terms)


@dataclass(frozen=True)
class WeightedSum(NormalizedSum):
    """``sum of weight * normalize(signal)``; a signal that did not return the entry adds 0."""

    keyword: ClassVar[str] = "weighted_sum"
    shown_as: ClassVar[str] = "weighted sum"
    common: ClassVar[bool] = True
    unwritten: ClassVar[float | None] = None

    @classmethod
    def starts(cls, there: Available) -> dict[str, list[str]]:
        """Sums of the lists, and sums with signals that are derived from facts: all of them, then each."""
        facts = [there.sum_with(*there.facts), *map(there.sum_with, there.facts)] if there.facts else []
        graph = [there.sum_with(*more, *there.facts) for more in there.additions[1:] if facts]
        return {cls.shown_as: there.sums, "all signals": list(dict.fromkeys([*facts, *graph]))}

    def describe(self) -> Linear:
        """Describe it as the linear sum that it is."""
        return Linear("", self.terms, self.normalize)

    def _written(self) -> list[str]:
        return [] if self.normalize == "none" else super()._written()
