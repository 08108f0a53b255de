"""What another policy would have been worth, where a log has the probability of what was shown.

*IPS* weighs every show by the other policy's probability over the logged one; *SNIPS* divides by the sum of these
weights instead of the number of shows (Swaminathan and Joachims, NeurIPS 2015); *DR* starts from a model of the
reward and corrects it by what was seen (Dudik, Langford and Li, ICML 2011). All three need overlap: where weights
are few and huge, none of them means anything, and the answer is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.learn.counts import sums

LEAST_EFFECTIVE = 100.0
"""Shows that the weighted ones have to be worth."""
MEAN_WEIGHT = (0.8, 1.25)
"""Where the policies overlap, weights have a mean of 1."""
RESAMPLES = 2_000
SURE = (0.025, 0.975)
SHRUNK = 200.0
"""Shows that the mean reward counts as in the model of an item's reward."""


@dataclass(frozen=True)
class Value:
    """A value with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class OffPolicy:
    """The estimates, and whether they can be believed.

    Attributes
    ----------
    of : str, what was shown and what is estimated.
    ips, snips, dr : the estimates; None where they were not made.
    effective : the shows that the weighted ones are worth, (sum of weights)^2 over the sum of their squares.
    mean_weight, largest : of the weights.
    shows : number of logged shows.
    refusal : why none of it means anything; empty where it does.
    """

    of: str
    ips: Value | None
    snips: Value | None
    dr: Value | None
    effective: float
    mean_weight: float
    largest: float
    shows: int
    refusal: str

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


def refusal_of(effective: float, mean_weight: float) -> str:
    """Why weights cannot be believed; empty where they can."""
    if effective < LEAST_EFFECTIVE:
        needed = f"{LEAST_EFFECTIVE:.0f} are needed; log more exploration"
        return f"the weighted shows are worth {effective:.0f}, and {needed}"
    low, high = MEAN_WEIGHT
    if not low <= mean_weight <= high:
        return f"the weights have a mean of {mean_weight:.2f} instead of 1, so the policies do not overlap"
    return ""


def estimate(
    reward: Floats, weight: Floats, item: Indices, target: Floats, of: str = "", seed: int = 0
) -> OffPolicy:
    """The value of a policy from the log of another.

    Parameters
    ----------
    reward : float64[n], what each show brought.
    weight : float64[n], the target's probability of the show over the logged one.
    item : int64[n], what was shown.
    target : float64[items], the target's probability of each item, for the doubly robust estimate.
    seed : of resampling and of the two folds of the reward model.
    """
    rng = np.random.default_rng(seed)
    model, expected = _cross_fitted(reward, item, target, rng)
    corrected = expected + weight * (reward - model)
    effective = float(weight.sum() ** 2 / max(float((weight**2).sum()), 1e-300))
    mean = float(weight.mean())
    product = weight * reward
    return OffPolicy(
        of=of,
        ips=_value(lambda at: product[at].mean(), len(reward), rng),
        snips=_value(lambda at: product[at].sum() / max(weight[at].sum(), 1e-300), len(reward), rng),
        dr=_value(lambda at: corrected[at].mean(), len(reward), rng),
        effective=effective,
        mean_weight=mean,
        largest=float(weight.max()),
        shows=len(reward),
        refusal=refusal_of(effective, mean),
    )


def _value(statistic: Callable[[Indices], Any], n: int, rng: np.random.Generator) -> Value:
    """A statistic of the shows with its percentile interval."""
    drawn = [float(statistic(rng.integers(0, n, n))) for _ in range(RESAMPLES)]
    low, high = np.quantile(drawn, SURE)
    return Value(float(statistic(np.arange(n))), float(low), float(high))


def _cross_fitted(
    reward: Floats, item: Indices, target: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """float64[n] each: the modelled reward of what was shown, and of the target; fitted on the other fold."""
    fold = rng.integers(0, 2, len(reward))
    model, expected = np.zeros(len(reward)), np.zeros(len(reward))
    for one in (0, 1):
        others = fold != one
        base = float(reward[others].mean()) if others.any() else 0.0
        done, shows = (
            sums(item[others], reward[others], len(target)),
            np.bincount(item[others], minlength=len(target)),
        )
        each = (done + SHRUNK * base) / (shows + SHRUNK)
        model[~others], expected[~others] = each[item[~others]], float(target @ each)
    return model, expected
