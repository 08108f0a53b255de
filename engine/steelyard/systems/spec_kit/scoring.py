"""Helpers of system-spec-kit's code that its own search does not call: reachable from Python alone."""

from __future__ import annotations

from typing import Literal

from steelyard.memory.forgetting import FSRS_FACTOR

State = Literal["HOT", "WARM", "COLD", "DORMANT", "ARCHIVED"]


def state(retrievability: float, age_days: float) -> State:
    """The attention state of a memory, by how well it is remembered and how old it is.

    >>> state(0.8, 5), state(0.019, 91), state(0.019, 90)
    ('HOT', 'ARCHIVED', 'DORMANT')
    """
    if retrievability < 0.02 and age_days > 90:
        return "ARCHIVED"
    bounds: tuple[tuple[float, State], ...] = ((0.80, "HOT"), (0.25, "WARM"), (0.05, "COLD"))
    return next((name for least, name in bounds if retrievability >= least), "DORMANT")


def interval(stability: float, retention: float) -> int:
    """Days until a memory is remembered with the given probability only; at least 1."""
    return max(1, int(stability / FSRS_FACTOR * (retention**-2 - 1) + 0.5))


def coactivated(base: float, related: int, similarity: float) -> float:
    """A score raised by how many related memories there are, of which mean similarity in percent.

    >>> coactivated(0.5, 5, 90)
    0.635
    """
    return base + 0.15 * (related / 5) * (similarity / 100)


def fused_advanced(meaning: float, keywords: float, matches: int) -> float:
    """The JavaScript code's other fusion: the larger score, a part of the smaller one, and 0.1 a matching word.

    >>> fused_advanced(0.5, 0.5, 1)
    0.725
    """
    both = 0.25 * max(0.0, min(meaning, keywords))
    return min(1.0, max(meaning, keywords) + both + min(0.1 * matches, 0.2))


def by_intent(similarity: float, importance: float, weights: tuple[float, float, float]) -> float:
    """The intent score of the TypeScript library: similarity in percent, importance 0..1; recency is not read."""
    _, important, similar = weights
    return similarity / 100 * similar + importance * important
