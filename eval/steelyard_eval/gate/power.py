"""How far the gate can be trusted on these labels: its power and its false alarms, in closed form.

A change that lowers nDCG@10 by a drop has t statistics that follow Student's noncentral distribution, whose
noncentrality is the drop over the standard error. The errors are those of the differences that are seen, and no
less than those of a typical change: one that moved hardly anything says nothing about a drop. The tests on A and
on nDCG@10 are taken to move together, since both values are of the same lists, so the rule fails as often as the
rarer of two tests that have to agree. Both shares are near the truth and no bounds (docs/gate.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import nctdtr, stdtrit

from steelyard_eval.gate.rule import AGREES, ALPHA, ALPHA_ALONE, SMALL, Findings

MIN_DETECTION_RATE = 0.5
TYPICAL = (0.18, 0.14)
"""Standard deviations of the differences of nDCG@10 and of A under a change that lowers nDCG@10 by .05: as of 74
regressions that were planted in contenders on starter, workshop, cacm and locomo (.17 to .20, and .13 to .17)."""
FOLLOWS = 0.8
"""How much A falls with nDCG@10: by .7 to .86 of it under the same regressions."""


@dataclass(frozen=True)
class Power:
    """The shares that the rule blocks: of changes that lower nDCG@10 by `drop`, and of those that do not."""

    drop: float
    detection_rate: float
    false_alarms: float

    @property
    def low(self) -> bool:
        """Whether the gate would miss most drops."""
        return self.detection_rate < MIN_DETECTION_RATE


def power_of(found: Findings, drop: float, deep: bool) -> Power:
    """The power statement on a change with the errors that were found; A is nDCG@10 where lists are not `deep`."""
    return Power(drop, blocked(found, drop, deep), blocked(found, 0.0, deep))


def blocked(found: Findings, drop: float, deep: bool) -> float:
    """The share that the rule fails of changes whose true drop of nDCG@10 is `drop`; 0 for a single unit."""
    if not found.free:
        return 0.0
    of_a, follows = (TYPICAL[1], FOLLOWS) if deep else (TYPICAL[0], 1.0)
    least = math.sqrt(found.free + 1)
    error = max(found.errors[0], TYPICAL[0] / least)
    error_of_a = max(found.errors[1], of_a / least)

    def falls(alpha: float) -> float:  # below its quantile, and by more than is small
        return _below(found.free, drop / error, max(-float(stdtrit(found.free, alpha)), SMALL / error))

    whole = _below(found.free, follows * drop / error_of_a, -float(stdtrit(found.free, ALPHA)))
    return max(min(whole, falls(AGREES)), falls(ALPHA_ALONE))


def _below(free: int, away: float, reach: float) -> float:
    """How often a t statistic whose mean lies `away` below 0, in standard errors, is below -reach."""
    return float(1 - nctdtr(free, away, reach))
