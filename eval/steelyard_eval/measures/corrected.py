"""p-values of several tests, corrected: by Holm for a decision, by Benjamini and Hochberg for exploring."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from steelyard.base.arrays import Floats


def holm(ps: ArrayLike) -> Floats:
    """Return Holm's step-down corrected p-values, in the order given (Holm 1979).

    >>> holm([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(ps, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return corrected


def benjamini_hochberg(ps: ArrayLike) -> Floats:
    """Return p-values corrected for the false discovery rate, in the order given (Benjamini & Hochberg 1995).

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.04, 0.04]
    """
    p = np.asarray(ps, dtype=np.float64)  # scipy.stats has it too, and takes a second to import
    order = np.argsort(p, kind="stable")[::-1]
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.minimum.accumulate(p[order] * (p.size / np.arange(p.size, 0, -1))), 1.0)
    return corrected
