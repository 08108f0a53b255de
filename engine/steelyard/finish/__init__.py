"""Turns scores into the list that is shown: sorts by the tie rule, then applies a tuple of stages.

Each stage has a file; `parse_stages` reads their text. ``finish(table, scores, stages)`` serves live search and
replay alike.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from steelyard.base.arrays import Bools, Floats, Ints
from steelyard.finish.base import Ranking, Stage, order
from steelyard.finish.mmr import Mmr
from steelyard.finish.parse import parse_stages
from steelyard.finish.rescored import Floor, Rerank, Rescore
from steelyard.finish.stages import AtLeast, Cut, Drop, Files, Merge
from steelyard.fusion.explain import Explanation
from steelyard.grammar import number_text
from steelyard.table.signal_table import SignalTable

__all__ = [
    "AtLeast",
    "Cut",
    "Drop",
    "Files",
    "Floor",
    "Merge",
    "Mmr",
    "Ranking",
    "Rerank",
    "Rescore",
    "Stage",
    "diversified",
    "finish",
    "order",
    "parse_stages",
    "reranked",
    "scored_again",
    "silenced",
    "stages_without",
    "to_rerank",
    "without_floors",
]


def finish(table: SignalTable, scores: Floats, stages: Sequence[Stage], ties: Ints | None = None) -> Ranking:
    """Order the scored rows, see `order`, then apply the stages one after the other."""
    ranking = order(table, scores, ties)
    for stage in stages:
        ranking = stage(table, ranking)
    return ranking


def scored_again(table: SignalTable, scores: Floats, stages: Sequence[Stage], row: int) -> Explanation | None:
    """How the last stage that gave a row a score of its own came to it; None where none did."""
    for i in reversed(range(len(stages))):
        if stages[i].RESCORES:
            before = finish(table, scores, stages[:i])
            if row in before.row and (explanation := stages[i].explain(table, before, row)):
                return explanation
    return None


def without_floors(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages but for floors: what would be shown if nothing were too far off."""
    return tuple(stage for stage in stages if not isinstance(stage, Floor))


def silenced(table: SignalTable, scores: Floats, stages: Sequence[Stage]) -> str:
    """Which floor left nothing of the list of the table's only query, in words; empty where none did."""
    for i, stage in enumerate(stages):
        if isinstance(stage, Floor) and len(rows := finish(table, scores, stages[:i]).row):
            best = float(stage.scores(table)[rows].max())
            if best < stage.least:
                return (
                    f"the floor is {number_text(stage.least)} and the best of {len(rows)} candidates reaches "
                    f"{best:.4g} on {stage.on}"
                )
    return ""


def stages_without(stages: Sequence[Stage], missing: Collection[str]) -> tuple[Stage, ...]:
    """What is left of the stages when these signals cannot be had."""
    left = (stage.without(frozenset(missing)) for stage in stages)
    return tuple(stage for stage in left if stage is not None)


def reranked(stages: Sequence[Stage]) -> Rerank | None:
    """The stage that reads a re-ranker's scores, where there is one."""
    return next((stage for stage in stages if isinstance(stage, Rerank)), None)


def diversified(stages: Sequence[Stage]) -> bool:
    """Whether a stage compares the stored vectors of entries."""
    return any(isinstance(stage, Mmr) for stage in stages)


def to_rerank(table: SignalTable, scores: Floats, stages: Sequence[Stage]) -> Bools:
    """bool[N]: the rows whose re-ranker's score the stages read."""
    rows = np.zeros(len(table), dtype=bool)
    stage = reranked(stages)
    if stage is not None:
        ranking = finish(table, scores, (*stages[: list(stages).index(stage)], Cut(stage.top)))
        rows[ranking.row] = True
    return rows
