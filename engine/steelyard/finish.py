"""Turns scores into the list that is shown: sorts by the tie rule, then applies a tuple of pure stages.

A stage maps a ranking to a ranking, and prints as it is written in a weights file: ``cut(10)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Bools, Floats
from steelyard.errors import ConfigError, nearest, shown
from steelyard.explain import Explanation
from steelyard.fusion import Expr, Plan, parse_strategy
from steelyard.grammar import Item, number_text, parse_call
from steelyard.signals import PRIORS
from steelyard.table import FETCHED, RERANK, RETRIEVERS, SCORERS, SignalTable, best_first, count_rows, ranks


@dataclass(frozen=True)
class Ranking:
    """Ranked lists of many queries, best first, as CSR.

    Attributes
    ----------
    offsets : int64[Q+1]
        Query q has the places ``offsets[q]:offsets[q+1]``.
    row : int64[R]
        Indices of table rows.
    score : float64[R]
        Their scores.
    """

    offsets: NDArray[np.int64]
    row: NDArray[np.int64]
    score: Floats

    def keep(self, kept: NDArray[np.bool_]) -> Ranking:
        """Return the same lists with only the given places (bool[R])."""
        before = np.concatenate(([0], np.cumsum(kept)))
        return Ranking(before[self.offsets].astype(np.int64), self.row[kept], self.score[kept])


LONGEST = 1_000_000_000
"""The largest length a stage can name; far beyond any list, and small enough for numpy's integers."""


class Stage(Protocol):
    """One step between the ranked rows and the final list."""

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """Return the ranking after this step."""

    @property
    def needs(self) -> frozenset[str]:
        """The signals that it reads, for every query."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Keep the first `limit` places of every list.

    Attributes
    ----------
    limit : int
        At least 1.
    all_below : int
        A list of fewer candidates than this is not cut if the cut would drop more than half of it
        (Soleri's small-corpus guard).
    counting : str
        The retriever whose candidates are counted for this; empty to count all that are ranked.
    """

    limit: int
    all_below: int = 0
    counting: str = ""

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        size = np.diff(ranking.offsets)
        place = np.arange(len(ranking.row)) - np.repeat(ranking.offsets[:-1], size)
        return ranking.keep(place < np.repeat(np.where(self._whole(table, size), size, self.limit), size))

    def _whole(self, table: SignalTable, size: NDArray[np.int64]) -> Bools:
        """The lists that are not cut; bool[Q]."""
        count = count_rows(table, ~np.isnan(table.column(self.counting))) if self.counting else size
        whole: Bools = (count < self.all_below) & (size > 2 * self.limit)
        return whole

    @property
    def needs(self) -> frozenset[str]:
        """The retriever whose candidates are counted."""
        return frozenset({self.counting} - {""})

    def __str__(self) -> str:
        guard = f", all_below={self.all_below}" if self.all_below else ""
        return f"cut({self.limit}{guard}{f', counting={self.counting}' if self.counting else ''})"


@dataclass(frozen=True, slots=True)
class Merge:
    """Add what a separate retriever found, all at one score (Soleri's memories at 0.5).

    Rows that are already ranked keep their score, and come before added rows of the same score. With `if_none`
    at most so many are added, and only to lists that have none of them (system-spec-kit's constitutional entries).
    """

    retriever: str
    score: float
    if_none: int = 0

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        found = ~np.isnan(table.column(self.retriever))
        added = found & self._admitted(table, ranking, found) if self.if_none else found
        added[ranking.row] = False
        extra = np.flatnonzero(added)
        extra = extra[np.lexsort((-table.column(self.retriever)[extra], table.query[extra]))]
        row = np.concatenate((ranking.row, extra))
        score = np.concatenate((ranking.score, np.full(len(extra), self.score)))
        best = np.lexsort((-score, table.query[row]))  # stable: ranked rows come first, memories by their own rank
        offsets = np.searchsorted(table.query[row][best], np.arange(len(table.queries) + 1)).astype(np.int64)
        return Ranking(offsets, row[best], score[best])

    def _admitted(self, table: SignalTable, ranking: Ranking, found: Bools) -> Bools:
        """bool[N]: the first rows of its list, in the queries whose ranking has none of them."""
        listed = np.zeros(len(table), dtype=bool)
        listed[ranking.row] = found[ranking.row]
        place = ranks(table, table.column(self.retriever), found)
        admitted: Bools = (count_rows(table, listed) == 0)[table.query] & (place <= self.if_none)
        return admitted

    @property
    def needs(self) -> frozenset[str]:
        """The retriever whose rows are added."""
        return frozenset({self.retriever})

    def __str__(self) -> str:
        most = f", if_none={self.if_none}" if self.if_none else ""
        return f"merge({self.retriever}, score={number_text(self.score)}{most})"


