"""The one fit of logistic models: Newton's steps, under a normal prior around 0, some coefficients at least 0."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from steelyard.base.arrays import Floats


class Fit(NamedTuple):
    """Coefficients, float64[P], and the curvature there or one step before, float64[P, P] at `at`."""

    coefficients: Floats
    at: Floats
    curvature: Floats


def newton(
    likelihood: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    precision: Floats,
    positive: Sequence[int],
    *,
    rounds: int,
    longest: float = math.inf,
    until: float = 0.0,
    held: bool = False,
) -> Fit:
    """Maximise a log likelihood under a prior.

    `likelihood`: of coefficients: its gradient, float64[P], and its negative Hessian, float64[P, P]; `precision`:
    float64[P]: of the prior; `positive`: the coefficients that may not be below 0; `longest`: the largest change
    of a coefficient in a step; `until` the one at which it ends; `held`: whether those at 0 that would fall take
    no part in a step, by which the fit converges.
    """
    b = start
    for _ in range(rounds):
        at, (slope, information) = b, likelihood(b)
        gradient, curvature = slope - precision * b, information + np.diag(precision)
        free = np.ones(len(b), dtype=bool)
        if held:
            free[[i for i in positive if b[i] <= 1e-12 and gradient[i] <= 0]] = False
        step = np.zeros(len(b))
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
        step *= min(1.0, longest / max(1e-9, float(np.abs(step).max())))
        b = b + step
        b[list(positive)] = np.maximum(b[list(positive)], 0.0)
        if np.abs(step).max() < until:
            break
    return Fit(b, at, curvature)
