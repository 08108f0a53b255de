"""Sums of weighted terms: of their values on one scale, and the combinations of Fox and Shaw (TREC-2, 1993).

`WeightedTerms` has the terms, `Sum` adds up a column of each, `NormalizedSum` brings each onto one scale by its
values. In the six combinations only the lists that contain an entry count. Fox and Shaw normalise scores to 0..1
first, so there `normalize` is minmax by default.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.fusion.node import Available, Description, Expr, Linear, Term, nested
from steelyard.fusion.normalize import ABSOLUTE, NORMALIZERS, TRIED, WITH_ENDS, fixed_ends, has_ends
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.node import Option, opt
from steelyard.retrievers import FETCHED
from steelyard.signals import PRIORS
from steelyard.table.signal_table import SignalTable

BOUNDED = (FETCHED | PRIORS.keys()) - {"fts", "bm25"}
"""Signals in 0..1. Tuning tries other normalisations only for sums with a signal that may be larger."""
ListColumns = Sequence[tuple[Column, Bools]]
"""Columns, each with the rows where it has a value (bool[N])."""


@dataclass(frozen=True)
class WeightedTerms(Expr):
    """Expressions with a weight each."""

    terms: tuple[Term, ...] = opt(kind="terms", bare=True)

    def without(self, missing: Collection[str]) -> Expr | None:
        """Drop the terms that cannot be computed; the others keep their weights.

        None when no term is left that finds entries, where there was one.
        """
        pairs = [(term.weight, term.expr.without(missing)) for term in self.terms]
        left = tuple(Term(weight, expr) for weight, expr in pairs if expr is not None)
        finds = any(term.expr.retrievers() for term in left) or not self.retrievers()
        return replace(self, terms=left) if left and finds else None

    def _columns(self, table: SignalTable, rows: Bools) -> ListColumns:
        """Each term as a raw column."""
        return [nested(term.expr, table, rows) for term in self.terms]


@dataclass(frozen=True)
class Sum(WeightedTerms):
    """Terms that are added up; a family says what column a term becomes, and may multiply the rows by a factor."""

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to one branch with a column for each term."""
        rows = self.members(table, within)
        lists = self._columns(table, rows)
        scaled = (self._scaled(table, *pair, rows, place) for place, pair in enumerate(lists))
        branch = Branch(rows, (*scaled, *self._bonuses(lists)), self.weights, self._why())
        return Plan(len(table), (self._multiplied(branch, lists),))

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools, place: int) -> Column:
        """The column that the list at a place (its values, and the rows that it contains) adds over `rows`."""
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


def normalized(default: str, quiet: bool = False) -> Any:  # noqa: ANN401 -- stands where the field's default does
    """The option `normalize` under a default."""
    return opt(default, kind="word", words=tuple(NORMALIZERS), quiet=quiet)


@dataclass(frozen=True)
class NormalizedSum(Sum):
    """A sum whose terms are normalised within each query; see `steelyard.fusion.normalize`."""

    normalize: str = normalized("minmax")

    def problems(self) -> Iterator[str]:
        """Each term of a scale with theoretical ends has to have them."""
        for term in self.terms if self.normalize in WITH_ENDS else ():
            if not has_ends(term.expr):
                yield (
                    f"{self.keyword}: normalize={self.normalize} has no scale for {term.expr}; its formula gives "
                    "no ends, as those of bm25, vector, cosine, tfidf, the layers and priors of 0..1 do"
                )

    def _tried(self, option: Option) -> Collection[Any]:
        """All normalisations when terms are on different scales, else its own alone."""
        raw = len(self.terms) > 1 and not self.signals() <= BOUNDED
        return TRIED if option.name == "normalize" and raw and self.normalize in TRIED else super()._tried(option)

    @property
    def absolute(self) -> bool:
        """Whether neither its normalisation nor a part of it follows what else was found."""
        return self.normalize in ABSOLUTE and all(child.absolute for child in self.children())

    @property
    def reads_ends(self) -> frozenset[str]:
        """On a scale with theoretical ends its signals whose ends differ from query to query."""
        signals = self.signals() if self.normalize in WITH_ENDS else ()
        return super().reads_ends.union(name for name in signals if fixed_ends(name) is None)

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools, place: int) -> Column:
        return NORMALIZERS[self.normalize](table, column, present)


def count_lists(lists: ListColumns) -> Floats:
    """Count the lists that contain each row; float64[N]."""
    count: Floats = np.sum([present for _, present in lists], axis=0, dtype=np.float64)
    return count


def times(branch: Branch, factor: Floats, formula: str) -> Branch:
    """The branch with a factor, float64[N], which the formula says in words."""
    return replace(branch, factor=factor, factor_formula=formula, multiplied=f"times {formula}")


