"""Which candidate replaces what is used today, if any: one rule for every command that chooses.

A candidate's true mean difference has a posterior (`scored.py`). `best` is the candidate of largest posterior
mean, likely better but unproven; those that are proven have passed the gates. What is promised is a posterior,
too: a sample on which a candidate passes is a lucky one as a rule, so the gain out of fold starts from what
recommendations gained over such a configuration on public collections (`GainPrior`); its interval and odds are of
that distribution. How the numbers were found: docs/tuning.md. The experiment (`tests/benchmarks/evidence.py`)
runs the same code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.config.search_config import LISTS, SearchConfig
from steelyard_eval.choose.scored import Posterior, Scored
from steelyard_eval.measures.spread import LEAST, NO_GAIN, Gain, spread
from steelyard_eval.recording.record import FOLDS
from steelyard_eval.result.structs import Blocker

BOUND_CONFIDENCE = 0.95  # of the bound on what any candidate could gain
MAX_P_LOSS_TO_TRY = 0.2  # A candidate is worth trying where it is worse with at most this probability
SMALLEST = 1e-12  # A gain of less is none


MIN_QUERIES_TO_REPORT = 40  # labelled queries below which no gain is stated


@dataclass(frozen=True)
class GainPrior:
    """What is usually gained over one kind of configuration.

    `mean` is that of the true gains in nDCG@10 on public collections, `spread` one and a half times their
    standard deviation, for other collections lie further apart. A gain is stated from
    `min_queries_to_report` queries on: with fewer it was not kept on collections that nothing was chosen on.
    """

    mean: float
    spread: float
    min_queries_to_report: int


OVER_SYSTEM = GainPrior(0.10, 0.13, MIN_QUERIES_TO_REPORT)
OVER_RETRIEVER = GainPrior(0.075, 0.10, 100)
OVER_FUSION = GainPrior(0.02, 0.07, 200)


def gain_prior_over(config: SearchConfig | None) -> GainPrior:
    """What is usually gained over a configuration; of lists alone as little is expected as over a fusion.

    >>> from steelyard.systems import find_system
    >>> [gain_prior_over(find_system(name).config(10)).mean for name in ("echovault", "bm25")]
    [0.1, 0.075]
    """
    if config is None or (config.system in ("plain", LISTS) and len(config.effective.retrievers()) > 1):
        return OVER_FUSION
    return OVER_RETRIEVER if len(config.effective.retrievers()) == 1 else OVER_SYSTEM


def expected_gain(gains: Floats, units: Indices, prior: GainPrior) -> Gain:
    """What to expect of unseen queries, from the gain out of fold on each of these, float64[n].

    Mean and variance are those of a normal mean under a normal prior: each side is weighed by the inverse of its
    variance, that of the sample over units of queries.
    """
    found = spread(gains, units)
    sample, known = max(float(found.error), LEAST) ** -2, prior.spread**-2
    mean = (sample * float(found.mean) + known * prior.mean) / (sample + known)
    return Gain.of(mean, (sample + known) ** -0.5)


@dataclass(frozen=True)
class Gates:
    """How small the probability of a loss in the composite has to be for a candidate to ship.

    Where no other collection is known, Student's t is asked for `composite / no_prior_divisor` instead: the table
    is worth that much. `require_cv_gain` asks for a gain out of fold of more than its standard error, since other
    collections can mislead about this one.
    """

    composite: float
    no_prior_divisor: float
    require_cv_gain: bool = False


ONE_STRATEGY = Gates(composite=0.02, no_prior_divisor=2.0)
"""For the settings of one strategy, which are much alike."""
ALL_FAMILIES = Gates(composite=0.005, no_prior_divisor=5.0, require_cv_gain=True)
"""For all families together: what is current may already be the best of them."""
FROM_A_LOG = Gates(composite=0.03, no_prior_divisor=2.0)
"""For all families, where labels are of queries that were drawn from a log: chosen by rule in docs/feedback.md."""


@dataclass(frozen=True)
class Ruling:
    """What to do with the current configuration."""

    verdict: Literal["ship", "try", "keep"]
    candidate: int | None  # the row that is shipped, or worth trying; None under keep
    # The expected gain on unseen queries, its 95% interval and the odds that it is a loss (`expected_gain`), from
    # the gain of the whole procedure out of fold; 0 under keep
    gain: Gain
    bound: float  # no candidate beats the current configuration by more, with 95% confidence
    # labelled queries that would be needed beyond these: under try to prove the candidate if its gain is what it
    # seems, under keep to halve the bound. None under ship
    more: int | None
    blocker: Blocker | None = None  # under try, why no figures could make it ship


def decide(
    scored: Scored,
    gates: Gates,
    seed: int = 0,
    exact: Callable[[int], Floats] | None = None,
    prior: GainPrior = OVER_FUSION,
    find_blocker: Callable[[int], Blocker | None] = lambda candidate: None,
) -> Ruling:
    """Apply the rule to every labelled query: each serves to choose and, left out in its turn, to prove.

    `exact` gives the differences of one candidate, float64[n], for what is reported; by default the matrix does.
    `prior` is what the promise starts from; `find_blocker` finds why the labels cannot carry a ship, if so.
    Ships the proven candidate of largest posterior mean where it gains out of fold, and more than its standard
    error on the labelled queries (over all families: out of fold, too); else names the best one as worth trying
    where it is likely better, and gains out of fold; else keeps what there is.
    """
    row = exact or (lambda c: np.asarray(scored.metric[c], dtype=np.float64))
    composite, metric, passing = scored.of_composite, scored.of_metric, passes_gates(scored, gates)
    gains = gains_out_of_fold(scored, seed, row)
    gainful = float(gains.mean()) > SMALLEST
    expected = expected_gain(gains, scored.units, prior)
    if gainful and passing.any() and (not gates.require_cv_gain or shrinkage_factor(gains, scored.units) > 0):
        chosen = int(np.argmax(np.where(passing, composite.mean, -np.inf)))
        if shrinkage_factor(row(chosen), scored.units) > 0:
            blocker = find_blocker(chosen)
            return Ruling("try" if blocker else "ship", chosen, expected, bound(scored), None, blocker)
    top = best(composite)
    if gainful and top is not None and max(composite.p_loss()[top], metric.p_loss()[top]) <= MAX_P_LOSS_TO_TRY:
        more = queries_to_prove(scored, gates, top)
        return Ruling("try", top, expected, bound(scored), more, find_blocker(top))
    return keep_decision(scored)


def keep_decision(scored: Scored) -> Ruling:
    """What there is stays."""
    return Ruling("keep", None, NO_GAIN, bound(scored), 3 * scored.metric.shape[1])


def try_decision(scored: Scored, gates: Gates, candidate: int, decision: Ruling, gain: Gain) -> Ruling:
    """The same labels, with another candidate named as worth trying, of which another gain is expected."""
    more = queries_to_prove(scored, gates, candidate)
    return replace(decision, verdict="try", candidate=candidate, gain=gain, more=more)


def queries_to_prove(scored: Scored, gates: Gates, candidate: int) -> int | None:
    """How many more queries would carry the gate if means and spreads stay what they are."""
    n = scored.metric.shape[1]
    of, known = scored.of_composite, float(scored.prior_composite.effective_n[candidate])
    mean, deviation = float(of.mean[candidate]), float(of.deviation[candidate])
    if mean <= 0:
        return None
    needed = (float(quantiles(scored, gates)[candidate]) * deviation / mean) ** 2 * (n + known) - known
    return int(max(1, math.ceil(needed) - n))


def best(of: Posterior, always: bool = False) -> int | None:
    """The candidate of largest posterior mean, unproven; None when none lies above 0, unless `always`."""
    top = int(np.argmax(of.mean))
    return top if always or of.mean[top] > 0 else None


def passes_gates(scored: Scored, gates: Gates) -> Bools:
    """bool[C]: which candidates pass the gate."""
    of = scored.of_composite
    return np.asarray((of.mean >= quantiles(scored, gates) * of.deviation) & (of.mean > 0), dtype=np.bool_)


def quantiles(scored: Scored, gates: Gates) -> Floats:
    """float64[C]: how many standard deviations the gate asks a mean of the composite to lie above 0, by t."""
    known = scored.prior_composite.effective_n > 0
    alpha = np.where(known, gates.composite, gates.composite / gates.no_prior_divisor)
    return np.asarray(-stdtrit(scored.of_composite.degrees, alpha), dtype=np.float64)


def shrinkage_factor(differences: Floats, units: Indices) -> float:
    """What is left of a gain on the queries that it was chosen on: ``1 - 1 / t^2`` of the sample's t, or 0."""
    sample = spread(differences, units)
    t = float(sample.mean) / max(float(sample.error), LEAST)
    return 1.0 - 1.0 / t**2 if t > 1 else 0.0


