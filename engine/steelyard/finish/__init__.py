"""Turns scores into the list that is shown: sorts by the tie rule, then applies a tuple of stages.

Here are the stages that score again, and what reads, applies and asks stages: ``finish(table, scores, stages)``
serves live search and replay alike. To add one, write a class in its own file and list it here.
"""

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, cast

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard.base.errors import ConfigError, collect_errors, nearest
from steelyard.finish.stages import AtLeast, Cut, Drop, Files, Merge, Ranking, Stage, order
from steelyard.fusion import Expr, Plan, parse_strategy, strategy_reader
from steelyard.fusion.plan import Explanation
from steelyard.grammar import Call, number_text
from steelyard.node import MAX_COUNT, Registry, opt, parse_node
from steelyard.retrievers.vector import cosine
from steelyard.signals import PRIORS
from steelyard.table.signal_table import RERANK, SignalTable

__all__ = ["AtLeast", "Cut", "Drop", "Files", "Merge", "Ranking", "Stage", "order"]


@dataclass(frozen=True, slots=True)
class Document:
    """What a re-ranker reads of an entry."""

    id: str
    text: str


class CrossEncoder(Protocol):
    """Scores documents for a query."""

    @property
    def name(self) -> str:
        """The provider and model, as recordings keep it."""

    def score(self, query: str, documents: Sequence[Document]) -> Floats:
        """float64[len(documents)], finite, larger for a better match; RerankError when it cannot."""


@dataclass(frozen=True)
class Rerank(Stage):
    """Sort the first `top` places again by a re-ranker's score, times a `penalty` where one is named.

    The places behind follow in their order, under their own scores. Raises ConfigError where the table holds no
    re-ranker's score of a place.
    """

    RESCORES: ClassVar[bool] = True
    READS: ClassVar[frozenset[str]] = frozenset({RERANK})

    top: int = opt(low=1, high=MAX_COUNT, integer=True, bare=True)
    penalty: str = opt("", kind="word", words=PRIORS, quiet=True)

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
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
    """Sort what is left of every list again by another strategy, which sees these rows alone and may drop some."""

    RESCORES: ClassVar[bool] = True

    strategy: Expr = opt(kind="strategy", bare=True)

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        plan = self._plan(table, ranking)
        return order(table, plan.scores(), plan.ties(table))

    def explain(self, table: SignalTable, ranking: Ranking, row: int) -> Explanation | None:
        return self._plan(table, ranking).explain(row)

    def _plan(self, table: SignalTable, ranking: Ranking) -> Plan:
        within = np.zeros(len(table), dtype=bool)
        within[ranking.row] = True
        return self.strategy.compile(table, within)

    def without(self, missing: AbstractSet[str]) -> "Rescore | None":
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

    least: float = opt(bare=True)
    on: Expr = opt(FUSED, kind="strategy", quiet=True)

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        return ranking.keep((self.scores(table) >= self.least)[ranking.row])

    def scores(self, table: SignalTable) -> Floats:
        """float64[N]: what the floor is compared with."""
        return np.nan_to_num(self.on.compile(table, self.on.everywhere(table)).scores(), nan=0.0)

    def problems(self) -> Iterator[str]:
        if not self.on.absolute:
            yield f"floor: scores of {self.on} follow what else was found; write normalize=theoretical"


MOST_COMPARED = 1000
"""Places that are compared: the work grows with their square, and a weights file may be anybody's."""


@dataclass(frozen=True)
class Mmr(Stage):
    """Maximal marginal relevance among the first `top` places (Carbonell and Goldstein, SIGIR 1998).

    The next entry is the one with the most ``lambda * relevance - (1 - lambda) * nearest``, the first of equals.
    Relevance is its score, scaled to 0..1 over these places (1 where all are equal) unless `scaled` is 0; nearest
    is its largest cosine with an entry already chosen, 0 for the first one and for entries without a vector.
    Scores become these values; the places behind follow in their order, under their own scores. ConfigError for a
    table without vectors.
    """

    RESCORES: ClassVar[bool] = True

    top: int = opt(low=1, high=MOST_COMPARED, integer=True, bare=True)
    lambda_mult: float = opt(0.5, low=0, high=1, quiet=True)
    """What relevance counts, from 0, nothing, to 1, everything; 0.5 and its name are LangChain's."""
    scaled: int = opt(1, low=0, high=1, integer=True, quiet=True)

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
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
        relevance = relevance if self.scaled else scores
        near, left = np.zeros(len(rows)), np.ones(len(rows), dtype=bool)
        order, gaps = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows))
        for place in range(len(rows)):
            value = self.lambda_mult * relevance + (self.lambda_mult - 1.0) * near
            best = int(np.argmax(np.where(left, value, -np.inf)))
            order[place], gaps[place], left[best] = best, near[best], False
            likeness = cosine(vectors, vectors[best])
            near = np.maximum(near, likeness) if place else likeness
        return order, relevance[order], gaps

    def explain(self, table: SignalTable, ranking: Ranking, row: int) -> Explanation | None:
        rows, scores = ranking.row[: self.top], ranking.score[: self.top]
        if row not in rows:
            return None
        order, relevance, nearest = self._choose(table, rows, scores)
        place = int(np.flatnonzero(rows[order] == row)[0])
        parts = []
        for name, weight, what, value, formula in (
            ("lambda", self.lambda_mult, "relevance", relevance, "score, scaled to 0..1 over the first places"),
            ("lambda - 1", self.lambda_mult - 1.0, "nearest", nearest, "largest cosine with an entry above"),
        ):
            factors = Explanation(weight, name), Explanation(float(value[place]), formula)
            parts.append(Explanation(weight * factors[1].value, f"{name} times {what}", factors, "product"))
        return Explanation(parts[0].value + parts[1].value, str(self), tuple(parts), "sum")

    def without(self, missing: AbstractSet[str]) -> "Mmr | None":
        return None if "vector" in missing else self


