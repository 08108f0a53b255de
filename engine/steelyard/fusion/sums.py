"""Sums of weighted terms: of their values on one scale, and the combinations of Fox and Shaw (TREC-2, 1993).

In the six combinations only the lists that contain an entry count. Fox and Shaw normalise scores to 0..1 first, so
there `normalize` is minmax by default.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.base.errors import ConfigError
from steelyard.fusion.node import Available, Description, Expr, Linear, Term, nested
from steelyard.fusion.plan import Branch, Column, Plan, only_list
from steelyard.node import Option, opt
from steelyard.retrievers import FETCHED, RETRIEVER_KINDS, SCORER_KINDS
from steelyard.signals import PRIORS
from steelyard.table.signal_table import ENDS, SignalTable, count_rows, per_query, ranks

ListColumns = Sequence[tuple[Column, Bools]]
"""Columns, each with the rows where it has a value (bool[N])."""
Scaled = tuple[Floats, str, dict[str, Floats]]
"""Values float64[N], and the formula in words by which they follow from the inputs."""


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
        finds = any(term.expr.retrievers for term in left) or not self.retrievers
        return replace(self, terms=left) if left and finds else None


@dataclass(frozen=True)
class Sum(WeightedTerms):
    """Terms that are added up; a family says what column a term becomes, and may multiply the rows by a factor."""

    why: ClassVar[str] = ""
    """What the sum is, for `explain`; empty for the name in tables."""
    multiplier: ClassVar[tuple[Callable[[Floats], Floats], str] | None] = None
    """From the number of lists that contain a row to its factor, and what that is in words."""

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to one branch with a column for each term."""
        rows = self.members(table, within)
        lists = [nested(term.expr, table, rows) for term in self.terms]
        scaled = (self._scaled(table, *pair, rows, place) for place, pair in enumerate(lists))
        return Plan(len(table), (self._finished(Branch(rows, tuple(scaled), self.weights, self._why()), lists),))

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools, place: int) -> Column:
        """The column that the list at a place (its values, and the rows that it contains) adds over `rows`."""
        raise NotImplementedError

    def _finished(self, branch: Branch, lists: ListColumns) -> Branch:
        """The sum with what follows from the number of lists that contain each row."""
        if self.multiplier is None:
            return branch
        factor, formula = self.multiplier
        count: Floats = np.sum([present for _, present in lists], axis=0, dtype=np.float64)
        return replace(branch, factor=factor(count), factor_formula=formula)

    def _why(self) -> str:
        return self.why or self.shown_as


# Normalisations: of a table, a column, and the rows where it has a value (bool[N])


def _none(table: SignalTable, column: Column, rows: Bools) -> Scaled:
    """Leave the values unchanged."""
    return column.values, column.formula, dict(column.inputs)


def _max(table: SignalTable, column: Column, rows: Bools) -> Scaled:
    """Divide by the maximum; a list whose maximum is not positive contributes 0 (as EchoVault does)."""
    top = _extreme(table, column.values, rows, np.maximum)
    return _ratio(column.values, top, 0.0), f"{column.label} / max", {column.label: column.values, "max": top}


def _minmax(table: SignalTable, column: Column, rows: Bools) -> Scaled:
    """Scale to 0..1 by ``(x - min) / (max - min)``; in a list of equal values all become 1."""
    low, top = (_extreme(table, column.values, rows, end) for end in (np.minimum, np.maximum))
    return _between(column, {"min": low, "max": top}, 1.0)


def _zscore(table: SignalTable, column: Column, rows: Bools) -> Scaled:
    """Standardise by ``(x - mean) / sd``, the population's deviation; in a list of equal values all become 0."""
    mean, spread, away = _moments(table, column, rows)
    inputs = {column.label: column.values, "mean": mean, "sd": spread}
    return _ratio(away, spread, 0.0), f"({column.label} - mean) / sd", inputs


def _dbsf(table: SignalTable, column: Column, rows: Bools) -> Scaled:
    """Scale by ``(x - (mean - 3 sd)) / (6 sd)``, the sample's deviation; in a list of equal values all become 0.5.

    Distribution-based score fusion, as Qdrant computes it (`score_fusion.rs`, 74f3e85): nothing is clipped.
    """
    mean, population, away = _moments(table, column, rows)
    count = count_rows(table, rows)[table.query]
    spread = population * np.sqrt(count / np.maximum(count - 1, 1))
    inputs = {column.label: column.values, "mean": mean, "sd": spread}
    return 0.5 + _ratio(away, 6.0 * spread, 0.0), f"({column.label} - mean + 3 sd) / (6 sd)", inputs


def _extreme(table: SignalTable, values: Floats, rows: Bools, reduce: np.ufunc) -> Floats:
    """float64[N]: the least or the most of each row's query."""
    return per_query(table, rows, reduce, values, 0.0)[table.query]


