"""Which candidate replaces what is used today, if any: one rule for every command that chooses.

A candidate's true mean difference has a posterior (`differences.py`). `best` is the candidate of largest
posterior mean, likely better but unproven; those that are proven have passed the gates. What is expected of the
one that is named is one distribution (`Expectation`), from the gain out of fold: a sample on which a candidate
passes is a lucky one. How the numbers were found: docs/evidence/tuning.md.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import ndtri, stdtrit

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.config import LISTS, SearchConfig
from steelyard_eval.choose.blockers import misleads
from steelyard_eval.choose.differences import Posterior, Scored
from steelyard_eval.choose.public import PRIOR_QUERIES
from steelyard_eval.measures.paired import MARGIN
from steelyard_eval.measures.spread import ALPHA, MIN_STANDARD_ERROR, NO_GAIN, Gain, spread
from steelyard_eval.recording.provenance import FOLDS
from steelyard_eval.result.structs import Blocker

BOUND_CONFIDENCE = 0.95  # of the bound on what any candidate could gain
MAX_P_LOSS_TO_TRY = 0.2  # A candidate is worth trying where it is worse with at most this probability
MAX_P_LOSS_TO_SHIP = 0.1  # and ships where what is expected of it is a loss with at most this one
LEAST_GAIN = MARGIN / 2  # what has to be expected of a candidate that is worth trying
SMALLEST = 1e-12  # A difference of less is none
USUALLY_CHANGED = 0.6  # of queries have another value under what is chosen: docs/evidence/tuning.md
FEWEST_MORE = 10  # labelled queries: with fewer no answer changes but by chance
DEALS = 6  # ways to deal the folds; the mean over them is steadier than one
ERROR_FACTOR = 1.1  # of the error, which leaves out that the candidate was chosen
POSTERIOR_SHARE = 0.3  # of the candidate's posterior mean: folds choose on 4/5 of the labels and lose a little


@dataclass(frozen=True)
class GainPrior:
    """What is usually gained over one kind of configuration.

    `mean` is that of the true gains in nDCG@10 on public collections, `spread` one and a half times their
    standard deviation, for other collections lie further apart.
    """

    mean: float
    spread: float


OVER_SYSTEM = GainPrior(0.10, 0.13)
OVER_RETRIEVER = GainPrior(0.075, 0.10)
OVER_FUSION = GainPrior(0.02, 0.07)


def gain_prior_over(config: SearchConfig | None) -> GainPrior:
    """What is usually gained over a configuration; of lists alone as little is expected as over a fusion.

    >>> from steelyard.systems import find_system
    >>> [gain_prior_over(find_system(name).config(10)).mean for name in ("echovault", "bm25")]
    [0.1, 0.075]
    """
    if config is None or (config.system in ("plain", LISTS) and len(config.effective.retrievers) > 1):
        return OVER_FUSION
    return OVER_RETRIEVER if len(config.effective.retrievers) == 1 else OVER_SYSTEM


@dataclass(frozen=True)
class Expectation:
    """What to expect of unseen queries: the one estimator behind every gain, interval and odds that are printed.

    With n labelled queries, and a table of other collections that counts as w <= 10,

        folds = (n * mean gain out of fold + w * table) / (n + w)
        mean  = 0.7 * folds + 0.3 * posterior mean of the candidate
        error = 1.1 * the larger error of the gain out of fold and of the candidate's own, each pooled with the
                table's variance, * sqrt(n / (n + w))

    then both under the normal prior of what is usually gained, whose mean and deviation shrink with the share of
    queries that the candidate changes; Student's t with units - 1 + w degrees. On eleven collections its 95%
    intervals covered 97%: docs/evidence/tuning.md.

    `exact` gives the differences of one candidate, float64[n]; by default the matrix does. `same` says whether one
    is what is used today on another scale, which is no rival. `always`: every fold has a choice.
    """

    scored: Scored
    prior: GainPrior = OVER_FUSION
    seed: int = 0
    exact: Callable[[int], Floats] | None = None
    same: Callable[[int], bool] = lambda candidate: False
    always: bool = False
    _kept: dict[int, Gain] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def unseen(self) -> Floats:
        """float64[n]: the gain on each query of what is chosen without its fold, mean over several deals."""
        return gains_out_of_fold(self.scored, self.seed, self.always)

    def differences(self, candidate: int) -> Floats:
        """float64[n]: those of a candidate on the labelled queries."""
        if self.exact is not None:
            return self.exact(candidate)
        return np.asarray(self.scored.metric[candidate], dtype=np.float64)

    def share_changed(self, candidate: int) -> float:
        """The share of the labelled queries on which the metric has another value."""
        return float(np.mean(np.abs(self.differences(candidate)) > SMALLEST))

    def of(self, candidate: int) -> Gain:
        """The gain to expect of a candidate."""
        if candidate not in self._kept:
            self._kept[candidate] = self._of(candidate)
        return self._kept[candidate]

    def _of(self, candidate: int) -> Gain:
        scored, table = self.scored, self.scored.prior_metric
        known, n = float(table.effective_n[candidate]), len(self.unseen)
        folds, own = spread(self.unseen, scored.units), spread(self.differences(candidate), scored.units)
        share = n / (n + known)
        mean = share * float(folds.mean) + (1 - share) * float(table.mean[candidate])
        mean += POSTERIOR_SHARE * (float(scored.of_metric.mean[candidate]) - mean)
        between = n * max(float(folds.error), float(own.error)) ** 2
        if known and math.isfinite(between):
            between = (n * between + PRIOR_QUERIES * float(table.variance[candidate])) / (n + PRIOR_QUERIES)
        extra = np.broadcast_to(scored.extra_variance, table.mean.shape)[candidate]
        variance = ERROR_FACTOR**2 * (share * between / n + share**2 * float(extra))
        # A search that changes few results gains little, and loses little.
        part = min(self.share_changed(candidate) / USUALLY_CHANGED, 1.0)
        sample, usual = (1 / max(of, MIN_STANDARD_ERROR**2) for of in (variance, (part * self.prior.spread) ** 2))
        mean = (sample * mean + usual * part * self.prior.mean) / (sample + usual)
        return Gain.of(mean, (sample + usual) ** -0.5, max(folds.units - 1 + known, 1))


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
"""For all families, where labels are of queries drawn from a log: chosen by rule in docs/evidence/feedback.md."""


@dataclass(frozen=True)
class Ruling:
    """What to do with the current configuration."""

    verdict: Literal["ship", "try", "keep"]
    candidate: int | None  # the row that is shipped, or worth trying; None under keep
    gain: Gain  # what is expected of it on unseen queries (`Expectation`); 0 under keep
    bound: float  # no candidate beats the current configuration by more, with 95% confidence
    # labelled queries that would be needed beyond these: under try to prove the candidate if its gain is what it
    # seems, under keep to halve the bound. None under ship
    more: int | None
    blocker: Blocker | None = None  # under try, why no figures could make it ship
    # `more` if the gain were a standard error larger, and smaller: None of what never proves
    more_range: tuple[int | None, int | None] = (None, None)


def apply_rule(
    expect: Expectation,
    gates: Gates,
    find_blocker: Callable[[int], Blocker | None] = lambda candidate: None,
) -> Ruling:
    """Apply the rule to every labelled query: each serves to choose and, left out in its turn, to prove.

    `find_blocker` finds why the labels cannot carry a ship, if so. Ships the proven candidate of largest posterior
    mean where it gains out of fold, and more than its standard error on the labelled queries (over all families:
    out of fold, too), and a loss is unlikely; else tries that one. Where none is proven it tries the best one that
    is likely better, where folds gain. Of either enough has to be expected; else keeps what there is.
    """
    scored, gains = expect.scored, expect.unseen
    gainful = float(gains.mean()) > SMALLEST
    passing = passes_gates(scored, gates)
    if passing.any():
        chosen = int(np.argmax(np.where(passing, scored.of_composite.mean, -np.inf)))
        gain, blocker = expect.of(chosen), find_blocker(chosen)
        judged = [expect.differences(chosen), *([gains] if gates.require_cv_gain else [])]
        proven = gainful and all(shrinkage_factor(one, scored.units) > 0 for one in judged)
        unlikely = gain.worse is None or gain.worse <= MAX_P_LOSS_TO_SHIP
        if proven and unlikely and not expect.same(chosen) and not misleads(blocker):
            return Ruling("try" if blocker else "ship", chosen, gain, bound(scored), None, blocker)
        # Whatever folds say, which one query less deals anew: no ship turns to a keep by them.
        return try_decision(expect, gates, chosen, blocker)
    # Of the likely ones the best: else what just fails a gate could give way to one that is less likely.
    p_loss = np.maximum(scored.of_composite.p_loss(), scored.of_metric.p_loss())
    top = best(scored.of_composite, p_loss <= MAX_P_LOSS_TO_TRY)
    return (
        try_decision(expect, gates, top, find_blocker(top))
        if gainful and top is not None
        else keep_decision(scored)
    )


def keep_decision(scored: Scored, blocker: Blocker | None = None) -> Ruling:
    """What there is stays; `blocker`: because the labels mislead."""
    return Ruling("keep", None, NO_GAIN, bound(scored), 3 * scored.metric.shape[1], blocker)


def try_decision(expect: Expectation, gates: Gates, candidate: int, blocker: Blocker | None = None) -> Ruling:
    """A candidate as worth trying, where it is a rival and enough is expected of it; else what there is stays."""
    scored, gain = expect.scored, expect.of(candidate)
    if misleads(blocker) or expect.same(candidate) or gain.mean < LEAST_GAIN:
        return keep_decision(scored, blocker if misleads(blocker) else None)
    more, larger, smaller = (queries_to_prove(expect, gates, candidate, errors) for errors in (0, 1, -1))
    return Ruling("try", candidate, gain, bound(scored), more, blocker, (larger, smaller))


def queries_to_prove(expect: Expectation, gates: Gates, candidate: int, errors: int = 0) -> int | None:
    """How many more queries would prove it if means and spreads stay what they are; None where none would.

    `errors`: if the means were so many standard errors larger.
    """
    scored, n, gain = expect.scored, expect.scored.metric.shape[1], expect.of(candidate)
    of, known = scored.of_composite, float(scored.prior_composite.effective_n[candidate])
    deviation, error = float(of.deviation[candidate]), (gain.high - gain.mean) / float(-ndtri(ALPHA / 2))
    mean, expected = float(of.mean[candidate]) + errors * deviation, gain.mean + errors * error
    if min(mean, expected) <= 0:
        return None
    gate = (float(quantiles(scored, gates)[candidate]) * deviation / mean) ** 2 * (n + known)
    sure = (float(ndtri(MAX_P_LOSS_TO_SHIP)) * error / expected) ** 2 * (n + known)
    return int(max(FEWEST_MORE, math.ceil(max(gate, sure) - known) - n))


def best(of: Posterior, among: Bools | bool = True) -> int | None:
    """The candidate of largest posterior mean `among` some, unproven; None when none lies above 0."""
    means = np.where(among, of.mean, -np.inf)
    top = int(np.argmax(means))
    return top if means[top] > 0 else None


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
    t = float(sample.mean) / max(float(sample.error), MIN_STANDARD_ERROR)
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


def folds(units: Indices, seed: int) -> Iterator[Bools]:
    """bool[n] each: the queries of every fold of every deal; units stay whole and are dealt by a seeded shuffle.

    A deal of one unit has no folds.
    """
    known, code = np.unique(units, return_inverse=True)
    random = np.random.default_rng(seed)
    for _ in range(DEALS):
        fold = (random.permutation(len(known)) % FOLDS)[code]
        yield from (fold == number for number in np.unique(fold) if len(known) > 1)


def gains_out_of_fold(scored: Scored, seed: int, always: bool = False) -> Floats:
    """float64[n]: the gain on every query of the candidate that is best without its fold, mean over the deals.

    It is 0 in a deal where none gains, unless `always`.
    """
    gains = np.zeros(scored.metric.shape[1])
    for part in folds(scored.units, seed):
        top = int(np.argmax(means := scored.composite_means(~part)))
        if always or means[top] > 0:
            gains[part] += scored.metric[top, part].astype(np.float64)
    return gains / DEALS
