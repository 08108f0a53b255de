"""A gain with its interval, and the odds that it is a loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from steelyard_eval.measures.paired import Interval

UPPER = 0.975


@dataclass(frozen=True, slots=True)
class Gain(Interval):
    """A gain with its 95% interval, and the probability that it is a loss, all of one distribution.

    `worse` is None where nothing varies, so that nothing is known of it.
    """

    worse: float | None

    @classmethod
    def of(cls, mean: float, error: float, degrees: float = math.inf) -> Gain:
        """Of a normal distribution, or of Student's t with so many degrees of freedom.

        >>> gain = Gain.of(0.0051, 0.017)
        >>> round(gain.low, 4), round(gain.high, 4), round(gain.worse, 2)
        (-0.0282, 0.0384, 0.38)
        """
        reach = float(stdtrit(degrees, UPPER)) * error
        return cls(mean, mean - reach, mean + reach, float(stdtr(degrees, -mean / error)) if error > 0 else None)

    @classmethod
    def within(cls, interval: Interval, units: int) -> Gain:
        """Of Student's interval over so many units, which vary by themselves."""
        degrees = max(units - 1, 1)
        error = (interval.high - interval.low) / 2 / float(stdtrit(degrees, UPPER))
        worse = float(stdtr(degrees, -interval.mean / error)) if error > 0 else None
        return cls(interval.mean, interval.low, interval.high, worse)


NO_GAIN = Gain(0.0, 0.0, 0.0, None)