def _moments(table: SignalTable, column: Column, rows: Bools) -> tuple[Floats, Floats, Floats]:
    """float64[N] each: mean, population's deviation (0 where all values are equal), and distance from the mean."""
    count = np.maximum(count_rows(table, rows), 1)
    mean = (per_query(table, rows, np.add, column.values, 0.0) / count)[table.query]
    away = column.values - mean
    widest = _extreme(table, np.abs(away), rows, np.maximum)
    unit = np.where(widest > 1e100, widest, 1.0)  # squares overflow beyond 1e154
    square = (away / unit) * (away / unit)
    spread = unit * np.sqrt(per_query(table, rows, np.add, square, 0.0) / count)[table.query]
    top, low = (_extreme(table, column.values, rows, end) for end in (np.maximum, np.minimum))
    # Equal values may lie a rounding error away from their mean.
    return mean, np.where(top > low, spread, 0.0), away


def _rank(table: SignalTable, column: Column, rows: Bools) -> Scaled:
    """Replace values by ``(n - rank + 1) / n`` in a list of n: 1 for the first, 1/n for the last."""
    place = ranks(table, column.values, rows, only_list(table, (column,)))
    count = count_rows(table, rows)[table.query]
    inputs = {f"rank in {column.label}": place, "n": count.astype(np.float64)}
    return (count - place + 1) / np.maximum(count, 1), "(n - rank + 1) / n", inputs


def _theoretical(table: SignalTable, column: Column, rows: Bools) -> Scaled:
    """Scale to 0..1 by ``(x - low) / (high - low)`` between the ends of the formula, whatever else was found.

    The ends of a cosine are -1 and 1; those of bm25 are 0 and ``sum of idf * (k1 + 1)`` over the query's words.
    """
    low, high = _ends_of(table, column.label)
    return _between(column, {"low": low, "high": high}, 0.0)


def _tmm(table: SignalTable, column: Column, rows: Bools) -> Scaled:
    """Scale by ``(x - low) / (max - low)``, from the low end of the formula to the list's maximum.

    The theoretical min-max of Bruch, Gai and Ingber (TOIS 42(1), 2023); a weighted sum of two such lists is their
    TM2C2. A list whose maximum is the low end contributes 0.
    """
    top = _extreme(table, column.values, rows, np.maximum)
    return _between(column, {"low": _ends_of(table, column.label)[0], "max": top}, 0.0)


def _between(column: Column, ends: dict[str, Floats], alike: float) -> Scaled:
    """Scale from the lower of two ends, given by their names, to the upper; `alike` where they are one."""
    (first, low), (last, top) = ends.items()
    formula = f"({column.label} - {first}) / ({last} - {first})"
    return _ratio(column.values - low, top - low, alike), formula, {column.label: column.values} | ends


def _ratio(above: Floats, below: Floats, alike: float) -> Floats:
    """``above / below`` where that is positive, else `alike`."""
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), alike)


def _ends_of(table: SignalTable, label: str) -> tuple[Floats, Floats]:
    """float64[N] each: the ends of a signal's scale for the query of each row; ConfigError where not known."""
    name = label.partition("(")[0]
    unknown = np.full(len(table.queries), np.nan)
    asked = (table.query_facts.numbers.get(f"{end} {name}", unknown)[table.query] for end in ENDS)
    stated = _fixed_ends(name)
    low, high = asked if stated is None else (np.full(len(table), end) for end in stated)
    if np.isnan(low).any() or np.isnan(high).any():
        raise ConfigError(
            f"normalize={' or '.join(WITH_ENDS)} needs a score range, and {name} has none here; "
            "choose another normalisation or record again"
        )
    return low, high


def _fixed_ends(name: str) -> tuple[float, float] | None:
    """The ends that a signal has for every query; None where it has none, or a query's own."""
    if name in SCORER_KINDS:
        return SCORER_KINDS[name].ends
    prior = PRIORS.get(name)
    return (0.0, 1.0) if prior is not None and prior.unit and not prior.factor else None


NORMALIZERS: dict[str, Callable[[SignalTable, Column, Bools], Scaled]] = {
    one.__name__[1:]: one for one in (_none, _max, _minmax, _zscore, _rank, _theoretical, _tmm, _dbsf)
}
WITH_ENDS = ("theoretical", "tmm")
"""Those that need the ends of a signal's scale."""
TRIED = ("none", "max", "minmax", "zscore", "rank")
"""Those that tuning tries instead of one another; the others are kept where they are written."""
BOUNDED = (FETCHED | PRIORS.keys()) - {"fts", "bm25"}
"""Signals in 0..1. Tuning tries other normalisations only for sums with a signal that may be larger."""