STAGES: Registry[type[Stage]] = Registry(
    "stage", "keyword", (Cut, Merge, AtLeast, Files, Floor, Mmr, Rerank, Rescore, Drop)
)
"""Every stage by the name it is written with."""
MOST_STAGES = 20
"""Stages of a list: a search takes each of them, and a weights file may be anybody's."""


def parse_stages(texts: Sequence[str]) -> tuple[Stage, ...]:
    """Parse stages as they are written in a weights file; ConfigError lists every one that is wrong.

    >>> [str(stage) for stage in parse_stages(["merge(memory, score=0.5)", "cut(10, all_below=50, counting=fts)"])]
    ['merge(memory, score=0.5)', 'cut(10, all_below=50, counting=fts)']
    """
    if len(texts) > MOST_STAGES:
        raise ConfigError(f"finish has {len(texts)} stages; at most {MOST_STAGES} are allowed")
    return tuple(collect_errors(*(partial(_stage, text) for text in texts)))


def _stage(text: str) -> Stage:
    reader = strategy_reader()

    def build(call: Call) -> Stage | None:
        if (kind := STAGES.find(call.name)) is not None:
            return kind.read(call, reader)
        reader.faults.append(f"unknown stage {call.name!r}{nearest(call.name, STAGES)}")
        return None

    return cast(Stage, parse_node(text, reader, build, "finish stage"))


def finish(table: SignalTable, scores: Floats, stages: Sequence[Stage], ties: Ints | None = None) -> Ranking:
    """Order the scored rows, see `order`, then apply the stages one after the other."""
    ranking = order(table, scores, ties)
    for stage in stages:
        ranking = stage(table, ranking)
    return ranking


def explain_rescore(table: SignalTable, scores: Floats, stages: Sequence[Stage], row: int) -> Explanation | None:
    """How the last stage that gave a row a score of its own came to it; None where none did."""
    for i in reversed(range(len(stages))):
        if stages[i].RESCORES:
            before = finish(table, scores, stages[:i])
            if row in before.row and (explanation := stages[i].explain(table, before, row)):
                return explanation
    return None


def floor_that_emptied(table: SignalTable, scores: Floats, stages: Sequence[Stage]) -> str:
    """The floor that emptied the only query's list, in words; empty where none did."""
    for i, stage in enumerate(stages):
        if isinstance(stage, Floor) and len(rows := finish(table, scores, stages[:i]).row):
            best, floor = float(stage.scores(table)[rows].max()), f"the floor is {number_text(stage.least)}"
            if best < stage.least:
                return f"{floor} and the best of {len(rows)} candidates reaches {best:.4g} on {stage.on}"
    return ""


def stages_without(stages: Sequence[Stage], missing: Collection[str]) -> tuple[Stage, ...]:
    """What is left of the stages when these signals cannot be had."""
    return tuple(filter(None, (stage.without(frozenset(missing)) for stage in stages)))


def reranked(stages: Sequence[Stage]) -> Rerank | None:
    """The stage that reads a re-ranker's scores, where there is one."""
    return next((stage for stage in stages if isinstance(stage, Rerank)), None)


def to_rerank(table: SignalTable, scores: Floats, stages: Sequence[Stage]) -> Bools:
    """bool[N]: the rows whose re-ranker's score the stages read."""
    rows = np.zeros(len(table), dtype=bool)
    if (stage := reranked(stages)) is not None:
        before = stages[: list(stages).index(stage)]
        rows[finish(table, scores, (*before, Cut(stage.top))).row] = True
    return rows
