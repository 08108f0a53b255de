"""What a policy of open-bandit would have earned, estimated from the log of another, beside its own rate.

    .venv/bin/python tests/benchmarks/open_bandit.py feedback.csv.gz

The file is that of Saito et al. (NeurIPS 2021), with the columns campaign, policy, item_id, click, propensity. The
click rate of `random`, the uniform policy, is estimated from the log of `bts`.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.common.documents.learn import OffPolicyRecord, PolicyValue
from steelyard_eval.learn.logged import refusal_of
from steelyard_eval.learn.tally import sums
from steelyard_eval.measures.statistics import normal_interval

RESAMPLES = 2_000
SURE = (0.025, 0.975)
SHRUNK = 200.0
"""Shows that the mean reward counts as in the model of an item's reward."""


def campaigns(path: Path) -> list[dict[str, Any]]:
    """A record a campaign: the target's own rate, and its estimates from the other policy's log."""
    rows = pd.read_csv(path, usecols=["campaign", "policy", "item_id", "click", "propensity"])
    found = []
    for name, own in rows.groupby("campaign"):
        logged, target = (own[own.policy == policy] for policy in ("bts", "random"))
        every = np.unique(own.item_id)
        uniform = np.isin(every, target.item_id) / target.item_id.nunique()
        place = np.searchsorted(every, logged.item_id)
        clicks = logged.click.to_numpy(dtype=np.float64)
        made = estimate(clicks, uniform[place] / logged.propensity.to_numpy(), place, uniform, "random from bts")
        rate = float(target.click.mean())
        around = normal_interval(rate, float(np.sqrt(rate * (1 - rate) / len(target))))
        rates = {"value": rate, "low": around.low, "high": around.high}
        found.append({"campaign": name, "own": rates, "estimated": made})
    return found


def estimate(
    reward: Floats, weight: Floats, item: Indices, target: Floats, of: str = "", seed: int = 0
) -> OffPolicyRecord:
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
    return {
        "of": of,
        "ips": _value(lambda at: product[at].mean(), len(reward), rng),
        "snips": _value(lambda at: product[at].sum() / max(weight[at].sum(), 1e-300), len(reward), rng),
        "dr": _value(lambda at: corrected[at].mean(), len(reward), rng),
        "effective": effective,
        "mean_weight": mean,
        "largest": float(weight.max()),
        "shows": len(reward),
        "refusal": refusal_of(effective, mean),
    }


def _value(statistic: Callable[[Indices], Any], n: int, rng: np.random.Generator) -> PolicyValue:
    """A statistic of the shows with its percentile interval."""
    drawn = [float(statistic(rng.integers(0, n, n))) for _ in range(RESAMPLES)]
    low, high = np.quantile(drawn, SURE)
    return {"value": float(statistic(np.arange(n))), "low": float(low), "high": float(high)}


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


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(json.dumps(campaigns(Path(argument)), indent=2))
