"""Sorts the first places again by a re-ranker's scores."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError
from steelyard.finish.base import Stage, name_of, whole_number
from steelyard.finish.ranking import Ranking
from steelyard.fusion.explain import Explanation
from steelyard.grammar import Item
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
