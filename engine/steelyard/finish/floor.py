"""Drops what scores below a floor on a scale of its own, apart from the scores that rank."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.finish.base import Stage
from steelyard.finish.ranking import Ranking
from steelyard.fusion import Expr, parse_strategy
from steelyard.grammar import Item, number_text
from steelyard.table.signal_table import SignalTable

FUSED = "weighted_sum(0.5*bm25, 0.5*vector, normalize=theoretical)"
"""What a floor is on where nothing else is said: scores that do not depend on what else was found."""


@dataclass(frozen=True, slots=True)
class Floor(Stage):
    """Drop the entries that score below `least` by `on`, a sum on a scale that no other entry moves.

    An entry that `on` does not rank scores 0 there. What ranks may be anything, reciprocal ranks too, which
    cannot carry a floor themselves: the first of any list has the highest score there is.
    """

    keyword: ClassVar = "floor"
    FORM: ClassVar = f"a number, and a sum whose scale no other entry moves, as in floor(0.41, on={FUSED})"

    least: float
    on: Expr

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        return ranking.keep(self.above(table)[ranking.row])

    def above(self, table: SignalTable) -> Bools:
        """bool[N]: the rows that reach the floor."""
        reached: Bools = self.scores(table) >= self.least
        return reached

    def scores(self, table: SignalTable) -> Floats:
        """float64[N]: what the floor is compared with."""
        return np.nan_to_num(self.on.compile(table, self.on.everywhere(table)).scores(), nan=0.0)

    @property
    def scale(self) -> Expr:
        """Its sum."""
        return self.on

    def without(self, missing: AbstractSet[str]) -> Self | None:
        """Nothing where a signal of it is missing: on another scale its number means something else."""
        return None if self.on.signals() & missing else self

    @classmethod
    def read(cls, least: Item, on: Item | None = None) -> Floor:
        """See Stage."""
        if least.weight is None or least.call.name or (on is not None and on.weight is not None):
            raise ValueError
        return cls.of(least.weight, FUSED if on is None else str(on))

    @classmethod
    def of(cls, least: float, on: str = FUSED) -> Floor:
        """A floor on the sum that `on` writes; ValueError for one that cannot carry a floor."""
        scale = parse_strategy(on)
        if not scale.absolute:
            raise ValueError
        return cls(least, scale)

    def __str__(self) -> str:
        return f"floor({number_text(self.least)}{'' if str(self.on) == FUSED else f', on={self.on}'})"
