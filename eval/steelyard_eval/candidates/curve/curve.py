"""Piecewise constant functions and their plateaus, the intervals where they are highest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Bools, Floats

NARROWEST = 1e-9
"""Intervals no wider than this are treated as part of the crossing that they are at."""
SAME = 1e-12
"""Values that differ by no more than this count as equal."""


@dataclass(frozen=True)
class Plateau:
    """Adjacent intervals of one value: ``low`` to ``high``, and the point chosen among them.

    `low` equals `high` where only an end point of the line reaches the value.
    """

    low: float
    high: float
    t: float
    value: float

    def distance(self, t: float) -> float:
        """Return the distance of t from the plateau; 0 on it."""
        return max(self.low - t, t - self.high, 0.0)


@dataclass(frozen=True)
class Curve:
    """A piecewise constant function of t.

    Attributes
    ----------
    edges : float64[E+2]
        Ascending: the low end, the places where the value changes, the high end.
    values : float64[E+1]
        The values on the open intervals between neighbouring edges.
    ends : tuple of float
        The values at the two end points themselves.
    """

    edges: Floats
    values: Floats
    ends: tuple[float, float]

    @property
    def wide(self) -> Bools:
        """The intervals that are wide enough to count; bool[E+1]."""
        return np.diff(self.edges) > NARROWEST

    @property
    def best(self) -> float:
        """The highest value of an end point or of an interval that is wide enough."""
        return float(max(*self.ends, self.values[self.wide].max(initial=-np.inf)))

    def plateaus(self) -> list[Plateau]:
        """List the maximal runs of adjacent pieces with the best value, from low to high.

        The t of each is its middle, or the middle of its widest interval when a change is at its middle.
        """
        _, _, values = self._pieces()
        return self._runs(values >= self.best - SAME)

    def around(self, t: float, value: float) -> Plateau:
        """Return the maximal run of pieces of a value that contains t or is nearest to it; t alone without any."""
        _, _, values = self._pieces()
        runs = self._runs(np.abs(values - value) <= SAME)
        return min(runs, key=lambda p: (p.distance(t), p.low - p.high), default=Plateau(t, t, t, value))

    def choose(self, near: float | None = None) -> Plateau:
        """Choose the plateau nearest to a t, then the widest, then the first."""
        return min(self.plateaus(), key=lambda p: (0.0 if near is None else p.distance(near), p.low - p.high))

    def _runs(self, good: Bools) -> list[Plateau]:
        lows, highs, values = self._pieces()
        begins = np.flatnonzero(good & ~np.concatenate(([False], good[:-1])))
        ends = np.flatnonzero(good & ~np.concatenate((good[1:], [False]))) + 1
        return [self._plateau(lows[a:b], highs[a:b], values[a:b]) for a, b in zip(begins, ends, strict=True)]

    def _pieces(self) -> tuple[Floats, Floats, Floats]:
        """Lows, highs and values of what counts: the low end point, the wide intervals, the high end point."""
        low, high = self.edges[0], self.edges[-1]
        wide = self.wide
        return (
            np.concatenate(([low], self.edges[:-1][wide], [high])),
            np.concatenate(([low], self.edges[1:][wide], [high])),
            np.concatenate(([self.ends[0]], self.values[wide], [self.ends[1]])),
        )

    def _plateau(self, lows: Floats, highs: Floats, values: Floats) -> Plateau:
        low, high = float(lows[0]), float(highs[-1])
        t = (low + high) / 2
        inside = (lows < t - NARROWEST / 4) & (t + NARROWEST / 4 < highs)
        i = int(np.argmax(inside)) if inside.any() else int(np.argmax(highs - lows))
        return Plateau(low, high, t if inside.any() else float(lows[i] + highs[i]) / 2, float(values[i]))