@dataclass(frozen=True, slots=True)
class Drop:
    """Drop the rows for which a signal is 0, without filling the list up (MoltNet's negation)."""

    signal: str

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        return ranking.keep(table.column(self.signal)[ranking.row] != 0)

    @property
    def needs(self) -> frozenset[str]:
        """The signal that decides."""
        return frozenset({self.signal})

    def __str__(self) -> str:
        return f"drop({self.signal})"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Drop what scores below `score`."""

    score: float

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        return ranking.keep(ranking.score >= self.score)

    @property
    def needs(self) -> frozenset[str]:
        """Nothing."""
        return frozenset()

    def __str__(self) -> str:
        return f"at_least({number_text(self.score)})"


@dataclass(frozen=True, slots=True)
class Files:
    """What becomes of a directory in the list, an entry that others lie in and that has no text of its own.

    It is dropped, or with ``entries`` stands for the entries in it: those that are not ranked take its place
    and its score. (Cortex-Mem's full search returns directories too.)
    """

    instead: str

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        folder, home = self.folders(table), table.home
        if self.instead == "none":
            return ranking.keep(~folder[ranking.row])
        score = np.full(len(table), np.nan)
        score[ranking.row] = ranking.score
        lent = np.where((home >= 0) & folder[home] & ~folder, score[home], np.nan)
        score[folder] = np.nan
        return order(table, np.where(np.isnan(score), lent, score))

    @staticmethod
    def folders(table: SignalTable) -> Bools:
        """bool[N]: the rows of directories."""
        home, rows = table.home, np.arange(len(table))
        folder = np.zeros(len(table), dtype=bool)
        folder[home[(home >= 0) & (home != rows)]] = True
        return folder & np.isnan(table.columns["l2"]) if "l2" in table.columns else folder

    @property
    def needs(self) -> frozenset[str]:
        """The layer that a directory lacks."""
        return frozenset({"l2"})

    def __str__(self) -> str:
        return f"files({self.instead})"


@dataclass(frozen=True, slots=True)
class Rerank:
    """Sort the first `top` places again by a re-ranker's score, times a `penalty` where one is named.

    The places behind follow in their order, under their own scores. Raises ConfigError where the table holds no
    re-ranker's score of a place.
    """

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
    def needs(self) -> frozenset[str]:
        """No signal that is fetched for every candidate."""
        return frozenset()

    def __str__(self) -> str:
        return f"rerank({self.top}{f', penalty={self.penalty}' if self.penalty else ''})"


@dataclass(frozen=True, slots=True)
class Rescore:
    """Sort what is left of every list again by another strategy, which sees these rows alone."""

    strategy: Expr

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step; a row that the strategy does not rank goes."""
        return order(table, self._plan(table, ranking).scores())

    def explain(self, table: SignalTable, ranking: Ranking, row: int) -> Explanation | None:
        """How the score of a row came about."""
        return self._plan(table, ranking).explain(row)

    def _plan(self, table: SignalTable, ranking: Ranking) -> Plan:
        within = np.zeros(len(table), dtype=bool)
        within[ranking.row] = True
        return self.strategy.compile(table, within)

    @property
    def needs(self) -> frozenset[str]:
        """Its fetched signals."""
        return self.strategy.signals() & FETCHED

    def __str__(self) -> str:
        return f"rescore({self.strategy})"


def scored_again(table: SignalTable, scores: Floats, stages: Sequence[Stage], row: int) -> Explanation | None:
    """How the last stage that gives scores of its own came to that of a row; None where none does."""
    for at in reversed(range(len(stages))):
        stage = stages[at]
        if isinstance(stage, Rerank | Rescore):
            before = finish(table, scores, stages[:at])
            if row in before.row:
                return stage.explain(table, before, row)
    return None


def facts_read(stages: Sequence[Stage]) -> frozenset[str]:
    """The derived signals that stages compute."""
    found = {stage.penalty for stage in stages if isinstance(stage, Rerank)} - {""}
    strategies = [stage.strategy for stage in stages if isinstance(stage, Rescore)]
    return frozenset(found).union(*(strategy.signals() & PRIORS.keys() for strategy in strategies))


def reranked(stages: Sequence[Stage]) -> Rerank | None:
    """The stage that reads a re-ranker's scores, where there is one."""
    return next((stage for stage in stages if isinstance(stage, Rerank)), None)


def stages_without(stages: Sequence[Stage], missing: Collection[str]) -> tuple[Stage, ...]:
    """What is left of the stages when these signals cannot be had."""
    left: list[Stage] = []
    for stage in stages:
        if isinstance(stage, Rescore):
            strategy = stage.strategy.without(missing)
            left += [] if strategy is None else [Rescore(strategy)]
        elif not (stage.needs & set(missing)) and not (isinstance(stage, Rerank) and RERANK in missing):
            left.append(stage)
    return tuple(left)


def to_rerank(table: SignalTable, scores: Floats, stages: Sequence[Stage]) -> Bools:
    """bool[N]: the rows whose re-ranker's score the stages read."""
    rows = np.zeros(len(table), dtype=bool)
    stage = reranked(stages)
    if stage is not None:
        ranking = finish(table, scores, (*stages[: list(stages).index(stage)], Cut(stage.top)))
        rows[ranking.row] = True
    return rows


def order(table: SignalTable, scores: Floats) -> Ranking:
    """Sort the scored rows of every query: score descending, then id ascending by bytes.

    `scores` is float64[N], NaN for rows that are not ranked.
    """
    row = np.flatnonzero(~np.isnan(scores))
    offsets = np.searchsorted(row, table.offsets).astype(np.int64)
    row = row[best_first(offsets, scores[row])]
    return Ranking(offsets, row.astype(np.int64), scores[row])


def finish(table: SignalTable, scores: Floats, stages: Sequence[Stage]) -> Ranking:
    """Order the scored rows, then apply the stages one after the other."""
    ranking = order(table, scores)
    for stage in stages:
        ranking = stage(table, ranking)
    return ranking


def parse_stages(texts: Sequence[str]) -> tuple[Stage, ...]:
    """Parse stages as they are written in a weights file; ConfigError lists every one that is wrong.

    >>> [str(stage) for stage in parse_stages(["merge(memory, score=0.5)", "cut(10, all_below=50, counting=fts)"])]
    ['merge(memory, score=0.5)', 'cut(10, all_below=50, counting=fts)']
    """
    stages: list[Stage] = []
    problems: list[str] = []
    for text in texts:
        try:
            stages.append(_stage(text))
        except ConfigError as error:
            problems.append(f"finish stage {shown(text)}: {error}")
    if problems:
        raise ConfigError("; ".join(problems))
    return tuple(stages)


def _stage(text: str) -> Stage:
    item = parse_call(text)
    call, options = item.call, dict(item.call.options)
    if call.name not in _READERS:
        raise ConfigError(f"unknown stage {call.name!r}{nearest(call.name, _READERS)}")
    form, read = _READERS[call.name]
    try:
        if item.weight is not None or len(call.items) != 1 or len(options) < len(call.options):
            raise ValueError
        return read(call.items[0], **options)
    except (TypeError, ValueError):  # an unknown option, or a value of the wrong type
        raise ConfigError(f"it needs {form}") from None


def _cut(limit: Item, all_below: float = 0.0, counting: Item | None = None) -> Cut:
    return Cut(_whole(limit.weight), _whole(all_below, 0), "" if counting is None else _name(counting, RETRIEVERS))


def _merge(retriever: Item, score: float, if_none: float = 0.0) -> Merge:
    if not isinstance(score, float):
        raise ValueError
    return Merge(_name(retriever, RETRIEVERS), score, _whole(if_none, 0))


def _at_least(score: Item) -> AtLeast:
    if score.weight is None or score.call.name:
        raise ValueError
    return AtLeast(score.weight)


def _files(instead: Item) -> Files:
    return Files(_name(instead, ("none", "entries")))


def _rerank(top: Item, penalty: Item | None = None) -> Rerank:
    return Rerank(_whole(top.weight), "" if penalty is None else _name(penalty, PRIORS))


def _rescore(strategy: Item) -> Rescore:
    if strategy.weight is not None:
        raise ValueError
    return Rescore(parse_strategy(str(strategy)))


def _drop(signal: Item) -> Drop:
    return Drop(_name(signal, SCORERS))


def _whole(value: object, low: int = 1) -> int:
    if not isinstance(value, float) or not low <= value <= LONGEST or value != int(value):
        raise ValueError
    return int(value)


def _name(item: Item, valid: Collection[str]) -> str:
    if item.weight is not None or item.call.items or item.call.options or item.call.name not in valid:
        raise ValueError
    return item.call.name


_READERS: dict[str, tuple[str, Callable[..., Stage]]] = {
    "cut": ("a whole number from 1 to 1000000000, as in cut(10) or cut(10, all_below=50, counting=fts)", _cut),
    "merge": ("a retriever and a number, as in merge(memory, score=0.5)", _merge),
    "at_least": ("one number, as in at_least(0.5)", _at_least),
    "files": ("none or entries: what stands for directories, as in files(entries)", _files),
    "rerank": (
        "a whole number and no more than a factor, as in rerank(20) or rerank(20, penalty=length)",
        _rerank,
    ),
    "rescore": ("a strategy, as in rescore(weighted_sum(0.4*cosine, 0.6*importance))", _rescore),
    "drop": (f"one of {', '.join(sorted(SCORERS))}, as in drop(lexical)", _drop),
}
