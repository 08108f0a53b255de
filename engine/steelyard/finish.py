"""From scores to the list that is shown: order by the one tie rule, then a tuple of pure stages.

A stage maps a ranking to a ranking and prints as it is written in a weights file: ``cut(10)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import ConfigError, nearest, shown
from steelyard.expression import amount_of, parse_call
from steelyard.table import Floats, SignalTable, best_first


@dataclass(frozen=True)
class Ranking:
    """Ranked lists of many queries, best first, as CSR.

    Attributes
    ----------
    offsets : int64[Q+1]. row : int64[R], indices of table rows. score : float64[R].
    """

    offsets: NDArray[np.int64]
    row: NDArray[np.int64]
    score: Floats

    def keep(self, kept: NDArray[np.bool_]) -> Ranking:
        """The same lists with only the given places (bool[R])."""
        before = np.concatenate(([0], np.cumsum(kept)))
        return Ranking(before[self.offsets].astype(np.int64), self.row[kept], self.score[kept])


class Stage(Protocol):
    """One step between ranked rows and the final list."""

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Keep the first `limit` places of every list."""

    limit: int

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        place = np.arange(len(ranking.row)) - np.repeat(ranking.offsets[:-1], np.diff(ranking.offsets))
        return ranking.keep(place < self.limit)

    def __str__(self) -> str:
        return f"cut({self.limit})"


def order(table: SignalTable, scores: Floats) -> Ranking:
    """Sort the scored rows of every query: score descending, then id ascending by bytes.

    `scores` is float64[N] with NaN on rows that are not ranked.
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
    """Read stages as a weights file writes them; ConfigError names every one it cannot read.

    >>> [str(stage) for stage in parse_stages(["cut(10)"])]
    ['cut(10)']
    """
    stages: list[Stage] = []
    problems: list[str] = []
    for text in texts:
        try:
            item = parse_call(text)
        except ConfigError as error:
            problems.append(f"finish stage: {error}")
            continue
        amount = amount_of(item)
        if item.call.name != "cut":
            problems.append(f"unknown finish stage {shown(text)}{nearest(item.call.name, ['cut'])}")
        elif amount is None or amount < 1 or amount != int(amount):
            problems.append(f"finish stage {shown(text)} needs one whole number of at least 1, as in cut(10)")
        else:
            stages.append(Cut(int(amount)))
    if problems:
        raise ConfigError("; ".join(problems))
    return tuple(stages)
