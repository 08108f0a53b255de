"""Adds up weights by group number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Floats


def sums(at: NDArray[np.integer[Any]], weights: Floats, size: int = 0) -> Floats:
    """float64[max(size, highest number + 1)]: the sum of the weights of each number."""
    return np.bincount(at, weights, size).astype(np.float64, copy=False)
