"""Ties: another processor may exchange entries whose scores are equal to 1e-6; a change of code may not.

A list is kept with the runs of places whose scores are that close. Its settled form has the ids of a run in
ascending order, and none for the last run, whose entries change places with some that the list no longer shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from steelyard_eval.datasets.states import hashed
from steelyard_eval.gate.hashes import LENGTH
from steelyard_eval.measures.runs import Scored

TOLERANCE = 1e-6
"""How far a score may differ on another platform than the baseline's, relative to those above 1."""
Run = tuple[int, int]


def near(a: float, b: float, times: int = 1) -> bool:
    """Whether scores are equal within the tolerance."""
    return abs(a - b) <= times * TOLERANCE * max(1.0, abs(b))


def runs(ranking: Sequence[Scored]) -> tuple[Run, ...]:
    """Places [begin, end) whose scores follow each other within twice the tolerance; and the last such run."""
    scores = [score for _, score in ranking]
    breaks = [i for i, (a, b) in enumerate(pairwise(scores), 1) if not near(a, b, 2)]
    places = pairwise([0, *breaks, len(ranking)])
    return tuple((begin, end) for begin, end in places if end - begin > 1 or end == len(ranking))


def settled_hash(lists: Sequence[Sequence[Scored]], ties: Sequence[Sequence[Run]]) -> str:
    """The hash of the ids of lists, whatever their order within the runs of each."""
    return hashed([_settled([id_ for id_, _ in row], tie) for row, tie in zip(lists, ties, strict=False)])[:LENGTH]


def _settled(ids: list[str], ties: Sequence[Run]) -> list[str]:
    for begin, end in ties:
        ids[begin:end] = sorted(ids[begin:end]) if end < len(ids) else [""] * (len(ids) - begin)
    return ids
