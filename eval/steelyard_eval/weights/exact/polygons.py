"""Bounds a measure on a polygon of weights; these are the inner loops of branch and bound.

A point is given by its shares of V corners, float64[V], which are at least 0 and sum to 1. Scores are linear in
the shares, so the difference of two rows has its extremes over a polygon at the vertices: a row that is behind at
no vertex and ahead at one is ahead everywhere inside. A pair that the vertices do not settle is contested.

Counting settled rows bounds ranks from below. Of a query's relevant rows, let n_(1) <= n_(2) <= ... bound the
irrelevant rows ahead of each. Irrelevant rows ahead only grow along a list, so the m-th relevant row of any list
has rank m + n_(m) or worse; this loses nothing to relevant rows that change places. Where their gains differ it is
taken with the largest gains first, and the bound by every row's own rank beside it.
"""

from __future__ import annotations

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.weights.exact.objective import compiled, sort, value_of

TINY = 1e-13
"""The largest difference of scores, relative to the query's largest score, that rounding alone can cause."""


@compiled
def settle(low: float, high: float, closed: bool, first: bool) -> int:
    """Return 1 when a row is ahead of another everywhere, -1 when it is behind, 0 when the pair is contested.

    `low` and `high` are the extremes of the difference; `first` is true when the row has the smaller index. With
    `closed` the boundary counts as well as the inner points, and rows may tie there.
    """
    margin = TINY if closed else -TINY
    if low >= margin and high > TINY:
        return 1
    if high <= -margin and low < -TINY:
        return -1
    if (low == 0 and high == 0) or (low >= -TINY and high <= TINY and not closed):
        return 1 if first else -1
    return 0


@compiled
def contested_pairs(
    corners: Floats,
    offsets: Indices,
    relevant: Indices,
    relevant_offsets: Indices,
    graded: Bools,
    deepest: int,
    closed: bool,
) -> tuple[Floats, Bools, int, Indices, Indices]:
    """Find the pairs of a relevant and another row that the scores at the corners (float64[V, N]) do not settle.

    Returns their number P, and, with room to spare, the other row's score less the relevant one's at each corner,
    float64[P, V], as a share of the query's largest, and bool[P], where the other row is relevant too; how many
    pairs each relevant row has, int64[R]; and the rows ahead of it everywhere, all and the irrelevant ones,
    int64[2, R]. Two relevant rows make a pair only where gains differ (`graded` bool[Q]); a relevant row that is
    nowhere `deepest` or better has none.
    """
    size = 0
    for q in range(len(offsets) - 1):
        size += (offsets[q + 1] - offsets[q]) * (relevant_offsets[q + 1] - relevant_offsets[q])
    difference, rival, n = np.empty((size + 1, len(corners))), np.zeros(size + 1, np.bool_), 0
    counts, ahead = np.zeros(len(relevant), np.int64), np.zeros((2, len(relevant)), np.int64)
    is_relevant = np.zeros(corners.shape[1], np.bool_)
    for own in relevant:
        is_relevant[own] = True
    for q in range(len(offsets) - 1):
        first, last = offsets[q], offsets[q + 1]
        scale = _largest(corners, first, last)
        for i in range(relevant_offsets[q], relevant_offsets[q + 1]):
            own, before = relevant[i], n
            for row in range(first, last):
                if row == own or (is_relevant[row] and not graded[q]):
                    continue
                low, high = np.inf, -np.inf
                for v in range(len(corners)):
                    away = corners[v, row] - corners[v, own]
                    away = away / scale if away != 0 else 0.0
                    low, high = min(low, away), max(high, away)
                    difference[n, v] = away
                order = settle(low, high, closed, row < own)
                ahead[0, i] += order > 0
                ahead[1, i] += order > 0 and not is_relevant[row]
                rival[n] = is_relevant[row]
                n += order == 0
            if ahead[0, i] >= deepest:
                n = before
            counts[i] = n - before
    return difference, rival, n, counts, ahead


