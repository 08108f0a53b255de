"""Which candidate replaces the current configuration, if any: one rule for every command that chooses.

It works on matrices of paired differences between candidates and the current configuration, one column a labelled
query, so that the experiment (`tests/benchmarks/evidence.py`) and the product run the same code.

==========  ==================  ===============================================================================
matrix      shape               what it is
==========  ==================  ===============================================================================
metric      float[C, n]         the metric that is reported, nDCG@10 as a rule, candidate - current
composite   float[C, n]         a steadier measure of the same thing, smoothed along the weights: `composite.py`
==========  ==================  ===============================================================================

A candidate's true mean difference has a posterior: that of a normal mean, started from what other collections
showed (`Prior`), which counts as so many queries. `best` is the candidate of largest posterior mean, likely
better but unproven; `proven` the largest among those that pass the gates. How the numbers were found:
docs/tuning.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from steelyard.arrays import Bools, Floats

Indices = NDArray[np.int64]
Matrix = NDArray[np.floating]

WORTH = 10.0
"""Queries that the table of other collections counts as at most, for the mean and for the variance."""
LEAST = 1e-6
"""A standard error of less is rounding."""
FOLDS = 5
BLOCK = 256
"""Rows of a matrix that are held in float64 at a time."""
SURE = 0.95
"""Of the bound on what any candidate could gain."""


@dataclass(frozen=True)
class Gates:
    """How small the probability of a loss has to be for a candidate to ship.

    `composite` is for the composite, `metric` for the reported metric alone. Where no other collection is known,
    Student's t is asked for `composite / untabled` instead: the table is worth that much.
    """

    composite: float
    metric: float
    untabled: float


ONE_STRATEGY = Gates(composite=0.02, metric=0.05, untabled=2.0)
"""For the settings of one strategy, which are much alike."""
ALL_FAMILIES = Gates(composite=0.005, metric=0.05, untabled=5.0)
"""For all families together: what is current may already be the best of them."""


@dataclass(frozen=True)
class Prior:
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
    def none(cls, count: int) -> Prior:
        """Nothing is known of any of the candidates."""
        return cls(np.zeros(count), np.zeros(count), np.zeros(count))

    @classmethod
    def of(cls, means: Matrix, variances: Matrix) -> Prior:
        """From float[S, C] of S collections; NaN where a collection lacks a candidate."""
        seen = np.isfinite(means)
        count = seen.sum(axis=0)
        share = 1.0 / np.maximum(count, 1)
        mean = np.where(seen, means, 0.0).sum(axis=0) * share
        variance = np.where(seen, variances, 0.0).sum(axis=0) * share
        # The table itself is only a mean of so many collections.
        return cls(mean, variance, WORTH * count / (count + 1))


@dataclass(frozen=True)
class Evidence:
    """The two matrices on the labelled queries, what is known beforehand, and which queries vary together.

    `groups` int64[n] numbers the groups; all different where queries are independent.
    """

    metric: Matrix
    composite: Matrix
    prior_metric: Prior
    prior_composite: Prior
    groups: Indices

    @classmethod
    def of(
        cls,
        metric: Matrix,
        composite: Matrix,
        priors: tuple[Prior, Prior] | None = None,
        groups: Indices | None = None,
    ) -> Evidence:
        """Without priors nothing is known but the labels; without groups every query counts by itself."""
        known = priors or (Prior.none(len(metric)), Prior.none(len(metric)))
        return cls(metric, composite, *known, np.arange(metric.shape[1]) if groups is None else groups)

    def on(self, queries: Bools) -> Evidence:
        """The same on the queries where bool[n] is true."""
        kept = self.metric[:, queries], self.composite[:, queries]
        return Evidence(*kept, self.prior_metric, self.prior_composite, self.groups[queries])


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


def posterior(differences: Matrix, prior: Prior, groups: Indices) -> Posterior:
    """The posterior of every candidate's mean difference, from float[C, n].

    ``mean = (n * sample + worth * known) / (n + worth)``; its variance is that between queries, for a mean of
    n + worth. Queries of one group vary together: then the variance is that of the mean over groups, times n.
    """
    n = differences.shape[1]
    sample = differences.mean(axis=1, dtype=np.float64)
    units, error = _standard_errors(differences, sample, groups)
    between = n * error**2
    pooled = np.where(prior.worth > 0, (n * between + WORTH * prior.variance) / (n + WORTH), between)
    deviation = np.maximum(np.sqrt(pooled / (n + prior.worth)), LEAST)
    mean = (n * sample + prior.worth * prior.mean) / (n + prior.worth)
    independent = units == n
    degrees = np.where((prior.worth > 0) & independent, np.inf, max(units - 1, 1))
    return Posterior(mean, deviation, degrees)


def _standard_errors(differences: Matrix, sample: Floats, groups: Indices) -> tuple[int, Floats]:
    """How many units there are, and float64[C]: the standard error of each mean (of the ratio over groups)."""
    n = differences.shape[1]
    known, code, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if len(known) < 2:
        return 1, np.full(len(sample), np.inf)
    order = np.argsort(code, kind="stable")
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    squares = np.empty(len(sample))
    for begin in range(0, len(sample), BLOCK):
        rows = slice(begin, begin + BLOCK)
        sums = differences[rows].astype(np.float64)
        if len(known) < n:
            sums = np.add.reduceat(sums[:, order], starts, axis=1)
        away = sums - sample[rows, None] * counts
        squares[rows] = np.einsum("ij,ij->i", away, away)
    return len(known), np.sqrt(squares * len(known) / (len(known) - 1)) / n


def best(evidence: Evidence) -> int | None:
    """The candidate of largest posterior mean of the composite, unproven; None when none lies above 0."""
    mean = posterior(evidence.composite, evidence.prior_composite, evidence.groups).mean
    top = int(np.argmax(mean))
    return top if mean[top] > 0 else None


def proven(evidence: Evidence, gates: Gates) -> int | None:
    """The candidate of largest posterior mean among those that pass both gates; None when there is none."""
    composite = posterior(evidence.composite, evidence.prior_composite, evidence.groups)
    metric = posterior(evidence.metric, evidence.prior_metric, evidence.groups)
    passing = passed(composite, metric, gates, evidence.prior_composite)
    return int(np.argmax(np.where(passing, composite.mean, -np.inf))) if passing.any() else None


def passed(composite: Posterior, metric: Posterior, gates: Gates, prior: Prior) -> Bools:
    """bool[C]: which candidates pass both gates; `prior` is that of the composite."""
    first, second = quantiles(composite, metric, gates, prior)
    sure = (composite.mean >= first * composite.deviation) & (metric.mean >= second * metric.deviation)
    return np.asarray(sure & (composite.mean > 0), dtype=np.bool_)


def quantiles(composite: Posterior, metric: Posterior, gates: Gates, prior: Prior) -> tuple[Floats, Floats]:
    """float64[C] each: how many standard deviations each gate asks a mean to lie above 0."""
    alpha = np.where(prior.worth > 0, gates.composite, gates.composite / gates.untabled)
    return _quantile(alpha, composite.degrees), _quantile(np.full(len(alpha), gates.metric), metric.degrees)


def _quantile(tail: Floats, degrees: Floats) -> Floats:
    """float64[C]: what a standardised mean has to exceed, by Student's t."""
    return np.asarray(-stdtrit(degrees, tail), dtype=np.float64)


