"""Fusions of ranks (reciprocal, inverse squares, Borda counts, rank-biased centroids), and mem0's gated sum.

Cormack, Clarke and Buettcher, SIGIR 2009; Mourao, Martins and Magalhaes, Computerized Medical Imaging and
Graphics, 2015; Aslam and Montague, SIGIR 2001; Bailey, Moffat, Scholer and Thomas, SIGIR 2017.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.fusion.node import RECIPROCAL, Description, Expr, Linear
from steelyard.fusion.plan import Branch, Column, Plan, only_list
from steelyard.fusion.sums import ListColumns, Sum
from steelyard.grammar import number_text, value_text
from steelyard.node import MAX_WEIGHT, Amount, Option, opt
from steelyard.retrievers.keywords import TERMS
from steelyard.table.signal_table import SignalTable, count_rows, ranks


class RankSum(Sum):
    """A sum of points for the ranks of an entry in the lists that contain it; ranks start at 1."""

    formula: ClassVar[str] = ""
    """The points in words; ``{}`` is the list."""

    def points(self, rank: Floats, place: int) -> Floats:
        """From ranks in the list at a place to points."""
        raise NotImplementedError

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools, place: int) -> Column:
        rank = ranks(table, column.values, present, only_list(table, (column,)))
        values = np.where(present, self.points(rank, place), 0.0)
        formula = f"{self.formula.format(column.label)}, 0 when not in the list"
        return Column(column.label, values, formula, {"rank": rank, column.label: column.values}, column.inner)


@dataclass(frozen=True)
class Rrf(RankSum):
    """``sum of weight / (k + rank)`` over the lists that contain the entry.

    The bonus is for an entry of two or more lists: ``times(x)`` multiplies its score by 1 + x, ``once(x)`` adds x,
    and ``each(x)`` adds x for every list after the first.
    """

    shown_as: ClassVar[str] = "RRF"
    common: ClassVar[bool] = True
    formula: ClassVar[str] = "1 / (k + rank in {})"

    k: float | tuple[float, ...] = opt(
        60.0, low=0, tried=(1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0),
        each=", or {items} of them in brackets, one for each list",
    )  # fmt: skip
    """One for all lists, or one for each in their order (Bruch, Gai and Ingber, TOIS 42(1), 2023)."""
    bonus: Amount | None = opt(
        None, kind="amount", low=0, high=MAX_WEIGHT, words=("none",), amounts=("times", "once", "each")
    )

    def without(self, missing: Collection[str]) -> Expr | None:
        left = super().without(missing)
        if not isinstance(left, Rrf) or not isinstance(self.k, tuple):
            return left
        pairs = zip(self.terms, self.k, strict=True)
        kept = tuple(k for term, k in pairs if term.expr.without(missing) is not None)
        return replace(left, k=kept if len(kept) > 1 else kept[0])

    def _own_weights(self) -> tuple[tuple[str, float], ...]:
        return (*super()._own_weights(), *(("bonus", bonus.amount) for bonus in self._added))

    def _weighed(self, weights: Iterator[float]) -> Self:
        changed = super()._weighed(weights)
        return replace(changed, bonus=Amount(self._added[0].kind, next(weights))) if self._added else changed

    @property
    def _added(self) -> tuple[Amount, ...]:
        """The bonus when it is added, as a column; a bonus that multiplies is a factor of the rows."""
        return () if self.bonus is None or self.bonus.kind == "times" else (self.bonus,)

    def _tried(self, option: Option) -> Collection[Any]:
        # Where each list has its own k, all pairs are tried of two lists, and of more one list after the other.
        if option.name == "bonus" and self.bonus is not None and self.bonus.kind == "times":
            return [Amount("times", amount) for amount in sorted({0.0, 0.05, 0.1, 0.2, 0.4, self.bonus.amount})]
        if option.name != "k" or not isinstance(self.k, tuple):
            return super()._tried(option)
        ks, pool = self.k, {*option.tried, *self.k}
        if len(ks) == 2:
            return sorted(product(pool, repeat=2))
        return sorted({(*ks[:i], k, *ks[i + 1 :]) for i in range(len(ks)) for k in pool})

    def describe(self) -> Description:
        if isinstance(self.k, tuple):
            return Linear(f"k={value_text(self.k)}, one for each list, has no counterpart", self.terms, RECIPROCAL)
        bonus = f"bonus={self.bonus} for entries that two lists found has no counterpart" if self.bonus else ""
        return Linear(bonus, self.terms, RECIPROCAL, self.k)

    def points(self, rank: Floats, place: int) -> Floats:
        k = self.k[place] if isinstance(self.k, tuple) else self.k
        return 1.0 / (k + rank)

    def _finished(self, branch: Branch, lists: ListColumns) -> Branch:
        if self.bonus is None:
            return branch
        count: Floats = np.sum([present for _, present in lists], axis=0, dtype=np.float64)
        if not self._added:
            factor = np.where(count >= 2, 1.0 + self.bonus.amount, 1.0)
            return replace(branch, factor=factor, factor_formula=f"bonus {self.bonus}")
        beyond = np.maximum(count - 1.0, 0.0)
        values = beyond if self.bonus.kind == "each" else np.minimum(beyond, 1.0)
        column = Column("lists after the first", values, "convergence", {"lists": count})
        return replace(branch, columns=(*branch.columns, column))

    def _why(self) -> str:
        return f"reciprocal rank fusion, k = {value_text(self.k)}"


class Isr(RankSum):
    """``number of lists that contain the entry * sum of weight / rank^2``."""

    shown_as: ClassVar[str] = "ISR"
    beyond: ClassVar[str] = "no hybrid query adds 1 / rank^2"
    formula: ClassVar[str] = "1 / (rank in {})^2"
    why: ClassVar[str] = "inverse square rank"
    multiplier: ClassVar = (lambda count: count, "lists that hold it")

    def points(self, rank: Floats, place: int) -> Floats:
        return 1.0 / (rank * rank)


class LogIsr(Isr):
    """``log(number of lists that contain the entry) * sum of weight / rank^2``; an entry of one list scores 0."""

    shown_as: ClassVar[str] = "log ISR"
    multiplier: ClassVar = (lambda count: np.log(np.maximum(count, 1.0)), "log(lists that hold it)")


@dataclass(frozen=True)
class Rbc(RankSum):
    """``sum of weight * (1 - phi) * phi^(rank - 1)``: a reader continues to the next entry with probability phi.

    `phi` is at least 0 and below 1. At 0 only the first entry of each list counts.
    """

    shown_as: ClassVar[str] = "RBC"
    beyond: ClassVar[str] = "no hybrid query adds powers of a persistence"
    formula: ClassVar[str] = "(1 - phi) * phi^(rank in {} - 1)"

    phi: float = opt(0.8, low=0, high=math.nextafter(1, 0), tried=(0.5, 0.7, 0.8, 0.9, 0.95, 0.98))

    def points(self, rank: Floats, place: int) -> Floats:
        return (1 - self.phi) * np.array([self.phi**at for at in (rank - 1).tolist()])  # numpy rounds by processor

    def _why(self) -> str:
        return f"rank-biased centroid, phi = {number_text(self.phi)}"


class Borda(Sum):
    """``sum of weight * points``: with c candidates, the first of a list gets c points, the next c - 1, and so on.

    The candidates missing from a list of n share the points that are left, ``(c - n + 1) / 2`` each. The
    candidates are the entries that this expression ranks.
    """

    shown_as: ClassVar[str] = "Borda"
    beyond: ClassVar[str] = "a list gives points there to what it holds only"
    why: ClassVar[str] = "Borda count"

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools, place: int) -> Column:
        rank = ranks(table, column.values, present, only_list(table, (column,)))
        candidates, listed = (count_rows(table, some)[table.query].astype(np.float64) for some in (rows, present))
        points = np.where(present, candidates - rank + 1, (candidates - listed + 1) / 2)
        formula = f"c - rank in {column.label} + 1, (c - n + 1) / 2 when not in the list"
        inputs = {"rank": rank, column.label: column.values, "c, candidates": candidates, "n, listed": listed}
        return Column(column.label, np.where(rows, points, 0.0), formula, inputs, column.inner)


SIGMOIDS = ((3, 5.0, 0.7), (6, 7.0, 0.6), (9, 9.0, 0.5), (15, 10.0, 0.5), (np.inf, 12.0, 0.5))
"""Up to so many terms of a query: the score that becomes 0.5, and how steep the sigmoid is there."""


@dataclass(frozen=True)
class Gated(Sum):
    """``(w1*first + sum of w*sigmoid(other)) / (sum of the weights of lists that found anything)``.

    Only entries that the first list has at `least` or more are ranked. The sigmoid is
    ``1 / (1 + exp(-steepness * (x - midpoint)))``, both numbers by the terms of the query (`SIGMOIDS`). A list
    that lacks the entry adds 0. Recommending does not try it: its numbers suit one scale of BM25.
    Source: mem0 8d5b786, `mem0/utils/scoring.py`.
    """

    shown_as: ClassVar[str] = "gated sum"
    beyond: ClassVar[str] = "no hybrid query has a sigmoid by the number of a query's terms"

    least: float = opt(0.1, low=-1, tried=(0.0, 0.1, 0.2, 0.3))

    @property
    def reads(self) -> frozenset[str]:
        return frozenset({TERMS.name}) if len(self.terms) > 1 else frozenset()

    def without(self, missing: Collection[str]) -> Expr | None:
        """Nothing without the list that is the gate, and the gate alone without what a sigmoid reads."""
        if self.terms[0].expr.without(missing) is None:
            return None
        kept = replace(self, terms=self.terms[:1]) if TERMS.name in missing else self
        return super(Gated, kept).without(missing)

    def members(self, table: SignalTable, within: Bools) -> Bools:
        return self.terms[0].expr.at_least(self.least, table, within)

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        (branch,) = super().compile(table, within).branches
        active = np.zeros(len(table.queries))
        for term in self.terms:
            listed = term.expr.members(table, np.ones(len(table), dtype=bool))
            active += np.where(count_rows(table, listed) > 0, term.weight, 0.0)
        share = np.where(active > 0, 1.0 / np.where(active > 0, active, 1.0), 0.0)
        formula = "1 / weights of the lists that found anything"
        return Plan(len(table), (replace(branch, factor=share[table.query], factor_formula=formula),))

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools, place: int) -> Column:
        label, inputs = column.label, {column.label: column.values}
        if place == 0:
            return Column(label, np.where(present, column.values, 0.0), column.formula, inputs, column.inner)
        terms = table.column(TERMS.name)
        index = np.searchsorted([most for most, _, _ in SIGMOIDS], terms)
        midpoint, steepness = (np.array([row[at] for row in SIGMOIDS])[index] for at in (1, 2))
        away: Floats = np.where(present, steepness * (column.values - midpoint), 0.0)
        values = np.where(present, 1.0 / (1.0 + np.exp(-np.clip(away, -700.0, None))), 0.0)
        inputs |= {"midpoint": midpoint, "steepness": steepness, TERMS.name: terms}
        return Column(label, values, "1 / (1 + exp(-steepness * (x - midpoint)))", inputs, column.inner)

    def _why(self) -> str:
        return f"gated sum, {self.terms[0].expr} of at least {number_text(self.least)}"
