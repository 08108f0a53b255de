"""The posterior of every candidate's true mean difference to the current configuration.

It is that of a normal mean: it starts from what other collections showed (`PriorGains`), which counts as so many
queries, and takes up the mean and the standard error of the labelled queries (`measures.spread`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from steelyard.base.arrays import Floats
from steelyard_eval.measures.spread import LEAST, Matrix, Spread

PRIOR_QUERIES = 10.0
"""Queries that the table of other collections counts as at most, for the mean and for the variance."""


@dataclass(frozen=True)
class PriorGains:
    """What other collections showed of each candidate, as differences to the same current configuration.

    Attributes
    ----------
    mean : float64[C]
        Mean over the collections of the mean difference; 0 where nothing is known.
    variance : float64[C]
        Mean over the collections of the variance between queries.
    effective_n : float64[C]
        How many queries that counts as; 0 where nothing is known.
    """

    mean: Floats
    variance: Floats
    effective_n: Floats

    @classmethod
    def none(cls, count: int) -> PriorGains:
        """Nothing is known of any of the candidates."""
        return cls(np.zeros(count), np.zeros(count), np.zeros(count))

    @classmethod
    def of(cls, means: Matrix, variances: Matrix) -> PriorGains:
        """From float[S, C] of S collections; NaN where a collection lacks a candidate."""
        seen = np.isfinite(means)
        count = seen.sum(axis=0)
        share = 1.0 / np.maximum(count, 1)
        mean = np.where(seen, means, 0.0).sum(axis=0) * share
        variance = np.where(seen, variances, 0.0).sum(axis=0) * share
        # The table itself is only a mean of so many collections.
        return cls(mean, variance, PRIOR_QUERIES * count / (count + 1))


@dataclass(frozen=True)
class Posterior:
    """float64[C] each: mean and standard deviation of every candidate's true mean difference, degrees of freedom.

    The degrees are infinite where a table is known and every query counts by itself.
    """

    mean: Floats
    deviation: Floats
    degrees: Floats

    def p_loss(self) -> Floats:
        """float64[C]: the probability that the candidate is worse than the current configuration."""
        return np.asarray(stdtr(self.degrees, -self.mean / self.deviation), dtype=np.float64)


def posterior(sample: Spread, prior: PriorGains, extra: Floats | float = 0.0) -> Posterior:
    """The posterior of every candidate's mean difference.

    ``mean = (n * sample + effective_n * known) / (n + effective_n)``; its variance is that between queries, for a
    mean of n + effective_n. Where queries come in groups, it is that of the mean over groups, times n. `extra`,
    float64[C], is the variance of the sample's mean that these queries do not show.
    """
    n = sample.queries
    between = n * sample.error**2
    pooled = np.where(
        prior.effective_n > 0, (n * between + PRIOR_QUERIES * prior.variance) / (n + PRIOR_QUERIES), between
    )
    weight = n / (n + prior.effective_n)
    deviation = np.maximum(np.sqrt(pooled / (n + prior.effective_n) + weight**2 * extra), LEAST)
    mean = (n * sample.mean + prior.effective_n * prior.mean) / (n + prior.effective_n)
    independent = sample.units == n
    degrees = np.where((prior.effective_n > 0) & independent, np.inf, max(sample.units - 1, 1))
    return Posterior(mean, deviation, degrees)
