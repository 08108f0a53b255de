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
    products, sums = np.empty(len(vector)), np.empty(len(ends))
    for row in range(matrix.shape[0]):
        for at in range(len(vector)):
            products[at] = matrix[row, at] * vector[at]
        begin, held = 0, 0
        for leaf in range(len(ends)):
            end, total = ends[leaf], 0.0
            whole = end - (end - begin) % 8
            if whole > begin:
                p = products[begin:whole]
                a, b, c, d, e, f, g, h = p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
                for at in range(8, len(p), 8):
                    a += p[at]
                    b += p[at + 1]
                    c += p[at + 2]
                    d += p[at + 3]
                    e += p[at + 4]
                    f += p[at + 5]
                    g += p[at + 6]
                    h += p[at + 7]
                total = ((a + b) + (c + d)) + ((e + f) + (g + h))
            for at in range(whole, end):
                total += products[at]
            for _ in range(merged[leaf]):
                held -= 1
                total = sums[held] + total
            sums[held], held, begin = total, held + 1, end
        dots[row] = 0.0 + sums[0]
