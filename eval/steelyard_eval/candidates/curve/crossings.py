"""Finds where ranks change along a line in weight space; these are the inner loops of the sweep.

A row's score along the line is a straight line, known by its values at both ends, `low` and `high`. Two rows
cross inside the line exactly where their order at one end is strictly the opposite of that at the other, so the
ends decide which pairs cross, in the very bits that are ranked there, and a crossing lies at

    u = (low_j - low_i) / ((low_j - low_i) - (high_j - high_i))        of the way, strictly between 0 and 1.

Rows that tie at one end are ordered, just inside, by the other end; rows that tie at both are parallel and tied
all along: the smaller index is ahead.

The rank of row i at u is 1 + rows ahead all the way + rows that fall behind i after u + rows that passed it
before u. Where that is to be within a cut, each of the last two counts is at most ``spare``, the cut less the
rank at best; so of the falling rows only the ``spare + 1`` that fall last matter, and of the rising ones the
``spare + 1`` that rise first. Without the others a rank beyond the cut may come out too small, never within it.
"""

from __future__ import annotations

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.candidates.curve.objective import SUM, compiled, sort, value_of

_FEW = 24
"""Up to this number, the smallest values are kept by insertion; more are sorted."""


@compiled
def count_ahead(low: Floats, high: Floats, first: int, last: int, own: int) -> tuple[int, int, int]:
    """Count the rows of ``first:last`` ahead of row `own`: at the low end, at the high end, and all the way."""
    at_low, at_high, always = 0, 0, 0
    own_low, own_high = low[own], high[own]
    for row in range(first, own):
        before, after = low[row] >= own_low, high[row] >= own_high
        at_low += before
        at_high += after
        always += before & after
    for row in range(own + 1, last):
        before, after = low[row] > own_low, high[row] > own_high
        at_low += before
        at_high += after
        always += (before & (high[row] >= own_high)) | (after & (low[row] >= own_low))
    return at_low, at_high, always


@compiled
def crossings(
    low: Floats, high: Floats, first: int, last: int, own: int, falling: Floats, rising: Floats
) -> tuple[int, int]:
    """Find where rows of ``first:last`` fall behind row `own` (as -u) and pass it (as u); return both counts.

    To avoid branches, every row is written, and only counted when it crosses.
    """
    fallen, risen = 0, 0
    own_low, own_high = low[own], high[own]
    for row in range(first, last):
        before, after = low[row] - own_low, high[row] - own_high
        t = before / (before - after)
        falling[fallen] = -t
        rising[risen] = t
        fallen += (before > 0) & (after < 0)
        risen += (before < 0) & (after > 0)
    return fallen, risen


@compiled
def smallest(values: Floats, count: int, keep: int) -> int:
    """Move the `keep` smallest of the first `count` values to the front; return how many there are."""
    if count <= keep:
        return count
    if keep > _FEW:
        sort(values[:count])
        return keep
    kept = 0
    for i in range(count):
        value = values[i]
        if kept == keep and value >= values[kept - 1]:
            continue
        kept = min(kept + 1, keep)
        to = kept - 1
        while to > 0 and values[to - 1] > value:
            values[to] = values[to - 1]
            to -= 1
        values[to] = value
    return kept


@compiled
def rank_steps(
    low: Floats, high: Floats, offsets: Indices, relevant: Indices, relevant_offsets: Indices, deepest: int
) -> tuple[Floats, Indices, Indices, Indices]:
    """Find every change of the rank of a relevant row, for ranks down to `deepest`.

    Returns
    -------
    where : float64[E]
        The place u of each change, in the order of the rows.
    of : int64[E]
        Whose rank changes, an index into `relevant`.
    step : int64[E]
        The change, -1 or 1.
    ranks : int64[3, R]
        The ranks just inside the low end, at the low end and at the high end.
    """
    longest, most = 0, 0
    for q in range(len(offsets) - 1):
        rows = offsets[q + 1] - offsets[q]
        longest = max(longest, rows)
        most += min(rows, 2 * deepest) * (relevant_offsets[q + 1] - relevant_offsets[q])
    falling, rising = np.empty(longest + 1), np.empty(longest + 1)
    where, of, step, n = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64), 0
    ranks = np.empty((3, len(relevant)), np.int64)
    for q in range(len(offsets) - 1):
        first, last = offsets[q], offsets[q + 1]
        for i in range(relevant_offsets[q], relevant_offsets[q + 1]):
            at_low, at_high, always = count_ahead(low, high, first, last, relevant[i])
            ranks[0, i], ranks[1, i], ranks[2, i] = 1 + always, 1 + at_low, 1 + at_high
            if always >= deepest:
                continue
            fallen, risen = crossings(low, high, first, last, relevant[i], falling, rising)
            fallen = smallest(falling, fallen, deepest - always)
            risen = smallest(rising, risen, deepest - always)
            ranks[0, i] += fallen
            for k in range(fallen):
                where[n], of[n], step[n] = -falling[k], i, -1
                n += 1
            for k in range(risen):
                where[n], of[n], step[n] = rising[k], i, 1
                n += 1
    return where[:n], of[:n], step[:n], ranks


@compiled
def order_ties(order: Indices, values: Floats) -> None:
    """Sort the indices of equal values in a sorted order (int64[E]), so that sums are the same everywhere."""
    begin = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] != values[order[begin]]:
            if end - begin > 1:
                sort(order[begin:end])
            begin = end


@compiled
def value_changes(
    order: Indices,
    of: Indices,
    step: Indices,
    ranks: Indices,
    query: Indices,
    relevant_offsets: Indices,
    kind: int,
    gain: Floats,
    by_rank: Floats,
) -> tuple[Indices, Floats]:
    """Compute how the steps, taken in this order, change the values of their queries.

    `ranks` (int64[R]) are the ranks before the first step, `query` (int64[R]) the query of each relevant row.
    Returns the places in the order that change a value, int64, and the changes, float64.
    """
    beyond, n = len(by_rank) - 1, 0
    ranks, values = ranks.copy(), np.empty(len(relevant_offsets) - 1)
    places, changes = np.empty(len(order), np.int64), np.empty(len(order))
    for q in range(len(values)):
        a, b = relevant_offsets[q], relevant_offsets[q + 1]
        values[q] = value_of(ranks[a:b], kind, gain[a:b], by_rank)
    for place in range(len(order)):
        i = of[order[place]]
        before = ranks[i]
        ranks[i] += step[order[place]]
        if kind == SUM:
            change = gain[i] * (by_rank[min(ranks[i], beyond)] - by_rank[min(before, beyond)])
        else:
            a, b = relevant_offsets[query[i]], relevant_offsets[query[i] + 1]
            value = value_of(ranks[a:b], kind, gain[a:b], by_rank)
            change = value - values[query[i]]
            values[query[i]] = value
        if change != 0:
            places[n], changes[n] = place, change
            n += 1
    return places[:n], changes[:n]
