"""The product of every row of a matrix with a vector, in double precision, each summed by itself as numpy does.

A process that multiplies much compiles a loop for it, which takes less than half as long and has the same bits.
"""

from __future__ import annotations

import numpy as np

from steelyard.base.arrays import Floats, Vectors
from steelyard.base.compiled import compiled
from steelyard.retrievers.pairwise import SIGNATURE, add_pairwise, leaves

BLOCK = 1024
"""Rows that are widened to float64 at a time, in a buffer that stays in the processor's cache."""
LATER = 2**30
"""Numbers that a process multiplies before it compiles: by then that took as long as loading the compiler does."""


class _Work:
    numbers = 0


def dots(matrix: Vectors, vector: Floats | None = None) -> Floats:
    """float64[rows]: each row times the vector, or times itself; blocks change no bit of it."""
    _Work.numbers += matrix.size
    if vector is None or _Work.numbers < LATER or len(matrix) <= BLOCK:
        return _blockwise(matrix, vector)
    products, parts = np.empty(len(matrix)), map(np.array, leaves(len(vector)))
    compiled(add_pairwise, SIGNATURE)(np.ascontiguousarray(matrix), vector, *parts, products)
    same = products[:BLOCK].tobytes() == _blockwise(matrix[:BLOCK], vector).tobytes()
    return products if same else _blockwise(matrix, vector)  # a numpy that sums in another order decides


def _blockwise(matrix: Vectors, vector: Floats | None) -> Floats:
    products = np.empty(len(matrix))
    buffer = np.empty((min(BLOCK, len(matrix)), matrix.shape[1] if matrix.ndim == 2 else 0))
    for begin in range(0, len(matrix), BLOCK):
        part = matrix[begin : begin + BLOCK]
        rows = buffer[: len(part)]
        np.copyto(rows, part)
        np.multiply(rows, rows if vector is None else vector, out=rows)
        np.sum(rows, axis=1, out=products[begin : begin + BLOCK])
    return products
