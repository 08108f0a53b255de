"""The objective of weight search: a measure over a form, as a function of the ranks of relevant rows.

Every measure here is one of four functions of the ranks of a query's relevant rows. ``by_rank`` is the value of
a rank, 0 beyond the cut, and ``gain`` is the factor of a relevant row.

=========  ======================================  ===========  =================
kind       a query's value                         by_rank      gain
=========  ======================================  ===========  =================
SUM        sum of gain * by_rank over its rows
           nDCG@k                                  1/log2(r+1)  grade / ideal DCG
           R@k                                     1            1 / relevant
           P@k                                     1            1 / k
BEST       by_rank of the first of them
           RR@k; Success@k and RecallAny@k         1/r; 1       1
PRECISION  sum of (relevant so far) * the like
           AP@k                                    1/r          1 / relevant
ALL        1 where every relevant entry is there
           RecallAll@k                             1            1 / relevant
=========  ======================================  ===========  =================

Values are trec_eval's, as in `steelyard_eval.measures.metrics`, in float64 throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.candidates.kernel import Form
from steelyard_eval.measures import metrics
from steelyard_eval.measures.metrics import Measure

Function = TypeVar("Function", bound=Callable[..., object])

SUM, BEST, PRECISION, ALL = range(4)
_SHAPES = {
    metrics.GAIN: SUM,
    metrics.HITS: SUM,
    metrics.FIRST: BEST,
    metrics.ANY: BEST,
    metrics.PRECISIONS: PRECISION,
    metrics.ALL: ALL,
}
"""Which of the four each kind of measure is."""


def compiled(function: Function) -> Function:
    """Compile a function of arrays and numbers, without fast-math, so that the bits are those of numpy.

    The machine code is cached in the package's or the user's cache folder when one of them can be written.
    """
    try:
        return cast(Function, njit(nogil=True, error_model="numpy", cache=True)(function))
    except RuntimeError:  # no such folder
        return cast(Function, njit(nogil=True, error_model="numpy")(function))


@dataclass(frozen=True)
class Objective:
    """The mean of a measure over the queries of a form; build it with `Objective.of`.

    Attributes
    ----------
    columns : float64[S, N]; offsets : int64[Q+1]; relevant : int64[R]; relevant_offsets : int64[Q+1]
        As in `Form`.
    kind : SUM, BEST, PRECISION or ALL
    by_rank : float64[D+2]
        The value of the ranks 1 to D; 0 at index 0, and at D+1 for every rank beyond the cut D.
    gain : float64[R]
        The factor of each relevant row.
    """

    columns: Floats
    offsets: Indices
    relevant: Indices
    relevant_offsets: Indices
    kind: int
    by_rank: Floats
    gain: Floats

    @classmethod
    def of(cls, form: Form, measure: Measure) -> Objective:
        """Make the objective of a form; ConfigError for Judged@k, which is no function of relevant ranks."""
        return cls(
            columns=form.columns,
            offsets=form.offsets,
            relevant=form.relevant,
            relevant_offsets=form.relevant_offsets,
            kind=_SHAPES[measure.kind],
            by_rank=_by_rank(measure.kind, _depth(form, measure)),
            gain=_gain(form, measure),
        )

    @cached_property
    def query(self) -> Indices:
        """The query of each relevant row; int64[R]."""
        return np.repeat(np.arange(self.queries), np.diff(self.relevant_offsets))

    @property
    def deepest(self) -> int:
        """D, the last rank that counts."""
        return len(self.by_rank) - 2

    @property
    def queries(self) -> int:
        """Q, the number of queries in the mean."""
        return len(self.offsets) - 1

    def scores(self, weights: Floats) -> Floats:
        """Compute the scores, float64[N], with the same bits as `Form.scores`."""
        return _scores(self.columns, weights)

    def values(self, weights: Floats) -> Floats:
        """Compute the measure of each query under weights float64[S], ties by row index; float64[Q]."""
        return self.values_of(_ranks(self.scores(weights), self.offsets, self.relevant, self.relevant_offsets))

    def values_of(self, ranks: Indices) -> Floats:
        """Compute the measure of each query when the relevant rows have these ranks (int64[R]); float64[Q]."""
        return _values(ranks, self.relevant_offsets, self.kind, self.gain, self.by_rank)

    def mean(self, weights: Floats) -> float:
        """Compute the mean of `values`."""
        return float(self.values(weights).mean())


def _gain(form: Form, measure: Measure) -> Floats:
    """float64[R]; see the module."""
    if _SHAPES[measure.kind] == BEST:
        return np.ones(len(form.relevant))
    divisor = np.repeat(measure.divisor(form.ideal_at, form.total_relevant), np.diff(form.relevant_offsets))
    return (form.grade if measure.kind == metrics.GAIN else np.ones(len(form.relevant))) / divisor


def _depth(form: Form, measure: Measure) -> int:
    """The last rank that counts, limited by the measure's cutoff, the results shown and the longest list."""
    longest = int(np.diff(form.offsets).max(initial=0))
    return min(cut for cut in (longest, measure.cutoff, form.limit) if cut is not None)


