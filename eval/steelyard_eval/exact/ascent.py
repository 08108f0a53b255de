"""Coordinate ascent with exact steps: one weight against the rest, each time to the best point of the whole line.

A step moves weight s from 0 to 1 while the others keep their proportions, and is a sweep: it sees every value the
line has, where a step along a gradient or a grid sees a few. Metzler and Croft (Information Retrieval 10, 2007)
tune linear retrieval models so, with grid steps. Ascents end where no single weight can gain, which may be a local
optimum: lines in random directions lead on from there, and seeded restarts look elsewhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from steelyard.table import Floats, Indices
from steelyard_eval.exact.curve import SAME, Plateau
from steelyard_eval.exact.objective import Objective
from steelyard_eval.exact.sweep import segment, sweep

RESTARTS = 10
DIRECTIONS = 30
"""Random directions without a gain after which a search ends."""


@dataclass(frozen=True)
class Point:
    """Weights float64[S], their mean by direct evaluation, and the lines and polygons looked at so far."""

    weights: Floats
    value: float
    looks: int = 0


def line_of(weights: Floats, own: Indices, s: int) -> tuple[Floats, Floats]:
    """The ends of the line on which weight s of the simplex over the weights `own` goes from 0 to 1."""
    rest = own[own != s]
    begin, end = weights.copy(), weights.copy()
    begin[own], end[own] = 0.0, 0.0
    total = weights[rest].sum()
    begin[rest] = weights[rest] / total if total > 0 else 1.0 / len(rest)
    end[s] = 1.0
    return begin, end


def step(objective: Objective, point: Point, own: Indices, s: int) -> tuple[Point, Plateau]:
    """The best point of the line of weight s, in the middle of its plateau, and that plateau.

    Of equal plateaus the one nearest to where the weight is. The point stays what it was when a direct
    evaluation does not confirm the value.
    """
    begin, end = line_of(point.weights, own, s)
    plateau = segment(objective, begin, end).curve().choose(near=float(point.weights[s]))
    found = begin + plateau.t * (end - begin)
    value = objective.mean(found)
    if value < point.value - SAME:
        return replace(point, looks=point.looks + 1), plateau
    return Point(found, value, point.looks + 1), plateau


def ascend(objective: Objective, point: Point, own: Indices) -> Point:
    """Step through the weights `own`, round after round, until none gains."""
    idle = 0
    for s in itertools.cycle(own):
        moved, _ = step(objective, point, own, int(s))
        gain = moved.value > point.value + SAME
        # Without a gain it stays where it is, which keeps a result near to where it began. After one, the weight
        # itself has nothing left to gain.
        point = moved if gain else replace(point, looks=moved.looks)
        idle = 1 if gain else idle + 1
        if idle >= len(own):
            break
    return point


def wander(objective: Objective, point: Point, own: Indices, rng: np.random.Generator) -> Point:
    """Sweep lines in random directions through the point until `DIRECTIONS` of them in a row gain nothing.

    They lead out of places that no weight alone can leave.
    """
    idle = 0
    while idle < DIRECTIONS:
        direction = np.zeros(len(point.weights))
        drawn = rng.normal(size=len(own))
        direction[own] = drawn - drawn.mean()
        moved = _along(objective, point, own, direction)
        idle = 0 if moved.value > point.value else idle + 1
        point = moved
    return point


def _along(objective: Objective, point: Point, own: Indices, direction: Floats) -> Point:
    """The best point of a line through the simplex, when it is better."""
    with np.errstate(divide="ignore"):
        reach = -point.weights[own] / direction[own]  # where each weight becomes 0
    low, high = float(reach[direction[own] > 0].max()), float(reach[direction[own] < 0].min())
    best = sweep(objective, point.weights, direction, low, high).curve().choose(near=0.0)
    stay = replace(point, looks=point.looks + 1)
    if best.value <= point.value + SAME:
        return stay
    found = point.weights + best.t * direction
    found[own] = np.maximum(found[own], 0.0) / np.maximum(found[own], 0.0).sum()
    value = objective.mean(found)
    return Point(found, value, stay.looks) if value > point.value + SAME else stay


def climb(objective: Objective, point: Point, own: Indices, seed: int, restarts: int = RESTARTS) -> Point:
    """The best of a search from a point and of others from weights drawn evenly from the simplex."""
    return list(climbs(objective, point, own, seed, restarts))[-1]


def climbs(objective: Objective, point: Point, own: Indices, seed: int, restarts: int) -> Iterator[Point]:
    """The best point so far after the search from each start: an ascent, then lines in random directions."""
    rng = np.random.default_rng(seed)
    best = wander(objective, ascend(objective, point, own), own, rng)
    yield best
    for draw in rng.dirichlet(np.ones(len(own)), restarts):
        weights = point.weights.copy()
        weights[own] = draw
        start = Point(weights, objective.mean(weights), best.looks)
        found = wander(objective, ascend(objective, start, own), own, rng)
        best = found if found.value > best.value + SAME else replace(best, looks=found.looks)
        yield best


def settle_in(objective: Objective, point: Point, own: Indices) -> tuple[Point, Plateau]:
    """Move every weight to the middle of its plateau, the first last; its plateau."""
    for s in own[::-1]:
        point, plateau = step(objective, point, own, int(s))
    return point, plateau