@compiled
def _largest(corners: Floats, first: int, last: int) -> float:
    scale = 0.0
    for v in range(len(corners)):
        for row in range(first, last):
            scale = max(scale, abs(corners[v, row]))
    return scale


@compiled
def sides(polygon: Floats, centre: Floats, difference: Floats, pairs: Indices) -> tuple[Indices, Indices, Floats]:
    """Find the side of each pair's crossing on which a polygon (vertices float64[n, V]) and its centre are.

    Returns `settle` of the polygon, int64[P]; 1 or -1 for the centre, int64[P]; and how evenly the crossing
    divides the polygon, float64[P], 0 where it does not cross.
    """
    orders, middle, even = np.empty(len(pairs), np.int64), np.empty(len(pairs), np.int64), np.zeros(len(pairs))
    for at in range(len(pairs)):
        form = difference[pairs[at]]
        low, high = np.inf, -np.inf
        for vertex in range(len(polygon)):
            value = _dot(polygon[vertex], form)
            low, high = min(low, value), max(high, value)
        orders[at] = middle[at] = settle(low, high, False, False)
        if orders[at] == 0:
            middle[at] = 1 if _dot(centre, form) > 0 else -1
            even[at] = min(high, -low) / (high - low)
    return orders, middle, even


@compiled
def _dot(point: Floats, form: Floats) -> float:
    value = 0.0
    for v in range(len(form)):
        value += point[v] * form[v]
    return value


@compiled
def tally(ahead: Indices, counts: Indices, pairs: Indices, rival: Bools, orders: Indices, least: int) -> Indices:
    """Add the rows whose order is at least `least` to the rows ahead; all and irrelevant ones, int64[2, A]."""
    total, at = ahead.copy(), 0
    for row in range(len(counts)):
        for k in range(at, at + counts[row]):
            if orders[k] >= least:
                total[0, row] += 1
                total[1, row] += not rival[pairs[k]]
        at += counts[row]
    return total


@compiled
def reach(
    ahead: Indices, offsets: Indices, kind: int, gain: Floats, best_first: Floats, by_rank: Floats, graded: Bools
) -> Floats:
    """Bound the values of queries, float64[G], by the least numbers of rows ahead of relevant rows (int64[2, A]).

    The relevant rows of query g are ``offsets[g]:offsets[g+1]``; `best_first` is `gain` sorted within queries. The
    bound is the query's exact value when the counts are those of a ranking.
    """
    values = np.empty(len(offsets) - 1)
    for g in range(len(values)):
        a, b = offsets[g], offsets[g + 1]
        ranks = ahead[1, a:b].copy()
        sort(ranks)
        for m in range(b - a):
            ranks[m] += m + 1
        values[g] = value_of(ranks, kind, best_first[a:b], by_rank)
        if graded[g]:
            for m in range(b - a):
                ranks[m] = ahead[0, a + m] + 1
            values[g] = min(values[g], value_of(ranks, kind, gain[a:b], by_rank))
    return values


@compiled
def cut(polygon: Floats, form: Floats) -> tuple[Floats, int]:
    """Cut a convex polygon (vertices in order) to the part where a linear form (float64[V]) is not negative.

    Returns an array with room for the vertices, and their number.
    """
    values = np.zeros(len(polygon))
    for vertex in range(len(polygon)):
        value = _dot(polygon[vertex], form)
        values[vertex] = value if abs(value) > TINY else 0.0  # on the line: no second vertex beside it
    kept, n = np.empty((len(polygon) + 2, polygon.shape[1])), 0
    for vertex in range(len(polygon)):
        following = (vertex + 1) % len(polygon)
        a, b = values[vertex], values[following]
        if a >= 0:
            for v in range(len(form)):
                kept[n, v] = polygon[vertex, v]
            n += 1
        if (a > 0 and b < 0) or (a < 0 and b > 0):
            share = a / (a - b)
            for v in range(len(form)):
                kept[n, v] = (1 - share) * polygon[vertex, v] + share * polygon[following, v]
            n += 1
    return kept, n
