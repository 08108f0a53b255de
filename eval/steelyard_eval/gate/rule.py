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
For lists that end at place 10, A is nDCG@10. Error rates of the rule: docs/gate.md.

The power in closed form: under a true drop the t statistic follows Student's noncentral distribution, whose
noncentrality is the drop over the standard error. The errors are those of the differences that are seen, and no
less than those of a typical change: one that moved hardly anything says nothing about a drop. The tests on A and
on nDCG@10 are of the same lists and are taken to move together, so the rule fails as often as the rarer of two
tests that have to agree.

Beyond ranking: false answers are paired by query, and of those whose answer came or went the share that came is
tested against a half (the sign test, one-sided); so are lists that show what is stale. What a floor loses is held
against what it promised when it was found.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import bdtrc, nctdtr, ndtri, stdtr, stdtrit

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.measures.judgments import Ranked, recall_loss
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.measures.paired import TIE
from steelyard_eval.measures.spread import MIN_STANDARD_ERROR, spread
from steelyard_eval.result.structs import Fact, Finding

ALPHA = 0.05
AGREES = 0.1  # of the test on nDCG@10 beside that on A: what loses only in the depth is not blocked
ALPHA_ALONE = 0.02  # of the test on nDCG@10, for changes that gain in the depth what they lose in front
SMALL = 0.01  # A smaller drop of nDCG@10 is not blocked by the test
BUDGET = 0.04  # the drop of nDCG@10 that is accepted unproven; it parts pass from inconclusive and nothing else
BOUND = 0.90
SHALLOW = 10  # places of a list that users see
NDCG10, NDCG100 = Measure("nDCG", SHALLOW), Measure("nDCG", 100)
NAMES = (str(NDCG10), str(NDCG100), "gain@100")  # the three values, in the order of `Values.matrix`
EXTRA_QUERY = 0.35  # A difference that one more query, outside the sample, may show; the bound is measured with it


@dataclass(frozen=True)
class Values:
    """float64[3, Q]: nDCG@10, nDCG@100 and the geometric gain; `deep` when a list has more than 10 places."""

    matrix: Floats
    deep: bool

    @property
    def ndcg(self) -> Floats:
        """float64[Q]: nDCG@10."""
        ndcg: Floats = self.matrix[0]
        return ndcg


def composite(matrix: Floats, deep: bool) -> Floats:
    """float64[..., Q]: the mean of the three values (or differences) in float64[..., 3, Q]; nDCG@10 if shallow."""
    mean: Floats = matrix.mean(axis=-2) if deep else matrix[..., 0, :]
    return mean


@dataclass(frozen=True)
class Findings:
    """What the rule finds; bounds and errors are infinite for a single unit."""

    ndcg: float  # mean difference over queries of nDCG@10
    composite: float  # and of A
    errors: tuple[float, float]  # their standard errors
    free: int  # degrees of freedom, the units less one
    p_worse: float  # one-sided p values of the t test on A
    p_better: float
    p_ndcg: float  # of nDCG@10 being worse
    upper: float  # one-sided 90% bound of the drop of nDCG@10
    limit: float  # the drop of A from which on its test has p < .05
    fails: bool  # whether the change is blocked
    within: bool  # whether the bound lies within the budget
    better: bool  # whether A is significantly better

    @property
    def passes(self) -> bool:
        """Whether it passes; what neither fails nor passes is inconclusive."""
        return not self.fails and (self.within or self.better)

    @property
    def verdict(self) -> Literal["fail", "pass", "inconclusive"]:
        """fail, pass or inconclusive."""
        return "fail" if self.fails else "pass" if self.passes else "inconclusive"

    @property
    def decided_by(self) -> str:
        """What decided: test, budget, better, or nothing."""
        names = {"test": self.fails, "better": self.better, "budget": self.within}
        return next((name for name, decided in names.items() if decided), "nothing")


def judge(ndcg: Floats, composite: Floats, unit: Indices | None = None, budget: float = BUDGET) -> Findings:
    """Apply the rule to the differences, now minus before, of nDCG@10 and of A: float64[n] each.

    `unit` int64[n] numbers what varies together; by default each query. A single unit has p = 1.

    >>> worse = np.array([-0.5, -0.4, 0.0, -0.6, -0.3, 0.0, -0.5, -0.4])
    >>> judge(worse, worse).verdict
    'fail'
    """
    found = spread(np.stack([ndcg, composite]), unit)
    (front, whole), (error, error_of_a) = found.mean.tolist(), found.error.tolist()
    free = found.units - 1
    p_worse, p_better = _tails(whole, error_of_a, free)
    p_ndcg, _ = _tails(front, error, free)
    unseen = EXTRA_QUERY * found.units / found.queries / math.sqrt(max(free, 1) * (free + 1))
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


