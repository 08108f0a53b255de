"""What a gain out of fold promises, and when it is stated as a number.

A sample on which a candidate passes the gates is a lucky one as a rule; the fewer its queries and the smaller the
true gain, the more of what it shows is luck. So the promise is a posterior, which starts from what recommendations
gained over such a current configuration on public collections (docs/tuning.md). The gain, its interval and the
odds of a loss are all read from this one distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.base.arrays import Floats, Indices
from steelyard.config.search_config import LISTS, SearchConfig
from steelyard_eval.measures.gain import Gain
from steelyard_eval.measures.spread import LEAST, spread

MIN_QUERIES_TO_REPORT = 40
"""Labelled queries below which no gain is stated."""


@dataclass(frozen=True)
class GainPrior:
    """What is usually gained over one kind of configuration.

    `mean` is that of the true gains in nDCG@10 on public collections, `spread` one and a half times their
    standard deviation, for other collections lie further apart. A gain is stated from
    `min_queries_to_report` queries on: with fewer it was not kept on collections that nothing was chosen on.
    """

    mean: float
    spread: float
    min_queries_to_report: int


OVER_SYSTEM = GainPrior(0.10, 0.13, MIN_QUERIES_TO_REPORT)
OVER_RETRIEVER = GainPrior(0.075, 0.10, 100)
OVER_FUSION = GainPrior(0.02, 0.07, 200)


def gain_prior_over(config: SearchConfig | None) -> GainPrior:
    """What is usually gained over a configuration; of lists alone as little is expected as over a fusion.

    >>> from steelyard.systems import find_system
    >>> [gain_prior_over(find_system(name).config(10)).mean for name in ("echovault", "bm25")]
    [0.1, 0.075]
    """
    if config is None or (config.system in ("plain", LISTS) and len(config.effective.retrievers()) > 1):
        return OVER_FUSION
    return OVER_RETRIEVER if len(config.effective.retrievers()) == 1 else OVER_SYSTEM


def expected_gain(gains: Floats, units: Indices, prior: GainPrior) -> Gain:
    """What to expect of unseen queries, from the gain out of fold on each of these, float64[n].

    Mean and variance are those of a normal mean under a normal prior: each side is weighed by the inverse of its
    variance, that of the sample over units of queries.
    """
    found = spread(gains, units)
    sample, known = max(float(found.error), LEAST) ** -2, prior.spread**-2
    mean = (sample * float(found.mean) + known * prior.mean) / (sample + known)
    return Gain.of(mean, (sample + known) ** -0.5)
