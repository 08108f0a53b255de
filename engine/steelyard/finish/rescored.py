"""Stages that score again: a re-ranker's places, another strategy's, and the floor that is shown."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.base.errors import ConfigError
from steelyard.finish.base import Ranking, Stage, name_of, order, whole_number
from steelyard.fusion import Expr, Plan, parse_strategy
from steelyard.fusion.explain import Explanation
from steelyard.grammar import Item, number_text
from steelyard.signals import PRIORS
from steelyard.table.signal_table import RERANK, SignalTable


@dataclass(frozen=True, slots=True)
class Rerank(Stage):
    """Sort the first `top` places again by a re-ranker's score, times a `penalty` where one is named.

    The places behind follow in their order, under their own scores. Raises ConfigError where the table holds no
    re-ranker's score of a place.
    """

    keyword: ClassVar = "rerank"
    FORM: ClassVar = "a whole number and no more than a factor, as in rerank(20) or rerank(20, penalty=length)"
    RESCORES: ClassVar = True

    top: int
    penalty: str = ""

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        size = np.diff(ranking.offsets)
        query = np.repeat(np.arange(len(size)), size)
        behind = np.arange(len(ranking.row)) - np.repeat(ranking.offsets[:-1], size) >= self.top
        again = self.final(table)[ranking.row]
        if np.isnan(again[~behind]).any():
            raise ConfigError(
                f"{self} reads places that no re-ranker scored in this recording; record with --rerank all, "
                "or with this configuration"
            )
        score = np.where(behind, ranking.score, again)
        key = np.where(behind, 0.0, -score)
        best = np.lexsort((np.where(behind, 0, ranking.row), key, behind, query))
        return Ranking(ranking.offsets, ranking.row[best], score[best])

    def explain(self, table: SignalTable, ranking: Ranking, row: int) -> Explanation | None:
        """How the score of a row came about; None for one behind the first places."""
        if row not in ranking.row[: self.top]:
            return None
        parts = [Explanation(float(table.column(RERANK)[row]), "score of the re-ranker")]
        if self.penalty:
            parts.append(Explanation(float(PRIORS[self.penalty](table, {}).values[row]), self.penalty))
        return Explanation(float(self.final(table)[row]), str(self), tuple(parts), "product")

    def final(self, table: SignalTable) -> Floats:
        """float64[N]: the score of every row, NaN where it was not scored."""
        scores = table.column(RERANK)
        return scores * PRIORS[self.penalty](table, {}).values if self.penalty else scores

    @property
    def facts(self) -> frozenset[str]:
        """The penalty."""
        return frozenset({self.penalty} - {""})

    def without(self, missing: AbstractSet[str]) -> Rerank | None:
        """Itself, unless nobody re-ranks."""
        return None if RERANK in missing else self

    @classmethod
    def read(cls, top: Item, penalty: Item | None = None) -> Rerank:
        """See Stage."""
        return cls(whole_number(top.weight), "" if penalty is None else name_of(penalty, PRIORS))


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