MIN_DETECTION_RATE = 0.5
TYPICAL = (0.18, 0.14)
"""Standard deviations of the differences of nDCG@10 and of A under a change that lowers nDCG@10 by .05: as of 74
regressions that were planted in contenders on starter, workshop, cacm and locomo (.17 to .20, and .13 to .17)."""
FOLLOWS = 0.8  # how much A falls with nDCG@10: by .7 to .86 of it under the same regressions


@dataclass(frozen=True)
class Power:
    """The shares that the rule blocks: of changes that lower nDCG@10 by a drop, and of those that do not."""

    detection_rate: float
    false_alarms: float

    @property
    def low(self) -> bool:
        """Whether the gate would miss most drops."""
        return self.detection_rate < MIN_DETECTION_RATE


def power_of(findings: Findings, drop: float, deep: bool) -> Power:
    """The power statement on a change with the errors that were found; A is nDCG@10 where lists are not `deep`."""
    return Power(blocked(findings, drop, deep), blocked(findings, 0.0, deep))


def blocked(findings: Findings, drop: float, deep: bool) -> float:
    """The share that the rule fails of changes whose true drop of nDCG@10 is `drop`; 0 for a single unit."""
    if not findings.free:
        return 0.0
    of_a, follows = (TYPICAL[1], FOLLOWS) if deep else (TYPICAL[0], 1.0)
    least = math.sqrt(findings.free + 1)
    error = max(findings.errors[0], TYPICAL[0] / least)
    error_of_a = max(findings.errors[1], of_a / least)

    def falls(alpha: float) -> float:  # below its quantile, and by more than is small
        return _below(findings.free, drop / error, max(-float(stdtrit(findings.free, alpha)), SMALL / error))

    whole = _below(findings.free, follows * drop / error_of_a, -float(stdtrit(findings.free, ALPHA)))
    return max(min(whole, falls(AGREES)), falls(ALPHA_ALONE))


def _below(free: int, away: float, reach: float) -> float:
    """How often a t statistic whose mean lies `away` below 0, in standard errors, is below -reach."""
    return float(1 - nctdtr(free, away, reach))


def sign_test_increase(
    key: str, now: Collection[str], before: Collection[str], total: int, budget: float
) -> Finding:
    """The finding on queries of which fewer are better, such as those that nothing answers; `total` at least 1.

    fail: more came than went, p < .05. pass: no more came than went, or the 90% bound of the rise of their share
    lies within the budget. inconclusive: anything else.
    """
    came, went = len(set(now) - set(before)), len(set(before) - set(now))
    rise, moved = (came - went) / total, came + went
    p = float(bdtrc(came - 1, moved, 0.5)) if came else 1.0
    error = math.sqrt(max(moved - (came - went) ** 2 / total, 0.0)) / total
    within = rise + float(ndtri(BOUND)) * error <= budget
    fails, passes = came > went and p < ALPHA, came <= went or within
    facts: dict[str, Fact] = {"now": len(now), "of": total, "before": len(before)}
    facts |= {"p": p if came > went else None, "budget": None if fails or passes else budget}
    return Finding(key, facts, verdict="fail" if fails else "pass" if passes else "inconclusive")


def kept_promise(promise: float, lost: Sequence[float], unit: Indices) -> Finding:
    """The finding on what a floor loses, float64[n] of the queries that have something to lose.

    fail: its mean is above the promise, p < .05 of Student's one-sided test over units. inconclusive: it is above,
    as any mean of a single unit.
    """
    values = np.asarray(lost, dtype=np.float64)
    found = spread(values, unit)
    mean, error = float(found.mean), max(float(found.error), MIN_STANDARD_ERROR)
    p = float(stdtr(found.units - 1, (promise - mean) / error)) if found.units > 1 else 1.0
    facts: dict[str, Fact] = {"lost": mean, "promise": promise}
    verdict: Literal["pass", "fail"] = "pass" if mean <= promise else "fail"
    return Finding("gate_lost", facts, verdict=verdict if verdict == "pass" or p < ALPHA else "inconclusive")


def promised(provenance: Mapping[str, Any]) -> float | None:
    """The share that a floor promised to lose at most, by its weights file; None where it promised nothing."""
    claims = provenance.get("floor", {}).get("claims", ())
    shares = [claim.get("share") for claim in claims if isinstance(claim, Mapping) and claim.get("name") == "lost"]
    return next((float(share) for share in shares if isinstance(share, int | float)), None)


def losses(total: Ranked, shown: Ranked, qrels: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Query -> the share of the relevant entries of its list that the floor drops, where there are any.

    Both are lists of the same queries and entries, without the floor and with it.
    """
    places, left = (ranked.query * len(total.entries) + ranked.entry for ranked in (total, shown))
    rows = np.flatnonzero(total.relevant(qrels))
    query = total.query[rows]
    shares = recall_loss(query, ~np.isin(places[rows], left)[:, None])[:, 0]
    return {total.queries[q]: share for q, share in zip(np.unique(query).tolist(), shares.tolist(), strict=True)}
