"""Sorts what is left again by another strategy."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.finish.base import Stage
from steelyard.finish.ranking import Ranking, order
from steelyard.fusion import Expr, Plan, parse_strategy
from steelyard.fusion.explain import Explanation
from steelyard.grammar import Item
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True, slots=True)
class Rescore(Stage):
    """Sort what is left of every list again by another strategy, which sees these rows alone."""

    keyword: ClassVar = "rescore"
    FORM: ClassVar = "a strategy, as in rescore(weighted_sum(0.4*cosine, 0.6*importance))"
    RESCORES: ClassVar = True

    strategy: Expr

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step; a row that the strategy does not rank goes."""
        plan = self._plan(table, ranking)
        return order(table, plan.scores(), plan.ties(table))

    def explain(self, table: SignalTable, ranking: Ranking, row: int) -> Explanation | None:
        """How the score of a row came about."""
        return self._plan(table, ranking).explain(row)

    def _plan(self, table: SignalTable, ranking: Ranking) -> Plan:
        within = np.zeros(len(table), dtype=bool)
        within[ranking.row] = True
        return self.strategy.compile(table, within)

    @property
    def scale(self) -> Expr:
        """Its strategy."""
        return self.strategy

    def without(self, missing: AbstractSet[str]) -> Rescore | None:
        """With what is left of the strategy."""
        left = self.strategy.without(missing)
        return None if left is None else Rescore(left)

    @classmethod
    def read(cls, strategy: Item) -> Rescore:
        """See Stage."""
        if strategy.weight is not None:
            raise ValueError
        return cls(parse_strategy(str(strategy)))
