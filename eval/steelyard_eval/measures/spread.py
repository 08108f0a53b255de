"""The mean of values over queries, and its standard error over what varies together: known in this place alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Floats, Indices

Matrix = NDArray[np.floating]
LEAST = 1e-6
"""A standard error of less is rounding."""
BLOCK = 256
"""Rows of a matrix that are held in float64 at a time."""


@dataclass(frozen=True)
class Spread:
    """Of each row of values, float64[...] each: its mean over queries and the standard error of that mean.

    Queries of one unit (a conversation, one question in the same words) vary together: the error is that of the
    ratio of the units' sums to their counts (Cochran, Sampling Techniques, 3rd ed., 6.3). It is infinite for a
    single unit, which proves nothing.
    """

    mean: Floats
    error: Floats
    queries: int
    units: int


def by_unit(values: Matrix, unit: Indices | None = None) -> tuple[Floats, Floats]:
    """Sums float64[..., U] of values float[..., n] over the queries of each unit, and counts float64[U].

    `unit` int64[n] numbers the units; without it every query is its own. Units keep the order of their numbers.
    """
    if unit is None:
        return np.asarray(values, dtype=np.float64), np.ones(values.shape[-1])
    _, code, counts = np.unique(unit, return_inverse=True, return_counts=True)
    if len(counts) == len(code):  # every query is its own unit: sums stay in the order of the queries
        return np.asarray(values, dtype=np.float64), np.ones(len(code))
    order, starts = np.argsort(code, kind="stable"), np.concatenate(([0], np.cumsum(counts)[:-1]))
    sums = np.add.reduceat(np.asarray(values, dtype=np.float64)[..., order], starts, axis=-1)
    return sums, counts.astype(np.float64)


def spread(values: Matrix, unit: Indices | None = None) -> Spread:
    """The spread of each row of values float[..., n], n >= 1; see `by_unit` for `unit`.

    >>> found = spread(np.array([[0.0, 1.0, 0.0, 1.0], [0.5, 0.5, 0.5, 0.5]]))
    >>> found.mean.tolist(), found.error.round(4).tolist()
    ([0.5, 0.5], [0.2887, 0.0])
    """
    rows = values.reshape(-1, values.shape[-1])
    mean, error = np.empty(len(rows)), np.empty(len(rows))
    units = 0
    for begin in range(0, len(rows), BLOCK):
        block = slice(begin, begin + BLOCK)
        sums, counts = by_unit(rows[block], unit)
        units = len(counts)
        mean[block] = sums.sum(axis=-1) / counts.sum()
        away = ((sums - mean[block][:, None] * counts) ** 2).sum(axis=-1)
        error[block] = np.sqrt(away * units / max(units - 1, 1)) / counts.sum() if units > 1 else np.inf
    shape = values.shape[:-1]
    return Spread(mean.reshape(shape), error.reshape(shape), values.shape[-1], units)
