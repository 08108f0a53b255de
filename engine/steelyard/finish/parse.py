"""Reads stages as they are written in weights files."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.finish.base import Stage
from steelyard.finish.mmr import Mmr
from steelyard.finish.rescored import Floor, Rerank, Rescore
from steelyard.finish.stages import AtLeast, Cut, Drop, Files, Merge
from steelyard.grammar import parse_call

STAGES: dict[str, type[Stage]] = {
    stage.keyword: stage for stage in (Cut, Merge, AtLeast, Files, Floor, Mmr, Rerank, Rescore, Drop)
}
"""Every stage by the name it is written with."""
MOST = 20
"""Stages of a list: a search takes each of them, and a weights file may be anybody's."""


def parse_stages(texts: Sequence[str]) -> tuple[Stage, ...]:
    """Parse stages as they are written in a weights file; ConfigError lists every one that is wrong.

    >>> [str(stage) for stage in parse_stages(["merge(memory, score=0.5)", "cut(10, all_below=50, counting=fts)"])]
    ['merge(memory, score=0.5)', 'cut(10, all_below=50, counting=fts)']
    """
    if len(texts) > MOST:
        raise ConfigError(f"there are {len(texts)} finish stages, and at most {MOST} can follow one another")
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
    if call.name not in STAGES:
        raise ConfigError(f"unknown stage {call.name!r}{nearest(call.name, STAGES)}")
    stage = STAGES[call.name]
    try:
        if item.weight is not None or len(call.items) != 1 or len(options) < len(call.options):
            raise ValueError
        return stage.read(call.items[0], **options)
    except (TypeError, ValueError):  # an unknown option, or a value of the wrong type
        raise ConfigError(f"it needs {stage.FORM}") from None
