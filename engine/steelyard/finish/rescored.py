"""Stages that score again: a re-ranker's places, another strategy's, the floor that is shown, and diversity."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.finish.stages import Ranking, Stage, order
from steelyard.fusion import Expr, Plan, parse_strategy
from steelyard.fusion.plan import Explanation
from steelyard.node import MAX_COUNT, opt
from steelyard.retrievers.vector import cosine
from steelyard.signals import PRIORS
from steelyard.table.signal_table import RERANK, SignalTable


@dataclass(frozen=True)
class Rerank(Stage):
    """Sort the first `top` places again by a re-ranker's score, times a `penalty` where one is named.

    The places behind follow in their order, under their own scores. Raises ConfigError where the table holds no
    re-ranker's score of a place.
    """

    keyword: ClassVar[str] = "rerank"
    RESCORES: ClassVar[bool] = True
    READS: ClassVar[frozenset[str]] = frozenset({RERANK})

    top: int = opt(low=1, high=MAX_COUNT, whole=True, bare=True)
    penalty: str = opt("", kind="word", words=PRIORS, quiet=True)

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        behind = ranking.place >= self.top
        again = self.final(table)[ranking.row]
        if np.isnan(again[~behind]).any():
            raise ConfigError(
                f"{self} reads places that no re-ranker scored in this recording; record with --rerank all, "
                "or with this configuration"
            )
        score = np.where(behind, ranking.score, again)
        rows, key = np.where(behind, 0, ranking.row), np.where(behind, 0.0, -score)
        best = np.lexsort((rows, key, behind, table.query[ranking.row]))
        return Ranking(ranking.offsets, ranking.row[best], score[best])

    def explain(self, table: SignalTable, ranking: Ranking, row: int) -> Explanation | None:
        """How the score of a row came about; None for one behind the first places."""
        if row not in ranking.row[: self.top]:
            return None
        parts = [Explanation(float(table.column(RERANK)[row]), "score of the re-ranker")]
        if self.penalty:
            parts.append(Explanation(float(PRIORS[self.penalty](table).values[row]), self.penalty))
        return Explanation(float(self.final(table)[row]), str(self), tuple(parts), "product")

    def final(self, table: SignalTable) -> Floats:
        """float64[N]: the score of every row, NaN where it was not scored."""
        scores = table.column(RERANK)
        return scores * PRIORS[self.penalty](table).values if self.penalty else scores


@dataclass(frozen=True)
class Rescore(Stage):
    """Sort what is left of every list again by another strategy, which sees these rows alone."""

    keyword: ClassVar[str] = "rescore"
    RESCORES: ClassVar[bool] = True

    strategy: Expr = opt(kind="strategy", bare=True)

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

    def without(self, missing: AbstractSet[str]) -> Rescore | None:
        """With what is left of the strategy."""
        left = self.strategy.without(missing)
        return None if left is None else Rescore(left)


FUSED = parse_strategy("weighted_sum(0.5*bm25, 0.5*vector, normalize=theoretical)")
"""What a floor is on where nothing else is said: scores that do not depend on what else was found."""


@dataclass(frozen=True)
class Floor(Stage):
    """Drop the entries that score below `least` by `on`, a sum on a scale that no other entry moves.

    An entry that `on` does not rank scores 0 there. What ranks may be anything, reciprocal ranks too, which
    cannot carry a floor themselves: the first of any list has the highest score there is.
    """

    keyword: ClassVar[str] = "floor"

    least: float = opt(bare=True)
    on: Expr = opt(FUSED, kind="strategy", quiet=True)

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        return ranking.keep((self.scores(table) >= self.least)[ranking.row])

    def scores(self, table: SignalTable) -> Floats:
        """float64[N]: what the floor is compared with."""
        return np.nan_to_num(self.on.compile(table, self.on.everywhere(table)).scores(), nan=0.0)

    def problems(self) -> Iterator[str]:
        """A scale that other entries move."""
        if not self.on.absolute:
            yield f"floor: scores of {self.on} follow what else was found; write normalize=theoretical"


MOST = 1000
"""Places that are compared: the work grows with their square, and a weights file may be anybody's."""


@dataclass(frozen=True)
class Mmr(Stage):
    """Maximal marginal relevance among the first `top` places (Carbonell and Goldstein, SIGIR 1998).

    The next entry is the one with the most ``lambda * relevance - (1 - lambda) * nearest``, the first of equals.
    Relevance is its score, scaled to 0..1 over these places (1 where all are equal); nearest is its largest cosine
    with an entry already chosen, 0 for the first one and for entries without a vector. Scores become these values;
    the places behind follow in their order, under their own scores.
    """

    keyword: ClassVar[str] = "mmr"
    RESCORES: ClassVar[bool] = True

    top: int = opt(low=1, high=MOST, whole=True, bare=True)
    lambda_mult: float = opt(0.5, low=0, high=1, quiet=True)
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

        def part(name: str, weight: float, what: str, value: float, formula: str) -> Explanation:
            factors = Explanation(weight, name), Explanation(value, formula)
            return Explanation(weight * value, f"{name} times {what}", factors, "product")

        weight, scaled = self.lambda_mult, "score, scaled to 0..1 over the first places"
        parts = (
            part("lambda", weight, "relevance", float(relevance[place]), scaled),
            part(
                "lambda - 1", weight - 1.0, "nearest", float(nearest[place]), "largest cosine with an entry above"
            ),
        )
        return Explanation(parts[0].value + parts[1].value, str(self), parts, "sum")

    def without(self, missing: AbstractSet[str]) -> Mmr | None:
        """Nothing where there are no vectors."""
        return None if "vector" in missing else self
