"""Weights as shares of their sum: which of them move, and the line on which one of them does."""

from __future__ import annotations

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError, shown
from steelyard_eval.candidates.kernel import Form


def line_of(weights: Floats, branch: Indices, s: int) -> tuple[Floats, Floats]:
    """Return the ends of the line on which weight s goes from 0 to 1, on the simplex of the weights `branch`."""
    rest = branch[branch != s]
    begin, end = weights.copy(), weights.copy()
    begin[branch], end[branch] = 0.0, 0.0
    total = weights[rest].sum()
    begin[rest] = weights[rest] / total if total > 0 else 1.0 / len(rest)
    end[s] = 1.0
    return begin, end


def movable(form: Form) -> list[Indices]:
    """Return the columns (int64[n]) of each branch that has at least two which affect the order.

    A column that is equal for all rows of each query never affects the order, whatever its weight; one without
    a slot in the strategy keeps its weight, such as the cut that scores are compared with.
    """
    free = form.ordering & (form.slot >= 0) if len(form.slot) else form.ordering
    branches = (np.flatnonzero((form.branch == branch) & free) for branch in np.unique(form.branch))
    return [columns for columns in branches if len(columns) > 1]


def on_simplices(weights: Floats, form: Form, branches: list[Indices]) -> Floats:
    """CandidateScorer the weights of each searchable branch to the sum 1, in equal parts where all are 0.

    Raises ConfigError for another number of weights than columns, and for one below 0.
    """
    scaled = np.array(weights, dtype=np.float64)
    if scaled.shape != form.weights.shape:
        raise ConfigError(f"{scaled.size} weights for {len(form.labels)} columns ({', '.join(form.labels)})")
    for branch in branches:
        if not (np.isfinite(scaled[branch]) & (scaled[branch] >= 0)).all():
            raise ConfigError(f"weights {shown(str(scaled[branch].tolist()))} must all be at least 0")
        total = scaled[branch].sum()
        scaled[branch] = scaled[branch] / total if total > 0 else 1.0 / len(branch)
    return scaled
