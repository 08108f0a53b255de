"""Finds the weights of a form that maximise a measure: two exactly, more from line to line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError, shown
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.weights.exact.ascent import Ascent, climb, line_of, settle_in
from steelyard_eval.weights.exact.curve import SAME
from steelyard_eval.weights.exact.objective import PRECISION, Objective
from steelyard_eval.weights.exact.sweep import Sweep, segment
from steelyard_eval.weights.kernel import Form


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
    lines : int
        The number of lines swept.
    """

    weights: Floats
    value: float
    certificate: Literal["exact", "best-found"]
    plateau: tuple[float, ...]
    lines: int


def optimise(
    form: Form, measure: Measure, start_weights: Floats, seed: int = 0, queries_mask: Bools | None = None
) -> BestFound:
    """Search the weights of every branch with two columns or more, each on its own simplex.

    Two weights are swept, more are searched by exact coordinate ascent, several branches take turns. Of equally
    good weights, the result is the nearest to the start, in the middle of its plateau. It is never worse than the
    start.

    The result is `exact` when a single branch of two columns is searched, over all weights except those within
    rounding of a crossing (`sweep`). No proof is claimed for AP.

    Parameters
    ----------
    start_weights : float64[S]
        Where the search begins.
    seed : int
        Seed of the random directions.
    queries_mask : bool[Q], optional
        The queries that count; all by default.

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
        return BestFound(weights, objective.mean(weights), "exact", (), 0)
    if len(branches) == 1 and len(branches[0]) == 2:
        branch = branches[0]
        return on_line(objective, segment(objective, *line_of(weights, branch, int(branch[0]))), branch, weights)
    point, before = Ascent(weights, objective.mean(weights)), -np.inf
    while point.value > before + SAME:
        before = point.value
        for branch in branches:
            point = climb(objective, point, branch, seed)
        if len(branches) == 1:
            break  # only another branch could make room for more
    point, along = settle_in(objective, point, branches[0])
    return BestFound(point.weights, point.value, "best-found", (along.low, along.high), point.lines)


def on_line(
    objective: Objective, line: Sweep, branch: Indices, start: Floats, queries: Bools | None = None
) -> BestFound:
    """Choose the best of two weights `branch` from the sweep of the first from 0 to 1.

    `queries` (bool[Q]) restricts the mean to some of the objective's queries. `start` has the other weights, and
    the start of these two.
    """
    chosen = np.ones(objective.queries, dtype=bool) if queries is None else queries
    first, last = int(branch[0]), int(branch[1])
    plateau = line.curve(chosen).choose(near=float(start[first]))
    weights = start.copy()
    weights[first], weights[last] = plateau.t, 1.0 - plateau.t
    value = float(objective.values(weights)[chosen].mean())
    current = float(objective.values(start)[chosen].mean())
    if value < current - SAME:  # within rounding of a crossing the line's value cannot be reached
        weights, value = start, current
    proven = plateau.value <= value + SAME and objective.kind != PRECISION
    certificate: Literal["exact", "best-found"] = "exact" if proven else "best-found"
    return BestFound(weights, value, certificate, (plateau.low, plateau.high), 1)


def movable(form: Form) -> list[Indices]:
    """Return the columns (int64[n]) of each branch that has at least two which affect the order.

    A column that is equal for all rows of each query never affects the order, whatever its weight; one without
    a slot in the strategy keeps its weight, such as the cut that scores are compared with.
    """
    free = form.ordering & (form.slot >= 0) if len(form.slot) else form.ordering
    branches = (np.flatnonzero((form.branch == branch) & free) for branch in np.unique(form.branch))
    return [columns for columns in branches if len(columns) > 1]


def on_simplices(weights: Floats, form: Form, branches: list[Indices]) -> Floats:
    """Scale the weights of each searchable branch to the sum 1, in equal parts where all are 0."""
    scaled = np.array(weights, dtype=np.float64)
    if scaled.shape != form.weights.shape:
        raise ConfigError(f"{scaled.size} weights for {len(form.labels)} columns ({', '.join(form.labels)})")
    for branch in branches:
        if not (np.isfinite(scaled[branch]) & (scaled[branch] >= 0)).all():
            raise ConfigError(f"weights {shown(str(scaled[branch].tolist()))} must all be at least 0")
        total = scaled[branch].sum()
        scaled[branch] = scaled[branch] / total if total > 0 else 1.0 / len(branch)
    return scaled
