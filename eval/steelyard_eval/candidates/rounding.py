"""Rounds weights to the fewest digits that still do what they did; the middle of a plateau has sixteen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config.search_config import SearchConfig

DIGITS = range(2, 17)
MOVED = 0.0005
"""How much rounding may move the mean of a metric."""


def in_two_digits(config: SearchConfig, means: Callable[[SearchConfig], Floats]) -> SearchConfig:
    """The configuration with its weights in two significant digits, or the fewest more that move no metric.

    `means` gives the mean of every metric, float64[M]; none may move by more than `MOVED`.
    """
    before = means(config)
    for digits in DIGITS:
        weights = [float(f"{weight:.{digits}g}") for weight in config.strategy.weights]
        shorter = config.with_strategy(config.strategy.with_weights(weights))
        if shorter == config or np.abs(means(shorter) - before).max() <= MOVED:
            return shorter
    return config
