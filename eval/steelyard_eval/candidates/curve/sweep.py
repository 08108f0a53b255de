"""Computes the mean measure along a line in weight space exactly, as a piecewise constant function.

For fixed columns a score is linear in the weights, so along ``weights(t) = start + t * direction`` every row's
score is a straight line and ranks change only where two lines cross (`crossings`). One sorted list of changes,
each with its query, then gives the mean at any point of the line.

Values apply to open intervals; those no wider than 1e-9 count as part of the crossing that they are at. The two
end points have their own values, ties by row index. Exact means up to the rounding of two scores in float64: rows
that tie along the whole line although their columns differ are ordered by rounding alone, so a chosen t has to be
evaluated (`Objective.mean`) before its value is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.candidates.curve.crossings import order_ties, rank_steps, value_changes
from steelyard_eval.candidates.curve.curve import Curve
from steelyard_eval.candidates.curve.objective import Objective


@dataclass(frozen=True)
class Sweep:
    """All changes of all queries' values along a line, by ascending t.

    Attributes
    ----------
    low, high : float
        The ends of the line.
    at, change : float64[E]; query : int64[E]
        Where a query's value changes, and by how much; equal t in the order of queries and rows.
    start : float64[Q]
        The values just inside `low`.
    ends : float64[2, Q]
        The values at both end points themselves.
    """

    low: float
    high: float
    at: Floats
    change: Floats
    query: Indices
    start: Floats
    ends: Floats

    def curve(self) -> Curve:
        """Return the mean over all queries as a function of t."""
        steps = np.concatenate(([0.0], np.cumsum(self.change)))
        return Curve(
            edges=np.concatenate(([self.low], self.at, [self.high])),
            values=(self.start.sum() + steps) / len(self.start),
            ends=(float(self.ends[0].mean()), float(self.ends[1].mean())),
        )

    def values(self, t: float) -> Floats:
        """Return each query's value at t, float64[Q]; on a crossing, that of the interval to its right."""
        if t in (self.low, self.high):
            end: Floats = self.ends[0 if t == self.low else 1]
            return end
        before = np.searchsorted(self.at, t, side="right")
        values: Floats = self.start + np.bincount(self.query[:before], self.change[:before], len(self.start))
        return values


def sweep(objective: Objective, start: Floats, direction: Floats, low: float = 0.0, high: float = 1.0) -> Sweep:
    """Follow the objective along ``weights(t) = start + t * direction`` for t from `low` to `high`.

    `start` and `direction` are float64[S]. Q = 500 queries of 150 rows take about 3 ms.
    """
    at_low = objective.scores(start + low * direction)
    at_high = objective.scores(start + high * direction)
    o = objective
    where, of, step, ranks = rank_steps(at_low, at_high, o.offsets, o.relevant, o.relevant_offsets, o.deepest)
    order = np.argsort(where)  # numpy's fast sort is not stable, and not the same on every processor
    order_ties(order, where)
    places, change = value_changes(
        order, of, step, ranks[0], o.query, o.relevant_offsets, o.kind, o.gain, o.by_rank
    )
    changing = order[places]
    return Sweep(
        low,
        high,
        at=low + (high - low) * where[changing],
        change=change,
        query=o.query[of[changing]],
        start=o.values_of(ranks[0]),
        ends=np.stack([o.values_of(ranks[1]), o.values_of(ranks[2])]),
    )


def segment(objective: Objective, begin: Floats, end: Floats) -> Sweep:
    """Sweep from one weight vector (t = 0) to another (t = 1)."""
    return sweep(objective, begin, end - begin)