def _by_rank(kind: int, depth: int) -> Floats:
    worth = np.zeros(depth + 2)
    rank = np.arange(1, depth + 1, dtype=np.float64)
    if kind == metrics.GAIN:
        worth[1:-1] = 1.0 / np.log2(rank + 1.0)
    else:
        worth[1:-1] = 1.0 / rank if kind in (metrics.FIRST, metrics.PRECISIONS) else 1.0
    return worth


@compiled
def sort(values: NDArray[np.generic]) -> None:
    """Sort in place (Shell's method with Knuth's gaps), which is fast for short arrays and compiles quickly."""
    gap = 1
    while gap < len(values) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(values)):
            value, to = values[i], i
            while to >= gap and values[to - gap] > value:
                values[to] = values[to - gap]
                to -= gap
            values[to] = value
        gap //= 3


@compiled
def _scores(columns: Floats, weights: Floats) -> Floats:
    total = np.zeros(columns.shape[1])
    for s in range(columns.shape[0]):
        for row in range(columns.shape[1]):
            total[row] += weights[s] * columns[s, row]
    return total


@compiled
def _ranks(scores: Floats, offsets: Indices, relevant: Indices, relevant_offsets: Indices) -> Indices:
    """The rank from 1 of every relevant row, int64[R], by counting the rows ahead of it."""
    ranks = np.empty(len(relevant), np.int64)
    for q in range(len(offsets) - 1):
        for i in range(relevant_offsets[q], relevant_offsets[q + 1]):
            hit, ahead = relevant[i], 0
            for row in range(offsets[q], hit):
                ahead += scores[row] >= scores[hit]
            for row in range(hit + 1, offsets[q + 1]):
                ahead += scores[row] > scores[hit]
            ranks[i] = 1 + ahead
    return ranks


@compiled
def _values(ranks: Indices, relevant_offsets: Indices, kind: int, gain: Floats, by_rank: Floats) -> Floats:
    values = np.zeros(len(relevant_offsets) - 1)
    for q in range(len(values)):
        a, b = relevant_offsets[q], relevant_offsets[q + 1]
        values[q] = value_of(ranks[a:b], kind, gain[a:b], by_rank)
    return values


@compiled
def value_of(ranks: Indices, kind: int, gain: Floats, by_rank: Floats) -> float:
    """Compute one query's value from the ranks of its relevant rows, in any order; see the module."""
    beyond = len(by_rank) - 1
    value = 0.0
    for i in range(len(ranks)):
        worth = by_rank[min(ranks[i], beyond)]
        if kind == BEST:
            value = max(value, worth)
        elif kind == PRECISION:
            hits = 0
            for other in range(len(ranks)):
                hits += ranks[other] <= ranks[i]
            value += gain[i] * worth * hits
        else:
            value += gain[i] * worth
    if kind == ALL and len(ranks):
        value = 1.0 if value > 1.0 - 0.5 * gain[0] else 0.0
    return value
