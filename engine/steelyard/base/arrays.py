"""Types of arrays, products of their rows, and loops over them that are compiled."""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
"""Codes, and positions in lists."""
Indices = NDArray[np.int64]
"""Offsets, rows and counts."""
ROWS_PER_BLOCK = 256
"""Rows that are widened to float64 at a time, so that they stay in the processor's cache."""


def dots(matrix: NDArray[Any], vector: Floats | None = None) -> Floats:
    """float64[rows]: each row times the vector, or times itself, in double precision; blocks change no bit."""
    products = np.empty(len(matrix))
    for begin in range(0, len(matrix), ROWS_PER_BLOCK):
        rows = matrix[begin : begin + ROWS_PER_BLOCK].astype(np.float64)
        rows *= rows if vector is None else vector
        rows.sum(axis=1, out=products[begin : begin + ROWS_PER_BLOCK])
    return products


@cache
def compiled(loop: Callable[..., None], signature: str, error_model: Literal["python", "numpy"] = "python") -> Any:  # noqa: ANN401 -- numba's dispatchers have no type
    """Compile a loop that holds no lock; all that it calls is in its file, as the cache notices no other change.

    It takes this signature alone: others would be compiled as they come, in the middle of a search. Where neither
    folder can be written, or the cache is damaged, it is compiled in memory, which takes longer.
    """
    from numba import njit  # it takes long to load

    try:
        return njit(signature, cache=True, nogil=True, error_model=error_model)(loop)
    except Exception:  # RuntimeError, OSError, and whatever reading a broken file raises
        return njit(signature, nogil=True, error_model=error_model)(loop)
