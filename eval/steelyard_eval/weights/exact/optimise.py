"""Finds the weights of a form that maximise a measure, with a proof where there is one."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError, shown
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.weights.exact.ascent import Ascent, climb, line_of, settle_in, step
from steelyard_eval.weights.exact.curve import SAME
from steelyard_eval.weights.exact.evolve import evolved
from steelyard_eval.weights.exact.objective import PRECISION, Objective
from steelyard_eval.weights.exact.simplex import NODES, ceiling, prove
from steelyard_eval.weights.exact.sweep import Sweep, segment
from steelyard_eval.weights.kernel import Form

_MOST_CORNERS = 64
_PROVABLE = 3
"""Weights that branch and bound can prove."""


@dataclass(frozen=True)
class BestFound:
    """The result of a search for weights.

    Attributes
    ----------
    weights : float64[S]
        The weights of a searched branch are at least 0 and sum to 1; a branch of one column keeps its own.
    value : float
        The mean measure at these weights, evaluated there.
    certificate : {"exact", "best-found"}
        Exact when it is proven that no weights do better (see `optimise`).
    plateau : tuple of float
        The range of the first searched weight, the others of its branch in proportion, over which the value
        does not change; empty when no weight is searched.
    bound : float
        An upper bound of the mean for all weights; equal to `value` when that is exact.
    evaluations : int
        The number of lines swept and polygons evaluated.
    """

    weights: Floats
    value: float
    certificate: Literal["exact", "best-found"]
    plateau: tuple[float, ...]
    bound: float
    evaluations: int


def optimise(
    form: Form,
    measure: Measure,
    start_weights: Floats,
    seed: int = 0,
    queries_mask: Bools | None = None,
    *,
    nodes: int = NODES,
) -> BestFound:
    """Search the weights of every branch with two columns or more, each on its own simplex.

    Two weights are swept, three are searched by branch and bound, and more by CMA-ES on the kernel followed by
    exact coordinate ascent. Several branches take turns. Of equally good weights, the result is the nearest to the
    start, in the middle of its plateau. It is never worse than the start.

    The result is `exact` when a single branch of two or three columns is searched and its optimum is proven, over
    all weights except those within rounding of a crossing (`sweep`, `simplex`). No proof is claimed for AP.

    Parameters
    ----------
    start_weights : float64[S]
        Where the search begins.
    seed : int
        Seed of CMA-ES and of the random directions.
    queries_mask : bool[Q], optional
        The queries that count; all by default.
    nodes : int
        How many polygons branch and bound may evaluate.

    Raises
    ------
    ConfigError
        For a measure that is not a function of relevant ranks, for negative weights, and for a mask without
        queries.
    """
    objective = Objective.of(form, measure, queries_mask)
    branches = movable(form)
    weights = on_simplices(start_weights, form, branches)
    if not branches:
        value = objective.mean(weights)
        return BestFound(weights, value, "exact", (), value, 0)
    if len(branches) == 1 and len(branches[0]) == 2:
        own = branches[0]
        return on_line(objective, segment(objective, *line_of(weights, own, int(own[0]))), own, weights)
    point, bound, before = Ascent(weights, objective.mean(weights)), np.inf, -np.inf
    while point.value > before + SAME:
        before = point.value
        for own in branches:
            point = _evolved(form, measure, objective, point, own, seed, queries_mask)
            point, bound = _improve(objective, point, own, nodes, seed)
        if len(branches) == 1:
            break  # only another branch could make room for more
    if len(branches) != 1:
        bound = _ceiling(objective, point.weights, branches)
    proven = (
        len(branches) == 1
        and len(branches[0]) == 3
        and bound <= point.value + SAME
        and objective.kind != PRECISION
    )
    point, along = settle_in(objective, point, branches[0])
    certificate: Literal["exact", "best-found"] = "exact" if proven else "best-found"
    return BestFound(
        point.weights, point.value, certificate, (along.low, along.high), max(bound, point.value), point.looks
    )


def on_line(
    objective: Objective, line: Sweep, own: Indices, start: Floats, queries: Bools | None = None
) -> BestFound:
    """Choose the best of two weights `own` from the sweep of the first from 0 to 1.

    `queries` (bool[Q]) restricts the mean to some of the objective's queries. `start` has the other weights, and
    the start of these two.
    """
    chosen = np.ones(objective.queries, dtype=bool) if queries is None else queries
    first, last = int(own[0]), int(own[1])
    plateau = line.curve(chosen).choose(near=float(start[first]))
    weights = start.copy()
    weights[first], weights[last] = plateau.t, 1.0 - plateau.t
    value = float(objective.values(weights)[chosen].mean())
    current = float(objective.values(start)[chosen].mean())
    if value < current - SAME:  # within rounding of a crossing the line's value cannot be reached
        weights, value = start, current
    proven = plateau.value <= value + SAME and objective.kind != PRECISION
    certificate: Literal["exact", "best-found"] = "exact" if proven else "best-found"
    return BestFound(weights, value, certificate, (plateau.low, plateau.high), max(plateau.value, value), 1)


def movable(form: Form) -> list[Indices]:
    """Return the columns (int64[n]) of each branch that has at least two which affect the order.

    A column that is equal for all rows of each query never affects the order, whatever its weight; one without
    a slot in the strategy keeps its weight, such as the cut that scores are compared with.
    """
    free = form.ordering & (form.slot >= 0) if len(form.slot) else form.ordering
    branches = (np.flatnonzero((form.branch == branch) & free) for branch in np.unique(form.branch))
    return [own for own in branches if len(own) > 1]


def on_simplices(weights: Floats, form: Form, branches: list[Indices]) -> Floats:
    """Scale the weights of each searchable branch to the sum 1, in equal parts where all are 0."""
    scaled = np.array(weights, dtype=np.float64)
    if scaled.shape != form.weights.shape:
        raise ConfigError(f"{scaled.size} weights for {len(form.labels)} columns ({', '.join(form.labels)})")
    for own in branches:
        if not (np.isfinite(scaled[own]) & (scaled[own] >= 0)).all():
            raise ConfigError(f"weights {shown(str(scaled[own].tolist()))} must all be at least 0")
        total = scaled[own].sum()
        scaled[own] = scaled[own] / total if total > 0 else 1.0 / len(own)
    return scaled


def _evolved(
    form: Form,
    measure: Measure,
    objective: Objective,
    point: Ascent,
    own: Indices,
    seed: int,
    queries: Bools | None,
) -> Ascent:
    """Return where the exact search of many weights begins: the point, or a better one by CMA-ES."""
    if len(own) <= _PROVABLE:
        return point
    weights = evolved(form, measure, point.weights, own, seed, queries)
    value = objective.mean(weights)
    return Ascent(weights, value, point.looks) if value > point.value else point


def _improve(objective: Objective, point: Ascent, own: Indices, nodes: int, seed: int) -> tuple[Ascent, float]:
    """Improve a point by the method for its number of weights; return it with an upper bound."""
    if len(own) == 2:  # of several branches
        point, plateau = step(objective, point, own, int(own[0]))
        return point, plateau.value
    point = climb(objective, point, own, seed)
    corners = _corners(point.weights, [own])
    if len(own) > _PROVABLE:
        return point, ceiling(objective, corners)
    proof = prove(objective, corners, point.weights, nodes)
    return Ascent(proof.weights, proof.value, point.looks + proof.nodes), proof.bound


def _corners(weights: Floats, branches: list[Indices]) -> Floats:
    """Every choice of one column in each branch, with all the weight of its branch; float64[V, S]."""
    corners = []
    for choice in itertools.product(*branches):
        corner = weights.copy()
        for own, column in zip(branches, choice, strict=True):
            corner[own] = own == column
        corners.append(corner)
    return np.array(corners)


def _ceiling(objective: Objective, weights: Floats, branches: list[Indices]) -> float:
    """An upper bound over all branches together; 1, which bounds every measure, for too many corners."""
    count = math.prod(len(own) for own in branches)
    return ceiling(objective, _corners(weights, branches)) if count <= _MOST_CORNERS else 1.0
