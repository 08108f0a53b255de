"""The rule of the gate, on paired per-query differences: fail, pass or inconclusive. The file to read first.

The composite A of a query is the mean of three values of its list: nDCG@10, nDCG@100 and the geometric gain. It
moves more often than nDCG@10 alone, so a real decline shows earlier.

fail          the mean nDCG@10 drops by more than .01, and the one-sided t test has p < .05 on A and p < .1
              on nDCG@10, or p < .02 on nDCG@10
pass          the one-sided 90% upper bound of the nDCG@10 drop lies below the budget,
              or A is significantly better
inconclusive  anything else

So the limit of a drop follows its spread: A may fall by 1.7 standard errors with 40 queries. A fixed limit catches
more of the drops with a wide spread, and blocks as many more of the changes that are neither better nor worse.
Lists that end at 10 have nDCG@10 alone as A. How often the rule blocks what is as good and catches what is worse:
docs/gate.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.measures.statistics import TIE

ALPHA = 0.05
AGREES = 0.1
"""Of the test on nDCG@10 beside that on A: what loses only in the depth is not blocked."""
ALPHA_ALONE = 0.02
"""Of the test on nDCG@10, for changes that gain in the depth what they lose in front."""
SMALL = 0.01
"""A smaller drop of nDCG@10 is not blocked by the test."""
BUDGET = 0.04
"""The drop of nDCG@10 that is accepted unproven; it parts pass from inconclusive and nothing else."""
BOUND = 0.90
UNSEEN = 0.35
"""A difference that one more query, outside the sample, may show; the bound is measured with it."""


@dataclass(frozen=True)
class Changes:
    """Differences, now minus before, summed within the U units that vary together; float64[..., U] each.

    Attributes
    ----------
    ndcg, composite : sums of the differences of nDCG@10 and of A over the queries of each unit.
    counts : queries of each unit.
    """

    ndcg: Floats
    composite: Floats
    counts: Floats

    @classmethod
    def of(cls, ndcg: Floats, composite: Floats, unit: Indices | None = None) -> Changes:
        """Sum float64[..., n] differences by their unit, int64[n]; without units every query is its own."""
        if unit is None:
            return cls(ndcg, composite, np.ones(ndcg.shape[-1]))
        order = np.argsort(unit, kind="stable")
        begin = np.flatnonzero(np.diff(unit[order], prepend=-1))
        a, b = (np.add.reduceat(differences[..., order], begin, axis=-1) for differences in (ndcg, composite))
        return cls(a, b, np.bincount(unit).astype(np.float64))


@dataclass(frozen=True)
class Findings:
    """What the rule finds of each row of changes; float64[...] each.

    Attributes
    ----------
    ndcg, composite : mean differences over queries.
    p_worse, p_better : one-sided p values of the t test on A; `p_ndcg` that of nDCG@10 being worse.
    upper : one-sided 90% bound of the drop of nDCG@10.
    limit : the drop of A from which on its test has p < .05; inf for a single unit.
    fails : bool[...], which rows are blocked.
    within, better : bool[...], whether the bound lies within the budget, and A is significantly better.
    """

    ndcg: Floats
    composite: Floats
    p_worse: Floats
    p_better: Floats
    p_ndcg: Floats
    upper: Floats
    limit: Floats
    fails: Bools
    within: Bools
    better: Bools

    @property
    def passes(self) -> Bools:
        """Which rows pass; what neither fails nor passes is inconclusive."""
        return ~self.fails & (self.within | self.better)

    @property
    def verdict(self) -> str:
        """fail, pass or inconclusive, of a single row."""
        return "fail" if self.fails else "pass" if self.passes else "inconclusive"

    @property
    def reason(self) -> str:
        """What decided, of a single row: test, budget, better, or nothing."""
        names = {"test": self.fails, "better": self.better, "budget": self.within}
        return next((name for name, decided in names.items() if decided), "nothing")


def judge(changes: Changes, budget: float = BUDGET) -> Findings:
    """Apply the rule to each row of changes.

    The mean is over queries, its variance that of the ratio of sums over counts of units (Cochran, Sampling
    Techniques, 3rd ed., 6.3), with the units less one as degrees of freedom. A single unit proves nothing: p is 1.

    >>> worse = np.array([-0.5, -0.4, 0.0, -0.6, -0.3, 0.0, -0.5, -0.4])
    >>> judge(Changes.of(worse, worse)).verdict
    'fail'
    """
    free = changes.counts.shape[-1] - 1
    ndcg, spread = _mean(changes.ndcg, changes.counts)
    composite, error = _mean(changes.composite, changes.counts)
    p_worse, p_better = _tails(composite, error, free)
    p_ndcg, _ = _tails(ndcg, spread, free)
    unseen = UNSEEN / changes.counts.mean(axis=-1) / np.sqrt(max(free, 1) * (free + 1))
    upper = -ndcg + _reach(BOUND, np.hypot(spread, unseen), free)
    return Findings(
        ndcg=ndcg,
        composite=composite,
        p_worse=p_worse,
        p_better=p_better,
        p_ndcg=p_ndcg,
        upper=upper,
        limit=_reach(1 - ALPHA, error, free),
        fails=((p_worse < ALPHA) & (p_ndcg < AGREES) | (p_ndcg < ALPHA_ALONE)) & (ndcg < -SMALL),
        within=upper < budget,
        better=p_better < ALPHA,
    )


def _mean(sums: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """The mean over queries and its standard error over units; the error is 0 for a single unit."""
    units = counts.shape[-1]
    mean = sums.sum(axis=-1) / counts.sum(axis=-1)
    pulls = (sums - mean[..., None] * counts) / counts.mean(axis=-1)[..., None]
    squares = ((pulls - pulls.mean(axis=-1)[..., None]) ** 2).sum(axis=-1)
    return mean, np.sqrt(squares / max(units - 1, 1) / units)


def _tails(mean: Floats, error: Floats, free: int) -> tuple[Floats, Floats]:
    """One-sided p values of the t test, worse and better; 1 and 1 where nothing moved or nothing varies."""
    still = (np.abs(mean) <= TIE) & (error <= TIE)
    if free < 1:
        return np.ones_like(mean), np.ones_like(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(still, 0.0, mean / error)
    worse, better = stdtr(free, t), stdtr(free, -t)
    return np.where(still, 1.0, worse), np.where(still, 1.0, better)


def _reach(level: float, error: Floats, free: int) -> Floats:
    """How far a one-sided bound lies from its mean; inf for a single unit."""
    return np.asarray(stdtrit(free, level) * error if free else np.full_like(error, np.inf), dtype=np.float64)
