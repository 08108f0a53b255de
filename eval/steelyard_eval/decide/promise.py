"""What a gain out of fold promises, and when it is stated as a number.

A sample on which a candidate passes the gates is a lucky one as a rule; the fewer its queries and the smaller the
true gain, the more of what it shows is luck. So the promise is a posterior, which starts from what recommendations
gained over such a current configuration on public collections (docs/tuning.md). The gain, its interval and the
odds of a loss are all read from this one distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from steelyard.base.arrays import Floats, Indices
from steelyard.config.search_config import LISTS, SearchConfig
from steelyard_eval.decide.posterior import LEAST
from steelyard_eval.measures.paired import Interval
from steelyard_eval.measures.spread import spread

FEWEST = 40
"""Labelled queries below which no gain is stated."""
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


@dataclass(frozen=True)
class Usual:
    """What is usually gained over one kind of configuration.

    `mean` is that of the true gains in nDCG@10 on public collections, `spread` one and a half times their
    standard deviation, for other collections lie further apart. A gain is stated from `stated` labelled queries
    on: with fewer it was not kept on collections that nothing was chosen on.
    """

    mean: float
    spread: float
    stated: int


OVER_SYSTEM = Usual(0.10, 0.13, FEWEST)
OVER_RETRIEVER = Usual(0.075, 0.10, 100)
OVER_FUSION = Usual(0.02, 0.07, 200)


def usual_over(config: SearchConfig | None) -> Usual:
    """What is usually gained over a configuration; of lists alone as little is expected as over a fusion.

    >>> from steelyard.systems import find_system
    >>> [usual_over(find_system(name).config(10)).mean for name in ("echovault", "bm25")], usual_over(None).mean
    ([0.1, 0.075], 0.02)
    """
    if config is None or (config.system in ("plain", LISTS) and len(config.effective.retrievers()) > 1):
        return OVER_FUSION
    return OVER_RETRIEVER if len(config.effective.retrievers()) == 1 else OVER_SYSTEM


def promise(gains: Floats, groups: Indices, usual: Usual) -> Gain:
    """What to expect of unseen queries, from the gain out of fold on each of these, float64[n].

    Mean and variance are those of a normal mean under a normal prior: each side is weighed by the inverse of its
    variance, that of the sample over groups of queries.
    """
    found = spread(gains, groups)
    sample, prior = max(float(found.error), LEAST) ** -2, usual.spread**-2
    mean = (sample * float(found.mean) + prior * usual.mean) / (sample + prior)
    return Gain.of(mean, (sample + prior) ** -0.5)
