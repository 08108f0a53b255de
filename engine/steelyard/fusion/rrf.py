"""Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009) with convergence bonuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.fusion.base import RECIPROCAL, Expr, Linear
from steelyard.fusion.call import MAX_WEIGHT, CallReader
from steelyard.fusion.plan import Branch, Column
from steelyard.fusion.sums import ListColumns, Sum, count_lists, ranked_column
from steelyard.grammar import Call, Item, amount_of, number_text
from steelyard.table.signal_table import SignalTable

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

    k: float = 60.0
    bonus: Bonus | None = None

    @classmethod
    def _options(cls, call: CallReader) -> dict[str, Any]:
        return {"k": call.number("k", cls.k, 0.0), "bonus": _read_bonus(call)}

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
        *own, amount = weights
        return replace(super()._weighed(own), bonus=Bonus(self._added.kind, amount))

    @property
    def _added(self) -> Bonus | None:
        """The bonus when it is added, as a column; a bonus that multiplies is a factor of the rows."""
        return None if self.bonus is None or self.bonus.kind == "times" else self.bonus

    def variants(self) -> Iterator[Expr]:
        """Iterate over the values of k that tuning tries, each with every amount of a bonus that multiplies."""
        bonuses = [self.bonus]
        if self.bonus is not None and self.bonus.kind == "times":
            bonuses = [Bonus("times", amount) for amount in sorted({*self.AMOUNTS, self.bonus.amount})]
        for k in sorted({*self.K, self.k}):
            yield from (replace(self, k=k, bonus=bonus) for bonus in bonuses)

    def coordinates(self) -> tuple[float, ...]:
        """Return the order of magnitude of k and the amount of the bonus."""
        return (float(np.log10(self.k + 1)), self.bonus.amount if self.bonus else 0.0)

    def describe(self) -> Linear:
        """Describe it as a sum of reciprocal ranks; a bonus has no counterpart elsewhere."""
        bonus = f"bonus={self.bonus} for entries that two lists found has no counterpart" if self.bonus else ""
        return Linear(bonus, self.terms, RECIPROCAL, self.k)

    def _scaled(self, table: SignalTable, column: Column, present: Bools, rows: Bools) -> Column:
        formula = f"1 / (k + rank in {column.label}), 0 when not in the list"
        return ranked_column(table, column, present, lambda rank: 1.0 / (self.k + rank), formula)

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
        return f"reciprocal rank fusion, k = {number_text(self.k)}"

    def _written(self) -> list[str]:
        return [f"k={number_text(self.k)}", *([f"bonus={self.bonus}"] if self.bonus else [])]


def _read_bonus(call: CallReader) -> Bonus | None:
    value = call.take("bonus")
    if value is None or value == Item(None, Call("none")):
        return None
    amount = amount_of(value) if isinstance(value, Item) and value.call.name in BONUSES else None
    if isinstance(value, Item) and amount is not None and 0 <= amount <= MAX_WEIGHT:
        return Bonus(value.call.name, amount)
    call.bad("bonus", value, f"must be none, times(x), once(x) or each(x) with x in 0..{MAX_WEIGHT}")
    return None
