"""The loop of the scan over vectors in 8 bits a number, to be compiled."""

from __future__ import annotations

import numpy as np

SIGNATURE = "void(i1[:, ::1], i2[:, ::1], i4[:, ::1])"


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
            for column in range(codes.shape[1]):
                total += np.int32(codes[row, column]) * np.int32(queries[query, column])
            products[query, row] = total
