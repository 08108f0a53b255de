"""Where to begin with many weights: covariance matrix adaptation on the kernel, a generation at a time.

Coordinate ascent from the current weights ends in the nearest local optimum, and restarts cost as much as the
first search. CMA-ES (Hansen and Ostermeier, 2001; the `cmaes` package) looks at the whole simplex with some
thousand evaluations, which the float32 kernel makes cheap. What it finds is where the exact search starts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.weights.kernel import Form, Kernel
from steelyard_eval.weights.kernel.lanes import LANES

STARTS = 3
"""Searches with seeds of their own: one alone may end in a worse place."""
GENERATIONS = 100
PATIENCE = 20
"""Generations without a gain after which a search ends."""
SPREAD = 1.5
"""Of the first generation, in logarithms of weights."""
LEAST = 0.02
"""What a weight of 0 begins as: a logarithm needs one."""


def evolved(
    form: Form, measure: Measure, start: Floats, own: Indices, seed: int, queries: Bools | None = None
) -> Floats:
    """The best weights float64[S] found for the simplex `own`, the others as they are; `start` where none is
    better.

    Weights are searched as logarithms, so that each is above 0. The mean is over the queries where bool[Q] is
    true.
    """
    kernel = Kernel.of(form, [measure])
    counted = np.ones(form.queries, dtype=bool) if queries is None else queries

    def means(weights: Floats) -> Floats:
        return np.asarray(kernel.values(weights)[measure][:, counted].mean(axis=1), dtype=np.float64)

    ends = [start, *(_search(means, start, own, seed + extra) for extra in range(STARTS))]
    return ends[int(np.argmax(means(np.array(ends))))]


def _search(means: Callable[[Floats], Floats], start: Floats, own: Indices, seed: int) -> Floats:
    """The best weights of one search."""
    from cmaes import CMA

    logs = np.log(start[own] + LEAST)
    search = CMA(mean=logs - logs.mean(), sigma=SPREAD, seed=seed, population_size=LANES)
    best, top, idle = start, -np.inf, 0
    for _ in range(GENERATIONS):
        asked = np.array([search.ask() for _ in range(LANES)])
        weights = np.repeat(start[None, :], LANES, axis=0)
        weights[:, own] = _shares(asked)
        values = means(weights)
        search.tell(list(zip(asked, -values, strict=True)))
        at = int(np.argmax(values))
        idle = 0 if values[at] > top else idle + 1
        best, top = (weights[at], float(values[at])) if values[at] > top else (best, top)
        if idle >= PATIENCE:
            break
    return best


def _shares(logs: Floats) -> Floats:
    """float64[W, n] of logarithms to weights that sum to 1."""
    raised = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float64)