def folds(groups: Indices, seed: int) -> Indices:
    """int64[n]: the fold of each query; groups stay whole and are dealt by a seeded shuffle."""
    known, code = np.unique(groups, return_inverse=True)
    dealt: Indices = np.random.default_rng(seed).permutation(len(known)) % FOLDS
    return dealt[code]


def chosen_out_of_fold(evidence: Evidence, seed: int) -> list[tuple[Bools, int | None]]:
    """For every fold the queries in it, bool[n], and what `best` chooses without them."""
    fold = folds(evidence.groups, seed)
    parts = [fold == one for one in np.unique(fold)]
    return [(part, best(evidence.on(~part)) if (~part).any() else None) for part in parts]


def out_of_fold(rows: Mapping[int, Floats], choices: Sequence[tuple[Bools, int | None]], n: int) -> Floats:
    """float64[n]: the gain on every query of the candidate that was chosen without it; 0 where none was.

    `rows` holds the differences, float64[n], of the candidates that were chosen.
    """
    gains = np.zeros(n)
    for part, candidate in choices:
        if candidate is not None:
            gains[part] = rows[candidate][part]
    return gains


def shrinkage(differences: Floats, groups: Indices) -> float:
    """What is left of a gain for having been let through a gate: ``1 - 1/t^2`` of the sample's t, at least 0."""
    row = differences[None, :]
    mean = row.mean(axis=1, dtype=np.float64)
    _, error = _standard_errors(row, mean, groups)
    t = float(mean[0] / max(float(error[0]), LEAST))
    return 1.0 - 1.0 / t**2 if t > 1 else 0.0


def bound(metric: Matrix, groups: Indices) -> float:
    """X of "nothing found beats it by more than X": the largest upper end of a one-sided 95% interval, at least 0.

    It needs no correction for the number of candidates: the truly best one is one fixed candidate, and X is at
    least the upper end of its own interval.
    """
    mean = metric.mean(axis=1, dtype=np.float64)
    units, error = _standard_errors(metric, mean, groups)
    return max(0.0, float((mean + stdtrit(max(units - 1, 1), SURE) * error).max(initial=0.0)))
