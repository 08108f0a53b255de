"""The posterior of every candidate's true mean difference to the current configuration.

It is that of a normal mean: it starts from what other collections showed (`PriorGains`), which counts as so many
queries, and takes up the labelled queries through a few sums (`Moments`). Sums of parts add up, so the posterior
without one fold is that of the whole less the fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import add, sub

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from steelyard.base.arrays import Floats, Indices

Matrix = NDArray[np.floating]

WORTH = 10.0
"""Queries that the table of other collections counts as at most, for the mean and for the variance."""
LEAST = 1e-6
"""A standard error of less is rounding."""
BLOCK = 256
"""Rows of a matrix that are held in float64 at a time."""


@dataclass(frozen=True)
class PriorGains:
    """What other collections showed of each candidate, as differences to the same current configuration.

    Attributes
    ----------
    mean : float64[C]
        Mean over the collections of the mean difference; 0 where nothing is known.
    variance : float64[C]
        Mean over the collections of the variance between queries.
    worth : float64[C]
        How many queries that counts as; 0 where nothing is known.
    """

    mean: Floats
    variance: Floats
    worth: Floats

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
        return cls(mean, variance, WORTH * count / (count + 1))


@dataclass(frozen=True)
class Moments:
    """Sums over queries of C candidates' differences. Queries of one group vary together, and count through it.

    Attributes
    ----------
    total : float64[C]
        Sum over queries.
    squares, crossed : float64[C]
        Sums over groups: of the square of the group's sum, and of that sum times its number of queries.
    queries, groups, spread : int
        How many queries and groups, and the sum of the squares of the groups' numbers of queries.
    """

    total: Floats
    squares: Floats
    crossed: Floats
    queries: int
    groups: int
    spread: int

    @classmethod
    def of(cls, differences: Matrix, groups: Indices) -> Moments:
        """Over all queries of float[C, n]; `groups` int64[n]."""
        return cls.by_part(differences, groups, np.zeros(len(groups), dtype=np.int64))[0]

    @classmethod
    def by_part(cls, differences: Matrix, groups: Indices, part: Indices) -> list[Moments]:
        """Over the queries of each part; `part` int64[n] counts from 0, and no group may be in two parts."""
        known, first, code, counts = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
        order, starts = np.argsort(code, kind="stable"), np.concatenate(([0], np.cumsum(counts)[:-1]))
        grouped = len(known) < len(groups)  # else the sums stay in the order of the queries
        owner = part[first] if grouped else part
        within = (owner[:, None] == np.arange(int(part.max()) + 1)).astype(np.float64)
        total, squares, crossed = (np.empty((len(differences), within.shape[1])) for _ in range(3))
        for begin in range(0, len(differences), BLOCK):
            rows = slice(begin, begin + BLOCK)
            sums = differences[rows].astype(np.float64)
            if grouped:
                sums = np.add.reduceat(sums[:, order], starts, axis=1)
            total[rows] = sums @ within
            squares[rows] = sums**2 @ within
            crossed[rows] = sums * counts @ within
        sizes = np.array([counts, np.ones(len(counts)), counts**2]) @ within
        return [
            cls(total[:, i], squares[:, i], crossed[:, i], *sizes[:, i].astype(int).tolist())
            for i in range(within.shape[1])
        ]

    def __add__(self, other: Moments) -> Moments:
        return Moments(*map(add, vars(self).values(), vars(other).values()))

    def __sub__(self, other: Moments) -> Moments:
        return Moments(*map(sub, vars(self).values(), vars(other).values()))

    @property
    def mean(self) -> Floats:
        """float64[C], over queries."""
        return self.total / self.queries

    @property
    def error(self) -> Floats:
        """float64[C]: the standard error of the mean (of the ratio over groups); infinite for one group."""
        if self.groups < 2:
            return np.full(len(self.total), np.inf)
        mean = self.mean
        away = np.maximum(self.squares - 2 * mean * self.crossed + mean**2 * self.spread, 0.0)
        return np.asarray(np.sqrt(away * self.groups / (self.groups - 1)) / self.queries, dtype=np.float64)


@dataclass(frozen=True)
class Posterior:
    """float64[C] each: mean and standard deviation of every candidate's true mean difference, degrees of freedom.

    The degrees are infinite where a table is known and every query counts by itself.
    """

    mean: Floats
    deviation: Floats
    degrees: Floats

    def harm(self) -> Floats:
        """float64[C]: the probability that the candidate is worse than the current configuration."""
        return np.asarray(stdtr(self.degrees, -self.mean / self.deviation), dtype=np.float64)


def posterior(sums: Moments, prior: PriorGains, beyond: Floats | float = 0.0) -> Posterior:
    """The posterior of every candidate's mean difference.

    ``mean = (n * sample + worth * known) / (n + worth)``; its variance is that between queries, for a mean of
    n + worth. Where queries come in groups, it is that of the mean over groups, times n. `beyond`, float64[C], is
    the variance of the sample's mean that these queries do not show.
    """
    n = sums.queries
    between = n * sums.error**2
    pooled = np.where(prior.worth > 0, (n * between + WORTH * prior.variance) / (n + WORTH), between)
    weight = n / (n + prior.worth)
    deviation = np.maximum(np.sqrt(pooled / (n + prior.worth) + weight**2 * beyond), LEAST)
    mean = (sums.total + prior.worth * prior.mean) / (n + prior.worth)
    independent = sums.groups == n
    degrees = np.where((prior.worth > 0) & independent, np.inf, max(sums.groups - 1, 1))
    return Posterior(mean, deviation, degrees)
