"""Coordinate ascent with exact steps: each step moves one weight to the best point of its whole line.

A step moves weight s from 0 to 1 while the others keep their proportions. It is a sweep, so it finds every value
on the line, where a grid finds only some. Metzler and Croft (Information Retrieval 10, 2007) tune linear
retrieval models in this way with grid steps. An ascent ends where no single weight improves the measure, which
may be a local optimum; lines in random directions search further from there.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.weights.exact.curve import SAME, Plateau
from steelyard_eval.weights.exact.objective import Objective
from steelyard_eval.weights.exact.sweep import segment, sweep

DIRECTIONS = 12
"""The number of successive random directions without a gain after which a search ends."""


@dataclass(frozen=True)
class Ascent:
    """Weights float64[S], their mean by direct evaluation, and how many lines were swept."""

    weights: Floats
    value: float
    lines: int = 0


def line_of(weights: Floats, branch: Indices, s: int) -> tuple[Floats, Floats]:
    """Return the ends of the line on which weight s goes from 0 to 1, on the simplex of the weights `branch`."""
    rest = branch[branch != s]
    begin, end = weights.copy(), weights.copy()
    begin[branch], end[branch] = 0.0, 0.0
    total = weights[rest].sum()
    begin[rest] = weights[rest] / total if total > 0 else 1.0 / len(rest)
    end[s] = 1.0
    return begin, end


def step(objective: Objective, point: Ascent, branch: Indices, s: int) -> tuple[Ascent, Plateau]:
    """Find the best point on the line of weight s, in the middle of its plateau; return it with the plateau.

    Of equally good plateaus it takes the nearest to the current weight. The point stays unchanged when a
    direct evaluation does not confirm the value.
    """
    begin, end = line_of(point.weights, branch, s)
    plateau = segment(objective, begin, end).curve().choose(near=float(point.weights[s]))
    weights = begin + plateau.t * (end - begin)
    value = objective.mean(weights)
    if value < point.value - SAME:
        return replace(point, lines=point.lines + 1), plateau
    return Ascent(weights, value, point.lines + 1), plateau


def ascend(objective: Objective, point: Ascent, branch: Indices) -> Ascent:
    """Step through the weights `branch` in turn until none of them improves the value."""
    idle = 0
    for s in itertools.cycle(branch):
        moved, _ = step(objective, point, branch, int(s))
        gain = moved.value > point.value + SAME
        # Without a gain the point stays, so that the result is near the start. After a gain, the same weight
        # cannot gain again.
        point = moved if gain else replace(point, lines=moved.lines)
        idle = 1 if gain else idle + 1
        if idle >= len(branch):
            break
    return point


def wander(objective: Objective, point: Ascent, branch: Indices, rng: np.random.Generator) -> Ascent:
    """Sweep lines in random directions through the point until `DIRECTIONS` of them in a row gain nothing.

    They can leave local optima of coordinate ascent.
    """
    idle = 0
    while idle < DIRECTIONS:
        direction = np.zeros(len(point.weights))
        drawn = rng.normal(size=len(branch))
        direction[branch] = drawn - drawn.mean()
        moved = _along(objective, point, branch, direction)
        idle = 0 if moved.value > point.value else idle + 1
        point = moved
    return point


def _along(objective: Objective, point: Ascent, branch: Indices, direction: Floats) -> Ascent:
    """The best point of a line through the simplex when it is better, else the point itself."""
    with np.errstate(divide="ignore"):
        reach = -point.weights[branch] / direction[branch]  # where each weight becomes 0
    low, high = float(reach[direction[branch] > 0].max()), float(reach[direction[branch] < 0].min())
    best = sweep(objective, point.weights, direction, low, high).curve().choose(near=0.0)
    stay = replace(point, lines=point.lines + 1)
    if best.value <= point.value + SAME:
        return stay
    weights = point.weights + best.t * direction
    weights[branch] = np.maximum(weights[branch], 0.0) / np.maximum(weights[branch], 0.0).sum()
    value = objective.mean(weights)
    return Ascent(weights, value, stay.lines) if value > point.value + SAME else stay


def climb(objective: Objective, point: Ascent, branch: Indices, seed: int) -> Ascent:
    """Return the end of an ascent from a point, continued along lines in random directions."""
    return wander(objective, ascend(objective, point, branch), branch, np.random.default_rng(seed))


def settle_in(objective: Objective, point: Ascent, branch: Indices) -> tuple[Ascent, Plateau]:
    """Move every weight to the middle of its plateau, the first weight last; return the first weight's plateau."""
    for s in branch[::-1]:
        point, plateau = step(objective, point, branch, int(s))
    return point, plateau