def bound(scored: Scored) -> float:
    """X of "nothing found beats it by more than X": the largest upper end of a one-sided 95% interval, at least 0.

    It needs no correction for the number of candidates: the truly best one is one fixed candidate, and X is at
    least the upper end of its own interval.
    """
    sample = spread(scored.metric, scored.units)
    error = np.sqrt(sample.error**2 + scored.extra_variance)
    reach = stdtrit(max(sample.units - 1, 1), BOUND_CONFIDENCE) * error
    return max(0.0, float((sample.mean + reach).max(initial=0.0)))


def folds(units: Indices, seed: int) -> Indices:
    """int64[n]: the fold of each query; units stay whole and are dealt by a seeded shuffle."""
    known, code = np.unique(units, return_inverse=True)
    dealt: Indices = np.random.default_rng(seed).permutation(len(known)) % FOLDS
    return dealt[code]


def cross_validated_choices(
    scored: Scored, seed: int, choose: Callable[[Bools], int | None]
) -> list[tuple[Bools, int | None]]:
    """For every fold the queries in it, bool[n], and what is chosen on the others; None from one fold alone."""
    fold = folds(scored.units, seed)
    parts = [fold == number for number in np.unique(fold)]
    return [(part, None if part.all() else choose(~part)) for part in parts]


def gains_out_of_fold(scored: Scored, seed: int, row: Callable[[int], Floats], always: bool = False) -> Floats:
    """float64[n]: the gain on every query of the candidate that is best without its fold; 0 where none is.

    `row` gives the differences of a candidate, float64[n]; `always` is as for `best`.
    """
    choices = cross_validated_choices(scored, seed, lambda kept: best(scored.of_composite_on(kept), always))
    return gains_of_choices(choices, row, scored.metric.shape[1])


def gains_of_choices(choices: list[tuple[Bools, int | None]], row: Callable[[int], Floats], n: int) -> Floats:
    """float64[n]: the gain on every query of the candidate that was chosen without it; 0 where none was."""
    gains, rows = np.zeros(n), {chosen: row(chosen) for _, chosen in choices if chosen is not None}
    for part, chosen in choices:
        if chosen is not None:
            gains[part] = rows[chosen][part]
    return gains
