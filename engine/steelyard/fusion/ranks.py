"""Fusions of ranks: reciprocal ranks with bonuses, inverse squares, Borda counts, rank-biased centroids.

Cormack, Clarke and Buettcher, SIGIR 2009; Mourao, Martins and Magalhaes, Computerized Medical Imaging and
Graphics, 2015; Aslam and Montague, SIGIR 2001; Bailey, Moffat, Scholer and Thomas, SIGIR 2017.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.fusion.base import RECIPROCAL, Expr, Linear
from steelyard.fusion.call import MAX_WEIGHT, CallReader
from steelyard.fusion.plan import Branch, Column
from steelyard.fusion.sums import ListColumns, Sum, count_lists, ranked_column, times
from steelyard.grammar import Call, Item, amount_of, number_text, value_text
from steelyard.table.signal_table import SignalTable, count_rows, ranks

BONUSES = ("times", "once", "each")


@dataclass(frozen=True, slots=True)
class Bonus:
    """The bonus of an entry that two or more lists contain.

    ``times(x)`` multiplies its score by 1 + x, ``once(x)`` adds x, and ``each(x)`` adds x for every list
    after the first.
    """

    kind: str
    amount: float

    def __str__(self) -> str:
        return f"{self.kind}({number_text(self.amount)})"


@dataclass(frozen=True)
class Rrf(Sum):
    """``sum of weight / (k + rank)`` over the lists that contain the entry; ranks start at 1."""

    keyword: ClassVar[str] = "rrf"
    shown_as: ClassVar[str] = "RRF"
    common: ClassVar[bool] = True
    K: ClassVar = (1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0)
    AMOUNTS: ClassVar = (0.0, 0.05, 0.1, 0.2, 0.4)

    k: float | tuple[float, ...] = 60.0
    """One for all lists, or one for each in their order (Bruch, Gai and Ingber, TOIS 42(1), 2023)."""
    bonus: Bonus | None = None

    @classmethod
    def _options(cls, call: CallReader) -> dict[str, object]:
        return {"k": _read_k(call, cls.k), "bonus": _read_bonus(call)}

    def without(self, missing: Collection[str]) -> Expr | None:
        """Drop the lists that cannot be fetched, each with its k."""
        left = super().without(missing)
        if not isinstance(left, Rrf) or not isinstance(self.k, tuple):
            return left
        pairs = zip(self.terms, self.k, strict=True)
        kept = tuple(k for term, k in pairs if term.expr.without(missing) is not None)
        return replace(left, k=kept if len(kept) > 1 else kept[0])

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each list, followed by the amount of a bonus that is added."""
        return self._own_weights if self._added is None else (*self._own_weights, self._added.amount)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The lists, followed by the bonus where it is added."""
        return super().weight_names if self._added is None else (*map(str, self.children()), "bonus")

    def _weighed(self, weights: list[float]) -> Self:
        if self._added is None:
            return super()._weighed(weights)
        *rest, amount = weights
        return replace(super()._weighed(rest), bonus=Bonus(self._added.kind, amount))

    @property
    def _added(self) -> Bonus | None:
        """The bonus when it is added, as a column; a bonus that multiplies is a factor of the rows."""
        return None if self.bonus is None or self.bonus.kind == "times" else self.bonus

    def variants(self) -> Iterator[Expr]:
        """Iterate over the values of k that tuning tries, each with every amount of a bonus that multiplies.

        Where each list has its own k, all pairs are tried of two lists, and of more one list after the other.
        """
        bonuses = [self.bonus]
        if self.bonus is not None and self.bonus.kind == "times":
            bonuses = [Bonus("times", amount) for amount in sorted({*self.AMOUNTS, self.bonus.amount})]
        for k in self._tried():
            yield from (replace(self, k=k, bonus=bonus) for bonus in bonuses)

    def _tried(self) -> list[float | tuple[float, ...]]:
        if not isinstance(self.k, tuple):
            return sorted({*self.K, self.k})
        ks, pool = self.k, {*self.K, *self.k}
        if len(ks) == 2:
            return sorted(product(pool, repeat=2))
        return sorted({(*ks[:i], k, *ks[i + 1 :]) for i in range(len(ks)) for k in pool})

    def describe(self) -> Linear:
        """Describe it as a sum of reciprocal ranks; a bonus has no counterpart elsewhere."""
        if isinstance(self.k, tuple):
            return Linear(f"k={value_text(self.k)}, one for each list, has no counterpart", self.terms, RECIPROCAL)
        bonus = f"bonus={self.bonus} for entries that two lists found has no counterpart" if self.bonus else ""
        return Linear(bonus, self.terms, RECIPROCAL, self.k)

    def _scale(self, table: SignalTable, lists: ListColumns, rows: Bools) -> Iterator[Column]:
        each = self.k if isinstance(self.k, tuple) else (self.k,) * len(lists)
        for k, (column, present) in zip(each, lists, strict=True):
            formula = f"1 / (k + rank in {column.label}), 0 when not in the list"
            yield ranked_column(table, column, present, partial(_reciprocal, k), formula)

    def _bonuses(self, lists: ListColumns) -> tuple[Column, ...]:
        if self._added is None:
            return ()
        count = count_lists(lists)
        beyond = np.maximum(count - 1.0, 0.0)
        values = beyond if self._added.kind == "each" else np.minimum(beyond, 1.0)
        return (Column("lists after the first", values, "convergence", {"lists": count}),)

    def _multiplied(self, branch: Branch, lists: ListColumns) -> Branch:
        if self.bonus is None or self.bonus.kind != "times":
            return branch
        factor = np.where(count_lists(lists) >= 2, 1.0 + self.bonus.amount, 1.0)
        return replace(branch, factor=factor, factor_formula=f"bonus {self.bonus}")

    def _why(self) -> str:
        return f"reciprocal rank fusion, k = {value_text(self.k)}"

    def _written(self) -> list[str]:
        return [f"k={value_text(self.k)}", *([f"bonus={self.bonus}"] if self.bonus else [])]


def _reciprocal(k: float, rank: Floats) -> Floats:
    return 1.0 / (k + rank)


def _read_k(call: CallReader, default: float | tuple[float, ...]) -> float | tuple[float, ...]:
    value = call.take("k")
    if value is None:
        return default
    lists = len(call.call.items)
    if isinstance(value, float) and value >= 0:
        return value
    if isinstance(value, tuple) and len(value) == lists > 1 and min(value) >= 0:
        return value
    call.bad("k", value, f"must be a number of at least 0, or {lists} of them in brackets, one for each list")
    return default


def _read_bonus(call: CallReader) -> Bonus | None:
    value = call.take("bonus")
    if value is None or value == Item(None, Call("none")):
        return None
    amount = amount_of(value) if isinstance(value, Item) and value.call.name in BONUSES else None
    if isinstance(value, Item) and amount is not None and 0 <= amount <= MAX_WEIGHT:
        return Bonus(value.call.name, amount)
    call.bad("bonus", value, f"must be none, times(x), once(x) or each(x) with x in 0..{MAX_WEIGHT}")
    return None


@dataclass(frozen=True)
class Isr(Sum):
    """``number of lists that contain the entry * sum of weight / rank^2``; ranks start at 1."""

    keyword: ClassVar[str] = "isr"
    shown_as: ClassVar[str] = "ISR"
    no_counterpart: ClassVar[str] = "no hybrid query adds 1 / rank^2"

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools) -> Column:
        formula = f"1 / (rank in {column.label})^2, 0 when not in the list"
        return ranked_column(table, column, present, lambda rank: 1.0 / (rank * rank), formula)

    def _multiplied(self, branch: Branch, lists: ListColumns) -> Branch:
        return times(branch, count_lists(lists), "lists that hold it")

    def _why(self) -> str:
        return "inverse square rank"


@dataclass(frozen=True)
class LogIsr(Isr):
    """``log(number of lists that contain the entry) * sum of weight / rank^2``; an entry of one list scores 0."""

    keyword: ClassVar[str] = "log_isr"
    shown_as: ClassVar[str] = "log ISR"

    def _multiplied(self, branch: Branch, lists: ListColumns) -> Branch:
        return times(branch, np.log(np.maximum(count_lists(lists), 1.0)), "log(lists that hold it)")


@dataclass(frozen=True)
class Borda(Sum):
    """``sum of weight * points``: with c candidates, the first of a list gets c points, the next c - 1, and so on.

    The candidates missing from a list of n share the points that are left, ``(c - n + 1) / 2`` each. The
    candidates are the entries that this expression ranks.
    """

    keyword: ClassVar[str] = "borda"
    shown_as: ClassVar[str] = "Borda"
    no_counterpart: ClassVar[str] = "a list gives points there to what it holds only"

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools) -> Column:
        place = ranks(table, column.values, present, column.only_list(table))
        candidates, listed = (count_rows(table, some)[table.query].astype(np.float64) for some in (rows, present))
        points = np.where(present, candidates - place + 1, (candidates - listed + 1) / 2)
        formula = f"c - rank in {column.label} + 1, (c - n + 1) / 2 when not in the list"
        inputs = {"rank": place, column.label: column.values, "c, candidates": candidates, "n, listed": listed}
        return Column(column.label, np.where(rows, points, 0.0), formula, inputs, column.inner)

    def _why(self) -> str:
        return "Borda count"


@dataclass(frozen=True)
class Rbc(Sum):
    """``sum of weight * (1 - phi) * phi^(rank - 1)``: a reader continues to the next entry with probability phi.

    `phi` is at least 0 and below 1. At 0 only the first entry of each list counts.
    """

    keyword: ClassVar[str] = "rbc"
    shown_as: ClassVar[str] = "RBC"
    no_counterpart: ClassVar[str] = "no hybrid query adds powers of a persistence"
    PHI: ClassVar = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)

    phi: float = 0.8

    @classmethod
    def _options(cls, call: CallReader) -> dict[str, object]:
        return {"phi": call.number("phi", cls.phi, 0.0, below=1.0)}

    def variants(self) -> Iterator[Expr]:
        """Iterate over the values of phi that tuning tries."""
        yield from (replace(self, phi=phi) for phi in sorted({*self.PHI, self.phi}))

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools) -> Column:
        formula = f"(1 - phi) * phi^(rank in {column.label} - 1), 0 when not in the list"
        return ranked_column(table, column, present, lambda rank: (1 - self.phi) * self.phi ** (rank - 1), formula)

    def _why(self) -> str:
        return f"rank-biased centroid, phi = {number_text(self.phi)}"

    def _written(self) -> list[str]:
        return [f"phi={number_text(self.phi)}"]
