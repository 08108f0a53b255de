"""The compiled loop of the scan over vectors in 8 bits a number.

All compiled code is in this file, because numba's cache only notices changes to this file.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import njit

OPTIONS: dict[str, Any] = {"nogil": True}
SIGNATURE = "void(i1[:, ::1], i2[:, ::1], i4[:, ::1])"


@cache
def compiled() -> Any:  # noqa: ANN401 -- numba's dispatchers have no type
    """Compile `add_products`, with the machine code cached in the package's or the user's cache folder.

    Where neither can be written, or the cache is damaged, it is compiled in memory, in half a second.
    """
    try:
        made = njit(cache=True, **OPTIONS)(add_products)
        made.compile(SIGNATURE)
    except Exception:  # RuntimeError, OSError, and whatever reading a broken file raises
        made = njit(**OPTIONS)(add_products)
        made.compile(SIGNATURE)
    return made


def add_products(codes, queries, products):
    """Store the product of every row and every query; a row is read once for all queries.

    Parameters
    ----------
    codes, queries : int8[n, dim], int16[b, dim]
        No sum of products may leave int32.
    products : int32[b, n]
    """
    for row in range(codes.shape[0]):
        for query in range(queries.shape[0]):
            total = np.int32(0)
            for at in range(codes.shape[1]):
                total += np.int32(codes[row, at]) * np.int32(queries[query, at])
            products[query, row] = total
