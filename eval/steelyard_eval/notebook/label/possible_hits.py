"""Which entries some choice of weights would bring into the first places, from the plan of a strategy.

Of two columns it is known exactly: every rank is followed along the whole line between them (`curve.rank_steps`).
Of more, a row that as many others beat or equal in every column as there are places can never be among the first.
The others are kept, which are all that can be, and some that cannot.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import Branch, compile_plan
from steelyard.table.signal_table import SignalTable
from steelyard_eval.candidates.curve import rank_steps

BLOCK = 100
"""Queries that are followed at a time."""


def reachable(table: SignalTable, config: SearchConfig, places: int) -> Bools:
    """bool[N]: the rows that weights of 0 or more can bring among the first `places` of their query."""
    masked = table.at_depth(config.depths)
    reached = np.zeros(len(table), dtype=bool)
    for branch in compile_plan(masked, config.effective).branches:
        rows = np.flatnonzero(branch.rows)
        offsets = np.searchsorted(rows, table.offsets).astype(np.int64)
        reached[rows[_within(_columns(branch, rows), offsets, places)]] = True
    return reached


def _columns(branch: Branch, rows: Indices) -> Floats:
    """float64[S, n]: what the weights multiply, on these rows."""
    factor = 1.0 if branch.factor is None else branch.factor[rows]
    return np.stack([column.values[rows] * factor for column in branch.columns])


def _within(columns: Floats, offsets: Indices, places: int) -> Bools:
    if len(columns) != 2:
        return np.asarray(_beaten(columns, offsets) < places, dtype=np.bool_)
    best = np.empty(columns.shape[1], dtype=np.int64)
    for begin in range(0, len(offsets) - 1, BLOCK):
        ends = offsets[begin : begin + BLOCK + 1]
        best[ends[0] : ends[-1]] = _best_ranks(columns[:, ends[0] : ends[-1]], ends - ends[0], places)
    return np.asarray(best <= places, dtype=np.bool_)


def _best_ranks(columns: Floats, offsets: Indices, places: int) -> Indices:
    """int64[n]: the best rank of every row between the one column alone and the other alone."""
    low, high = np.ascontiguousarray(columns)
    rows = np.arange(len(low), dtype=np.int64)
    where, of, step, ranks = rank_steps(low, high, offsets, rows, offsets, places)
    best = ranks.min(axis=0)
    if len(of):
        order = np.lexsort((step, where, of))  # of crossings at one place those that help come first
        of, walked = of[order], np.cumsum(step[order])
        begins = np.flatnonzero(np.diff(of, prepend=-1))
        walked -= np.repeat(walked[begins] - step[order][begins], np.diff(begins, append=len(of)))
        lowest = np.minimum.reduceat(walked, begins)
        best[of[begins]] = np.minimum(best[of[begins]], ranks[0][of[begins]] + lowest)
    return np.asarray(best, dtype=np.int64)


def _beaten(columns: Floats, offsets: Indices) -> Indices:
    """How many rows of its query beat or equal each row in every column; int64[n]."""
    beaten = np.zeros(columns.shape[1], dtype=np.int64)
    for begin, end in pairwise(offsets.tolist()):
        own = columns[:, begin:end]
        ahead = (own[:, :, None] >= own[:, None, :]).all(axis=0)  # [other, row]
        ties = ahead & ahead.T & ~np.triu(np.ones(ahead.shape, dtype=bool), 1)  # of equal ones the first is ahead
        beaten[begin:end] = (ahead & ~ties).sum(axis=0)
    return beaten
