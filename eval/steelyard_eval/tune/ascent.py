"""Coordinate ascent with exact steps: one weight against the rest, each time to the best point of the whole line.

A step moves weight s from 0 to 1 while the others keep their proportions, and is a sweep: it sees every value the
line has, where a step along a gradient or a grid sees a few. Metzler and Croft (Information Retrieval 10, 2007)
tune linear retrieval models so, with grid steps. Ascents end where no single weight can gain, which may be a local
optimum; seeded restarts look elsewhere.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from steelyard.table import Floats
from steelyard_eval.tune.curve import SAME, Plateau
from steelyard_eval.tune.objective import Indices, Objective
from steelyard_eval.tune.sweep import segment

RESTARTS = 10


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


def climb(objective: Objective, point: Point, own: Indices, seed: int, restarts: int = RESTARTS) -> Point:
    """The best of an ascent from a point and of others from weights drawn evenly from the simplex."""
    draws = np.random.default_rng(seed).dirichlet(np.ones(len(own)), restarts)
    best = ascend(objective, point, own)
    for draw in draws:
        weights = point.weights.copy()
        weights[own] = draw
        found = ascend(objective, Point(weights, objective.mean(weights), best.looks), own)
        best = found if found.value > best.value + SAME else replace(best, looks=found.looks)
    return best


def settle_in(objective: Objective, point: Point, own: Indices) -> tuple[Point, Plateau]:
    """Move every weight to the middle of its plateau, the first last; its plateau."""
    for s in own[::-1]:
        point, plateau = step(objective, point, own, int(s))
    return point, plateau
