"""The product of every row of a matrix with a vector, in double precision, each summed by itself."""

from __future__ import annotations

import numpy as np

from steelyard.base.arrays import Floats, Vectors

BLOCK = 1024
"""Rows that are widened to float64 at a time, in a buffer that stays in the processor's cache."""


def dots(matrix: Vectors, vector: Floats | None = None) -> Floats:
    """float64[rows]: each row times the vector, or times itself; blocks change no bit of it."""
    found = np.empty(len(matrix))
    buffer = np.empty((min(BLOCK, len(matrix)), matrix.shape[1] if matrix.ndim == 2 else 0))
    for begin in range(0, len(matrix), BLOCK):
        part = matrix[begin : begin + BLOCK]
        rows = buffer[: len(part)]
        np.copyto(rows, part)
        np.multiply(rows, rows if vector is None else vector, out=rows)
        np.sum(rows, axis=1, out=found[begin : begin + BLOCK])
    return found