@dataclass(frozen=True)
class NormalizedSum(Sum):
    """A sum whose terms are normalised within each query, by one of `NORMALIZERS`."""

    normalize: str = opt("minmax", kind="word", words=tuple(NORMALIZERS))

    def problems(self) -> Iterator[str]:
        for term in self.terms if self.normalize in WITH_ENDS else ():
            name = "" if term.expr.children else next(iter(term.expr.signals))
            kind = RETRIEVER_KINDS.get(name)
            if not (kind.bounded if kind else _fixed_ends(name)):
                yield (
                    f"{self.keyword}: normalize={self.normalize} has no scale for {term.expr}; its formula gives "
                    "no ends, as those of bm25, vector, cosine, tfidf, the layers and priors of 0..1 do"
                )

    def _tried(self, option: Option) -> Collection[Any]:
        # All normalisations when terms are on different scales, else its own alone.
        raw = len(self.terms) > 1 and not self.signals <= BOUNDED
        return TRIED if option.name == "normalize" and raw and self.normalize in TRIED else super()._tried(option)

    @property
    def absolute(self) -> bool:
        return self.normalize in ("none", "theoretical") and all(child.absolute for child in self.children)

    @property
    def reads_ends(self) -> frozenset[str]:
        signals = self.signals if self.normalize in WITH_ENDS else ()
        return super().reads_ends.union(name for name in signals if _fixed_ends(name) is None)

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools, place: int) -> Column:
        values, formula, inputs = NORMALIZERS[self.normalize](table, column, present)
        return Column(column.label, np.where(present, values, 0.0), formula, inputs, column.inner)

    def describe(self) -> Description:
        return super().describe() if self.beyond else Linear("", self.terms, self.normalize)


@dataclass(frozen=True)
class WeightedSum(NormalizedSum):
    """``sum of weight * normalize(signal)``; a signal that did not return the entry adds 0."""

    shown_as: ClassVar[str] = "weighted sum"
    common: ClassVar[bool] = True
    unwritten: ClassVar[float | None] = None

    normalize: str = opt("none", kind="word", words=tuple(NORMALIZERS), quiet=True)

    @classmethod
    def initial_strategies(cls, there: Available) -> dict[str, list[str]]:
        """Sums of the lists, and with signals that are derived from facts: all of them, then each."""
        facts = [there.sum_with(*there.facts), *map(there.sum_with, there.facts)] if there.facts else []
        graph = [there.sum_with(*more, *there.facts) for more in there.additions[1:] if facts]
        return {cls.shown_as: there.sums, "all signals": list(dict.fromkeys([*facts, *graph]))}


class CombSum(NormalizedSum):
    """``sum of weight * normalize(signal)`` over the lists that contain the entry."""

    shown_as: ClassVar[str] = "CombSUM"


class CombMnz(NormalizedSum):
    """CombSUM times the number of lists that contain the entry."""

    shown_as: ClassVar[str] = "CombMNZ"
    beyond: ClassVar[str] = "a hybrid query adds the scores of lists up"
    multiplier: ClassVar = (lambda count: count, "lists that hold it")


class CombAnz(CombMnz):
    """CombSUM divided by the number of lists that contain the entry."""

    shown_as: ClassVar[str] = "CombANZ"
    multiplier: ClassVar = (lambda count: 1.0 / np.maximum(count, 1.0), "1 / lists that hold it")


def _median(values: Floats) -> Floats:
    ordered = np.sort(values, axis=0)  # NaN comes last
    held = np.maximum((~np.isnan(values)).sum(axis=0), 1)
    low, high = (np.take_along_axis(ordered, row[None, :], axis=0)[0] for row in ((held - 1) // 2, held // 2))
    return np.asarray(np.where(low == high, low, (low + high) / 2))


COMBINED: dict[str, Callable[[Floats], Floats]] = {"median": _median, "max": np.fmax.reduce, "min": np.fmin.reduce}
"""From float64[lists, N], NaN where a list does not contain the row, to float64[N]."""


class CombMed(NormalizedSum):
    """The median over the lists that contain the entry; for an even number, the mean of the middle two.

    A weight is a fault, because it would not mean what it means in a sum.
    """

    shown_as: ClassVar[str] = "CombMED"
    beyond: ClassVar[str] = "a hybrid query adds the scores of lists up"
    weighted: ClassVar[bool] = False
    combine: ClassVar[str] = "median"

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if any(term.weight != 1 for term in self.terms):
            yield f"{self.keyword} takes no weights; drop them, or use comb_sum"

    def _finished(self, branch: Branch, lists: ListColumns) -> Branch:
        """One column, which combines the lists that contain each row; a row that none does is not ranked.

        There are such rows where a list's own scale follows the rows that are scaled, as below a gate.
        """
        pairs = zip(branch.columns, lists, strict=True)
        parts = tuple(replace(one, values=np.where(held, one.values, np.nan)) for one, (_, held) in pairs)
        rows = branch.rows & np.any([held for _, held in lists], axis=0)
        values = np.where(rows, COMBINED[self.combine](np.array([part.values for part in parts])), 0.0)
        formula = f"{self.combine} over the lists that hold it"
        column = Column(str(self), values, formula, parts=parts, combine=self.combine)
        return replace(branch, rows=rows, columns=(column,), weights=(1.0,))


class CombMax(CombMed):
    """The maximum over the lists that contain the entry."""

    shown_as: ClassVar[str] = "CombMAX"
    combine: ClassVar[str] = "max"


class CombMin(CombMed):
    """The minimum over the lists that contain the entry."""

    shown_as: ClassVar[str] = "CombMIN"
    combine: ClassVar[str] = "min"
