"""The decision of the rule on one set of labelled queries: ship, try or keep, and what to expect of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from steelyard.base.arrays import Floats
from steelyard_eval.choose.blockers import Refusal
from steelyard_eval.choose.folds import gains_out_of_fold
from steelyard_eval.choose.scored import (
    Evidence,
    Gates,
    best,
    bound,
    passed,
    quantiles,
    shrinkage,
)
from steelyard_eval.decide.promise import NO_GAIN, OVER_FUSION, Gain, Usual, promise

Verdict = Literal["ship", "try", "keep"]
LIKELY = 0.2
"""A candidate is worth trying where it is worse with at most this probability."""
SMALLEST = 1e-12
"""A gain of less is none."""


@dataclass(frozen=True)
class Decision:
    """What to do with the current configuration.

    Attributes
    ----------
    verdict : ship, try or keep.
    candidate : int or None
        The row that is shipped, or worth trying; None under keep.
    gain : Gain
        The expected gain on unseen queries, its 95% interval and the odds that it is a loss (`promise`), from the
        gain of the whole procedure out of fold. 0 under keep.
    bound : float
        No candidate beats the current configuration by more, with 95% confidence.
    more : int or None
        Labelled queries that would be needed beyond these: under try to prove the candidate if its gain is what it
        seems, under keep to halve the bound. None under ship.
    refusal : Refusal or None
        Under try, why no figures could make it ship.
    """

    verdict: Verdict
    candidate: int | None
    gain: Gain
    bound: float
    more: int | None
    refusal: Refusal | None = None


def decide(
    evidence: Evidence,
    gates: Gates,
    seed: int = 0,
    exact: Callable[[int], Floats] | None = None,
    usual: Usual = OVER_FUSION,
    refuse: Callable[[int], Refusal | None] = lambda candidate: None,
) -> Decision:
    """Apply the rule to every labelled query: each serves to choose and, left out in its turn, to prove.

    `exact` gives the differences of one candidate, float64[n], for what is reported; by default the matrix does.
    `usual` is what the promise starts from, and `refuse` tells why the labels cannot carry a ship, if so.
    Ships the proven candidate of largest posterior mean where it gains out of fold, and more than its standard
    error on the labelled queries (over all families: out of fold, too); else names the best one as worth trying
    where it is likely better, and gains out of fold; else keeps what there is.
    """
    row = exact or (lambda c: np.asarray(evidence.metric[c], dtype=np.float64))
    composite, metric = evidence.of_composite, evidence.of_metric
    passing = passed(evidence, gates)
    limit = bound(evidence.metric, evidence.groups, evidence.beyond)
    gains = gains_out_of_fold(evidence, seed, row)
    gainful = float(gains.mean()) > SMALLEST
    expected = promise(gains, evidence.groups, usual)
    if gainful and passing.any() and (not gates.folded or shrinkage(gains, evidence.groups) > 0):
        chosen = int(np.argmax(np.where(passing, composite.mean, -np.inf)))
        if shrinkage(row(chosen), evidence.groups) > 0:
            refusal = refuse(chosen)
            verdict: Verdict = "try" if refusal else "ship"
            return Decision(verdict, chosen, expected, limit, None, refusal)
    top = best(evidence)
    if gainful and top is not None and np.maximum(composite.harm(), metric.harm())[top] <= LIKELY:
        more = _to_prove(evidence, gates, top)
        return Decision("try", top, expected, limit, more, refuse(top))
    return kept(evidence)


def kept(evidence: Evidence) -> Decision:
    """What there is stays."""
    most = bound(evidence.metric, evidence.groups, evidence.beyond)
    return Decision("keep", None, NO_GAIN, most, 3 * evidence.metric.shape[1])


def tried(evidence: Evidence, gates: Gates, candidate: int, decision: Decision, gain: Gain) -> Decision:
    """The same labels, with another candidate named as worth trying, of which another gain is expected."""
    more = _to_prove(evidence, gates, candidate)
    return replace(decision, verdict="try", candidate=candidate, gain=gain, more=more)


def _to_prove(evidence: Evidence, gates: Gates, candidate: int) -> int | None:
    """How many more queries would carry the gate if means and spreads stay what they are."""
    n = evidence.metric.shape[1]
    of, worth = evidence.of_composite, float(evidence.prior_composite.worth[candidate])
    mean, deviation = float(of.mean[candidate]), float(of.deviation[candidate])
    if mean <= 0:
        return None
    needed = (float(quantiles(evidence, gates)[candidate]) * deviation / mean) ** 2 * (n + worth) - worth
    return int(max(1, math.ceil(needed) - n))
