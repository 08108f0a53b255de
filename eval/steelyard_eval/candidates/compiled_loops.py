"""The compiled loops of the kernel: they evaluate 128 configurations at once in one pass over the candidates.

A lane is a configuration. Scores are float32, added in the order of the columns without fused multiply-add, so
that their bits are the same on every machine. No list is sorted: the rank of a relevant row is the number of
rows ahead of it plus one. In a tie, rows before it are ahead, and rows after it are behind.

All compiled code is in this file, because numba's cache only notices changes to this file.
"""

from typing import Any

import numpy as np
from numba import njit

from steelyard.base.arrays import compiled as compile_loop
from steelyard_eval.candidates.linear_form import LANES
from steelyard_eval.measures.metrics import ALL, ANY, FIRST, GAIN, HITS, PRECISIONS

# division by zero as in numpy, and without the interpreter lock, so that threads share the work
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
SIGNATURE = (
    "void(f4[:, ::1], i8[::1], i8[::1], i8[::1], f8[::1], f4[:, :, ::1], "
    "i8[::1], i8[::1], f8[:, ::1], f8[::1], f8[:, :, :])"
)


def compiled() -> Any:  # noqa: ANN401 -- numba's dispatchers have no type
    """`fill_metrics`, compiled; without a cache that takes some seconds."""
    return compile_loop(fill_metrics, SIGNATURE, OPTIONS["error_model"])


def fill_metrics(rows, offsets, relevant, ends, grade, tiles, kinds, cutoffs, divisors, logs, each):
    """Compute the metrics of every configuration, query by query, into `each`.

    `rows`, `offsets`: float32[N, S], int64[Q+1]: the rows by query; `relevant`, `ends`, `grade`: int64[R],
    int64[Q+1], float64[R]: the relevant rows, the ends of each query's, and their grades; `tiles`: float32[T, S,
    LANES]: the weights; `kinds`, `cutoffs`, `divisors`: int64[M], int64[M], float64[M, Q]: the metrics; `logs`:
    float64[deepest+1]: log2(rank + 1); `each`: float64[M, W, Q]: filled.
    """
    most = 1
    for q in range(len(offsets) - 1):
        most = max(most, ends[q + 1] - ends[q])
    pair = np.empty((2, LANES), np.float32)
    bars, rank = np.empty((most, LANES), np.float32), np.empty((most, LANES), np.int32)
    key, value = np.empty((most, LANES), np.int64), np.empty(LANES, np.float64)
    for t in range(len(tiles)):
        first = t * LANES
        last = min(first + LANES, each.shape[1])
        for q in range(len(offsets) - 1):
            begin, end = ends[q], ends[q + 1]
            if begin == end:
                continue  # every metric is 0
            _count(rows, offsets[q], offsets[q + 1], relevant[begin:end], tiles[t], pair, bars, rank)
            _sort(rank, end - begin, key)
            for m in range(len(kinds)):
                _measure(kinds[m], cutoffs[m], divisors[m, q], key, grade[begin:end], logs, value)
                for w in range(first, last):
                    each[m, w, q] = value[w - first]


@njit(inline="always", **OPTIONS)  # a call would cost as much as its sums
def _score(first, second, weights, left, right):
    """The scores of two rows; the first four products are one sum, since most strategies have no more columns."""
    a0, a1, a2, a3 = first[0], first[1], first[2], first[3]
    b0, b1, b2, b3 = second[0], second[1], second[2], second[3]
    w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
    for n in range(LANES):
        left[n] = w0[n] * a0 + w1[n] * a1 + w2[n] * a2 + w3[n] * a3
        right[n] = w0[n] * b0 + w1[n] * b1 + w2[n] * b2 + w3[n] * b3
    for s in range(4, len(first), 4):
        a0, a1, a2, a3 = first[s], first[s + 1], first[s + 2], first[s + 3]
        b0, b1, b2, b3 = second[s], second[s + 1], second[s + 2], second[s + 3]
        w0, w1, w2, w3 = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
        for n in range(LANES):
            left[n] = left[n] + w0[n] * a0 + w1[n] * a1 + w2[n] * a2 + w3[n] * a3
            right[n] = right[n] + w0[n] * b0 + w1[n] * b1 + w2[n] * b2 + w3[n] * b3


@njit(**OPTIONS)
def _count(rows, begin, end, relevant, weights, pair, bars, rank):
    """Count the rank of each relevant row in each lane, two candidates at a time.

    Each segment of candidates ends with a relevant row. In ties with its candidates, the relevant rows of
    earlier segments are ahead and the others are behind.
    """
    left, right = pair[0], pair[1]
    for r in range(len(relevant)):
        _score(rows[relevant[r]], rows[relevant[r]], weights, left, right)
        for n in range(LANES):
            bars[r, n], rank[r, n] = left[n], 0
    for segment in range(len(relevant) + 1):
        stop = relevant[segment] + 1 if segment < len(relevant) else end
        for c in range(begin, stop, 2):
            _score(rows[c], rows[min(c + 1, end - 1)], weights, left, right)
            if c + 1 == stop:
                for n in range(LANES):
                    right[n] = -np.inf  # an odd number of candidates: no second one
            for r in range(segment):
                bar, ahead = bars[r], rank[r]
                for n in range(LANES):
                    ahead[n] += np.int32(np.int32(left[n] > bar[n]) + np.int32(right[n] > bar[n]))
            for r in range(segment, len(relevant)):
                bar, ahead = bars[r], rank[r]
                for n in range(LANES):
                    ahead[n] += np.int32(np.int32(left[n] >= bar[n]) + np.int32(right[n] >= bar[n]))
        begin = stop


@njit(**OPTIONS)
def _sort(rank, count, key):
    """Sort the relevant rows of each lane, best first, as keys with the rank in the upper half and the row below.

    This is a sorting network: every lane makes the same exchanges, so none has to branch.
    """
    for r in range(count):
        for n in range(LANES):
            key[r, n] = np.int64(rank[r, n]) << 32 | r
    for last in range(count - 1, 0, -1):
        for i in range(last):
            upper, lower = key[i], key[i + 1]
            for n in range(LANES):
                a, b = upper[n], lower[n]
                upper[n], lower[n] = min(a, b), max(a, b)


@njit(**OPTIONS)
def _measure(kind, cutoff, divisor, key, grade, logs, value):
    """Compute one metric of one query for each lane, summed from the first rank on as in trec_eval.

    Rows beyond the cutoff add 0, which changes no sum.
    """
    for n in range(LANES):
        value[n] = 0.0
    for i in range(1 if kind == FIRST else len(grade)):
        these = key[i]
        if kind == GAIN:
            for n in range(LANES):
                place = these[n] >> 32
                gain = grade[these[n] & 0xFFFFFFFF] / logs[min(place, cutoff)]
                value[n] += gain if place <= cutoff else 0.0
        elif kind in (PRECISIONS, FIRST):
            for n in range(LANES):
                place = these[n] >> 32
                value[n] += (i + 1) / place if place <= cutoff else 0.0
        else:
            for n in range(LANES):
                value[n] += 1.0 if these[n] >> 32 <= cutoff else 0.0
    if kind in (GAIN, PRECISIONS, HITS):
        for n in range(LANES):
            value[n] = value[n] / divisor
    elif kind in (ANY, ALL):
        least = 1.0 if kind == ANY else divisor
        for n in range(LANES):
            value[n] = 1.0 if value[n] >= least else 0.0
