"""Turns scores into the list that is shown: sorts by the tie rule, then applies a tuple of stages.

Each stage has a file; `parse_stages` reads their text. ``finish(table, scores, stages)`` serves live search and
replay alike.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from steelyard.base.arrays import Bools, Floats, Ints
from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.finish.rescored import Floor, Mmr, Rerank, Rescore
from steelyard.finish.stages import AtLeast, Cut, Drop, Files, Merge, Ranking, Stage, order
from steelyard.fusion import strategy_reader
from steelyard.fusion.plan import Explanation
from steelyard.grammar import number_text, parse_call
from steelyard.node import check_length
from steelyard.registry import Registry
from steelyard.table.signal_table import SignalTable

__all__ = ["AtLeast", "Cut", "Drop", "Files", "Floor", "Merge", "Mmr"]
__all__ += ["Ranking", "Rerank", "Rescore", "Stage", "order"]

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
        raise ConfigError(
            f"there are {len(texts)} finish stages, and at most {MOST_STAGES} can follow one another"
        )
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
    item, reader = parse_call(text), strategy_reader()
    stage = STAGES.find(item.call.name)
    if stage is None:
        raise ConfigError(f"unknown stage {item.call.name!r}{nearest(item.call.name, STAGES)}")
    if item.weight is not None:
        reader.faults.append(f"weight {number_text(item.weight)} before a stage changes nothing; drop it")
    made = stage.read(item.call, reader)
    if reader.faults or made is None:
        raise ConfigError("; ".join(reader.faults))
    check_length(text, str(made))
    return made


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


def without_floors(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages but for floors: what would be shown if nothing were too far off."""
    return tuple(stage for stage in stages if not isinstance(stage, Floor))


def floor_that_emptied(table: SignalTable, scores: Floats, stages: Sequence[Stage]) -> str:
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
    if (stage := reranked(stages)) is not None:
        before = stages[: list(stages).index(stage)]
        rows[finish(table, scores, (*before, Cut(stage.top))).row] = True
    return rows