@dataclass(frozen=True)
class WeightedSum(NormalizedSum):
    """``sum of weight * normalize(signal)``; a signal that did not return the entry adds 0."""

    keyword: ClassVar[str] = "weighted_sum"
    shown_as: ClassVar[str] = "weighted sum"
    common: ClassVar[bool] = True
    unwritten: ClassVar[float | None] = None

    normalize: str = normalized("none", quiet=True)

    @classmethod
    def initial_strategies(cls, there: Available) -> dict[str, list[str]]:
        """Sums of the lists, and sums with signals that are derived from facts: all of them, then each."""
        facts = [there.sum_with(*there.facts), *map(there.sum_with, there.facts)] if there.facts else []
        graph = [there.sum_with(*more, *there.facts) for more in there.additions[1:] if facts]
        return {cls.shown_as: there.sums, "all signals": list(dict.fromkeys([*facts, *graph]))}

    def describe(self) -> Description:
        """Describe it as the linear sum that it is."""
        return Linear("", self.terms, self.normalize)


@dataclass(frozen=True)
class CombSum(NormalizedSum):
    """``sum of weight * normalize(signal)`` over the lists that contain the entry."""

    keyword: ClassVar[str] = "comb_sum"
    shown_as: ClassVar[str] = "CombSUM"

    def describe(self) -> Description:
        """Describe it as the weighted sum that it is."""
        return Linear("", self.terms, self.normalize)


@dataclass(frozen=True)
class CombMnz(NormalizedSum):
    """CombSUM times the number of lists that contain the entry."""

    keyword: ClassVar[str] = "comb_mnz"
    shown_as: ClassVar[str] = "CombMNZ"
    beyond: ClassVar[str] = "a hybrid query adds the scores of lists up"

    def _multiplied(self, branch: Branch, lists: ListColumns) -> Branch:
        return times(branch, count_lists(lists), "lists that hold it")


@dataclass(frozen=True)
class CombAnz(CombMnz):
    """CombSUM divided by the number of lists that contain the entry."""

    keyword: ClassVar[str] = "comb_anz"
    shown_as: ClassVar[str] = "CombANZ"

    def _multiplied(self, branch: Branch, lists: ListColumns) -> Branch:
        return times(branch, 1.0 / np.maximum(count_lists(lists), 1.0), "1 / lists that hold it")


@dataclass(frozen=True)
class CombMed(NormalizedSum):
    """The median over the lists that contain the entry; for an even number, the mean of the middle two."""

    keyword: ClassVar[str] = "comb_med"
    shown_as: ClassVar[str] = "CombMED"
    beyond: ClassVar[str] = "a hybrid query adds the scores of lists up"
    weighted: ClassVar[bool] = False
    combine: ClassVar[str] = "median"

    def problems(self) -> Iterator[str]:
        """A weight is a fault, because it would not mean what it means in a sum."""
        yield from super().problems()
        if any(term.weight != 1 for term in self.terms):
            yield f"{self.keyword} takes no weights; drop them, or use comb_sum"

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to one branch of one column, which combines the lists that contain each row."""
        rows = self.members(table, within)
        parts = tuple(
            replace(column, values=np.where(present, column.values, np.nan))
            for column, present in (
                (self._scaled(table, column, present, rows, 0), present)
                for column, present in self._columns(table, rows)
            )
        )
        values = np.where(rows, self._combined(np.array([part.values for part in parts])), 0.0)
        formula = f"{self.combine} over the lists that hold it"
        column = Column(str(self), values, formula, parts=parts, combine=self.combine)
        return Plan(len(table), (Branch(rows, (column,), (1.0,), self.shown_as),))

    def _combined(self, values: Floats) -> Floats:
        """Combine float64[lists, N], NaN where a list does not contain the row, to float64[N]."""
        ordered = np.sort(values, axis=0)  # NaN comes last
        held = np.maximum((~np.isnan(values)).sum(axis=0), 1)
        low, high = (np.take_along_axis(ordered, row[None, :], axis=0)[0] for row in ((held - 1) // 2, held // 2))
        middle: Floats = np.where(low == high, low, (low + high) / 2)
        return middle


@dataclass(frozen=True)
class CombMax(CombMed):
    """The maximum over the lists that contain the entry."""

    keyword: ClassVar[str] = "comb_max"
    shown_as: ClassVar[str] = "CombMAX"
    combine: ClassVar[str] = "max"

    def _combined(self, values: Floats) -> Floats:
        greatest: Floats = np.fmax.reduce(values, axis=0)
        return greatest


@dataclass(frozen=True)
class CombMin(CombMed):
    """The minimum over the lists that contain the entry."""

    keyword: ClassVar[str] = "comb_min"
    shown_as: ClassVar[str] = "CombMIN"
    combine: ClassVar[str] = "min"

    def _combined(self, values: Floats) -> Floats:
        least: Floats = np.fmin.reduce(values, axis=0)
        return least
