"""The mean of values over queries, its error over what varies together, intervals of it, corrected p-values."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.result.structs import Estimate

Matrix = NDArray[np.floating]
ALPHA = 0.05
MIN_STANDARD_ERROR = 1e-6  # A standard error of less is rounding
ROWS_PER_BLOCK = 256  # rows of a matrix that are held in float64 at a time


@dataclass(frozen=True)
class Spread:
    """Of each row of values, float64[...] each: its mean over queries and the standard error of that mean.

    Queries of one unit (a conversation, one question in the same words) vary together: the error is that of the
    ratio of the units' sums to their counts (Cochran, Sampling Techniques, 3rd ed., 6.3). It is infinite for a
    single unit, which proves nothing.
    """

    mean: Floats
    error: Floats
    queries: int
    units: int


def by_unit(values: Matrix, unit: Indices | None = None) -> tuple[Floats, Floats]:
    """Sums float64[..., U] of values float[..., n] over the queries of each unit, and counts float64[U].

    `unit` int64[n] numbers the units; without it every query is its own. Units keep the order of their numbers.
    """
    if unit is None:
        return np.asarray(values, dtype=np.float64), np.ones(values.shape[-1])
    _, code, counts = np.unique(unit, return_inverse=True, return_counts=True)
    if len(counts) == len(code):  # every query is its own unit: sums stay in the order of the queries
        return np.asarray(values, dtype=np.float64), np.ones(len(code))
    order, starts = np.argsort(code, kind="stable"), np.concatenate(([0], np.cumsum(counts)[:-1]))
    sums = np.add.reduceat(np.asarray(values, dtype=np.float64)[..., order], starts, axis=-1)
    return sums, counts.astype(np.float64)


def spread(values: Matrix, unit: Indices | None = None) -> Spread:
    """The spread of each row of values float[..., n], n >= 1; see `by_unit` for `unit`.

    >>> found = spread(np.array([[0.0, 1.0, 0.0, 1.0], [0.5, 0.5, 0.5, 0.5]]))
    >>> found.mean.tolist(), found.error.round(4).tolist()
    ([0.5, 0.5], [0.2887, 0.0])
    """
    rows = values.reshape(-1, values.shape[-1])
    mean, error = np.empty(len(rows)), np.empty(len(rows))
    units = 0
    for begin in range(0, len(rows), ROWS_PER_BLOCK):
        block = slice(begin, begin + ROWS_PER_BLOCK)
        sums, counts = by_unit(rows[block], unit)
        units = len(counts)
        mean[block] = sums.sum(axis=-1) / counts.sum()
        away = ((sums - mean[block][:, None] * counts) ** 2).sum(axis=-1)
        error[block] = np.sqrt(away * units / max(units - 1, 1)) / counts.sum() if units > 1 else np.inf
    shape = values.shape[:-1]
    return Spread(mean.reshape(shape), error.reshape(shape), values.shape[-1], units)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the ends of its confidence interval, as the method gives them; equal ends are no interval."""

    mean: float
    low: float
    high: float

    def shown(self, least: float) -> Estimate:
        """As results have it: ends from `least`, 0 of a metric and -1 of a difference of two, to 1.

        None each where there is no interval: one unit, or units that do not vary, tell nothing of others.

        >>> Interval(0.9, 0.6, 1.2).shown(0.0), Interval(1.0, 1.0, 1.0).shown(0.0).low
        (Estimate(mean=0.9, low=0.6, high=1.0), None)
        """
        return Estimate(self.mean, *self.stated(least))

    def stated(self, least: float) -> tuple[float, float] | tuple[None, None]:
        """The ends alone."""
        return (max(self.low, least), min(self.high, 1.0)) if self.low < self.high else (None, None)

    def probability_worse(self, units: int) -> float | None:
        """The probability of a mean below 0, of Student's t over so many units; None where nothing varies."""
        degrees = max(units - 1, 1)
        error = (self.high - self.low) / 2 / float(stdtrit(degrees, 1 - ALPHA / 2))
        return float(stdtr(degrees, -self.mean / error)) if error > 0 else None


def normal_interval(mean: float, error: float) -> Interval:
    """The 95% interval of a mean whose standard error is known: 1.96 errors on either side."""
    return Interval(mean, mean - 1.96 * error, mean + 1.96 * error)


@dataclass(frozen=True, slots=True)
class Gain(Interval):
    """A gain with its 95% interval, and the probability that it is a loss, all of one distribution.

    `worse` is None where nothing varies, so that nothing is known of it.
    """

    worse: float | None

    @classmethod
    def of(cls, mean: float, error: float, degrees: float = math.inf) -> "Gain":
        """Of a normal distribution, or of Student's t with so many degrees of freedom.

        >>> gain = Gain.of(0.0051, 0.017)
        >>> round(gain.low, 4), round(gain.high, 4), round(gain.worse, 2)
        (-0.0282, 0.0384, 0.38)
        """
        reach = float(stdtrit(degrees, 1 - ALPHA / 2)) * error
        return cls(mean, mean - reach, mean + reach, float(stdtr(degrees, -mean / error)) if error > 0 else None)

    @classmethod
    def within(cls, interval: Interval, units: int) -> "Gain":
        """Of Student's interval over so many units, which vary by themselves."""
        return cls(interval.mean, interval.low, interval.high, interval.probability_worse(units))


NO_GAIN = Gain(0.0, 0.0, 0.0, None)


def holm(ps: ArrayLike) -> Floats:
    """Return Holm's step-down corrected p-values, in the order given (Holm 1979).

    >>> holm([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(ps, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return corrected


def benjamini_hochberg(ps: ArrayLike) -> Floats:
    """Return p-values corrected for the false discovery rate, in the order given (Benjamini & Hochberg 1995).

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.04, 0.04]
    """
    p = np.asarray(ps, dtype=np.float64)  # scipy.stats has it too, and takes a second to import
    order = np.argsort(p, kind="stable")[::-1]
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.minimum.accumulate(p[order] * (p.size / np.arange(p.size, 0, -1))), 1.0)
    return corrected
