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

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtr, stdtrit

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.measures.paired import TIE
from steelyard_eval.measures.spread import spread

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
class Findings:
    """What the rule finds.

    Attributes
    ----------
    ndcg, composite : mean differences over queries of nDCG@10 and of A.
    errors : the standard errors of both; inf for a single unit.
    free : degrees of freedom, the units less one.
    p_worse, p_better : one-sided p values of the t test on A; `p_ndcg` that of nDCG@10 being worse.
    upper : one-sided 90% bound of the drop of nDCG@10; inf for a single unit.
    limit : the drop of A from which on its test has p < .05; inf for a single unit.
    fails : whether the change is blocked.
    within, better : whether the bound lies within the budget, and A is significantly better.
    """

    ndcg: float
    composite: float
    errors: tuple[float, float]
    free: int
    p_worse: float
    p_better: float
    p_ndcg: float
    upper: float
    limit: float
    fails: bool
    within: bool
    better: bool

    @property
    def passes(self) -> bool:
        """Whether it passes; what neither fails nor passes is inconclusive."""
        return not self.fails and (self.within or self.better)

    @property
    def verdict(self) -> Literal["fail", "pass", "inconclusive"]:
        """fail, pass or inconclusive."""
        return "fail" if self.fails else "pass" if self.passes else "inconclusive"

    @property
    def reason(self) -> str:
        """What decided: test, budget, better, or nothing."""
        names = {"test": self.fails, "better": self.better, "budget": self.within}
        return next((name for name, decided in names.items() if decided), "nothing")


def judge(ndcg: Floats, composite: Floats, unit: Indices | None = None, budget: float = BUDGET) -> Findings:
    """Apply the rule to the differences, now minus before, of nDCG@10 and of A: float64[n] each.

    `unit` int64[n] numbers what varies together; without it every query is its own. A single unit proves nothing:
    p is 1.

    >>> worse = np.array([-0.5, -0.4, 0.0, -0.6, -0.3, 0.0, -0.5, -0.4])
    >>> judge(worse, worse).verdict
    'fail'
    """
    found = spread(np.stack([ndcg, composite]), unit)
    (front, whole), (error, error_of_a) = found.mean.tolist(), found.error.tolist()
    free = found.units - 1
    p_worse, p_better = _tails(whole, error_of_a, free)
    p_ndcg, _ = _tails(front, error, free)
    unseen = UNSEEN * found.units / found.queries / math.sqrt(max(free, 1) * (free + 1))
    upper = _reach(BOUND, math.hypot(error, unseen), free) - front
    return Findings(
        ndcg=front,
        composite=whole,
        errors=(error, error_of_a),
        free=free,
        p_worse=p_worse,
        p_better=p_better,
        p_ndcg=p_ndcg,
        upper=upper,
        limit=_reach(1 - ALPHA, error_of_a, free),
        fails=((p_worse < ALPHA and p_ndcg < AGREES) or p_ndcg < ALPHA_ALONE) and front < -SMALL,
        within=upper < budget,
        better=p_better < ALPHA,
    )


def _tails(mean: float, error: float, free: int) -> tuple[float, float]:
    """One-sided p values of the t test, worse and better; 1 and 1 where nothing moved or nothing varies."""
    if free < 1 or (abs(mean) <= TIE and error <= TIE):
        return 1.0, 1.0
    t = mean / error if error else math.copysign(math.inf, mean)
    return float(stdtr(free, t)), float(stdtr(free, -t))


def _reach(level: float, error: float, free: int) -> float:
    """How far a one-sided bound lies from its mean; inf for a single unit."""
    return float(stdtrit(free, level)) * error if free else math.inf
