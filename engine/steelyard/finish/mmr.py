"""Sorts the first places again so that they do not repeat one another."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.finish.base import Ranking, Stage, whole_number
from steelyard.fusion.explain import Explanation
from steelyard.grammar import Item
from steelyard.retrievers.vector import cosine
from steelyard.table.signal_table import SignalTable

MOST = 1000
"""Places that are compared: the work grows with their square, and a weights file may be anybody's."""


@dataclass(frozen=True, slots=True)
class Mmr(Stage):
    """Maximal marginal relevance among the first `top` places (Carbonell and Goldstein, SIGIR 1998).

    The next entry is the one with the most ``lambda * relevance - (1 - lambda) * nearest``, the first of equals.
    Relevance is its score, scaled to 0..1 over these places (1 where all are equal); nearest is its largest cosine
    with an entry already chosen, 0 for the first one and for entries without a vector. Scores become these values;
    the places behind follow in their order, under their own scores.
    """

    keyword: ClassVar = "mmr"
    FORM: ClassVar = "a whole number up to 1000 and a share from 0 to 1, as in mmr(20) or mmr(20, lambda_mult=0.7)"
    RESCORES: ClassVar = True

    top: int
    lambda_mult: float = 0.5
    """What relevance counts, from 0, nothing, to 1, everything; 0.5 and its name are LangChain's."""

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step; ConfigError where the table has no vectors of its entries."""
        row, score = ranking.row.copy(), ranking.score.copy()
        for begin, end in zip(ranking.offsets[:-1].tolist(), ranking.offsets[1:].tolist(), strict=True):
            first = slice(begin, min(end, begin + self.top))
            chosen, relevance, nearest = self._choose(table, ranking.row[first], ranking.score[first])
            row[first] = ranking.row[first][chosen]
            score[first] = self.lambda_mult * relevance + (self.lambda_mult - 1.0) * nearest
        return Ranking(ranking.offsets, row, score)

    def _choose(self, table: SignalTable, rows: Indices, scores: Floats) -> tuple[Indices, Floats, Floats]:
        """The places in the order in which they are chosen, int64[n]; relevance and nearest in that order."""
        if table.vectors is None:
            raise ConfigError(
                f"{self} compares stored vectors, and this recording has none; record with this stage"
            )
        vectors = table.vectors[table.entry[rows]]
        spread = np.ptp(scores) if len(scores) else 0.0
        relevance = (scores - scores.min()) / spread if spread > 0 else np.ones(len(scores))
        nearest, left = np.full(len(rows), -np.inf), np.ones(len(rows), dtype=bool)
        order, gaps = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows))
        for place in range(len(rows)):
            near = nearest if place else np.zeros(len(rows))
            value = self.lambda_mult * relevance + (self.lambda_mult - 1.0) * near
            best = int(np.argmax(np.where(left, value, -np.inf)))
            order[place], gaps[place], left[best] = best, near[best], False
            nearest = np.maximum(nearest, cosine(vectors, vectors[best]))
        return order, relevance[order], gaps

    def explain(self, table: SignalTable, ranking: Ranking, row: int) -> Explanation | None:
        """How the value of a row came about; None for one behind the first places."""
        rows, scores = ranking.row[: self.top], ranking.score[: self.top]
        if row not in rows:
            return None
        order, relevance, nearest = self._choose(table, rows, scores)
        place = int(np.flatnonzero(rows[order] == row)[0])
        weight, scaled = self.lambda_mult, "score, scaled to 0..1 over the first places"
        parts = (
            _times("lambda", weight, "relevance", relevance[place], scaled),
            _times("lambda - 1", weight - 1.0, "nearest", nearest[place], "largest cosine with an entry above"),
        )
        return Explanation(parts[0].value + parts[1].value, str(self), parts, "sum")

    def without(self, missing: AbstractSet[str]) -> Mmr | None:
        """Nothing where there are no vectors."""
        return None if "vector" in missing else self

    @classmethod
    def read(cls, top: Item, lambda_mult: float = 0.5) -> Mmr:
        """See Stage."""
        if not isinstance(lambda_mult, float) or not 0 <= lambda_mult <= 1:
            raise ValueError
        return cls(whole_number(top.weight, high=MOST), lambda_mult)


def _times(name: str, weight: float, text: str, value: float, formula: str) -> Explanation:
    """What one part adds to a value."""
    factors = Explanation(weight, name), Explanation(float(value), formula)
    return Explanation(weight * float(value), f"{name} times {text}", factors, "product")
