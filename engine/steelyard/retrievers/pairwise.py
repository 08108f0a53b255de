"""The loop of exact products, to be compiled: numpy's product and sum to the bit, in one pass over memory."""

from __future__ import annotations

import numpy as np

SIGNATURE = "void(f4[:, ::1], f8[::1], i8[::1], i8[::1], f8[::1])"


def leaves(count: int) -> tuple[list[int], list[int]]:
    """Where the parts end that numpy sums by themselves, and how many sums before it each is added to.

    numpy halves what is longer than 128, at a multiple of 8.

    >>> leaves(100), leaves(384)
    (([100], [0]), ([96, 192, 288, 384], [0, 1, 0, 2]))
    """
    if count <= 128:
        return [count], [0]
    half = count // 2 - count // 2 % 8
    (first, merged), (second, others) = leaves(half), leaves(count - half)
    return first + [half + end for end in second], [*merged, *others[:-1], others[-1] + 1]


def add_pairwise(matrix, vector, ends, merged, dots):
    """Store the product of every row and a vector; `ends` and `merged` are those of `leaves`.

    Parameters
    ----------
    matrix, vector : float32[n, dim], float64[dim]
    dots : float64[n]
    """
    sums = np.empty(len(ends))
    for row in range(len(matrix)):
        begin, held = 0, 0
        for leaf in range(len(ends)):
            whole = ends[leaf] - (ends[leaf] - begin) % 8
            a = b = c = d = e = f = g = h = 0.0
            for column in range(begin, whole, 8):
                m, v = matrix[row, column : column + 8], vector[column : column + 8]
                a += m[0] * v[0]
                b += m[1] * v[1]
                c += m[2] * v[2]
                d += m[3] * v[3]
                e += m[4] * v[4]
                f += m[5] * v[5]
                g += m[6] * v[6]
                h += m[7] * v[7]
            total = ((a + b) + (c + d)) + ((e + f) + (g + h))
            for column in range(whole, ends[leaf]):
                total += matrix[row, column] * vector[column]
            for _ in range(merged[leaf]):
                held -= 1
                total = sums[held] + total
            sums[held], held, begin = total, held + 1, ends[leaf]
        dots[row] = 0.0 + sums[0]
