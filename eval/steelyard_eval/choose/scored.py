"""Which candidate replaces the current configuration, if any: one rule for every command that chooses.

It works on matrices of paired differences between candidates and the current configuration, one column a labelled
query, so that the experiment (`tests/benchmarks/evidence.py`) and the product run the same code.

==========  ==================  ===============================================================================
matrix      shape               what it is
==========  ==================  ===============================================================================
metric      float[C, n]         the metric that is reported, nDCG@10 as a rule, candidate - current
composite   float[C, n]         a steadier measure of the same thing, smoothed along the weights: `composite.py`
==========  ==================  ===============================================================================

Clicks, or the labels of a model, are a second measurement of the same differences: they move the columns of both
matrices and decide nothing by themselves (`prediction_powered.py`).

A candidate's true mean difference has a posterior (`posterior.py`). `best` is the candidate of largest posterior
mean, likely better but unproven; those that are proven have `passed` the gate. How the numbers were found:
docs/tuning.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.choose.posterior import Posterior, PriorGains, posterior
from steelyard_eval.choose.second_measurement import SecondMeasurement
from steelyard_eval.measures.spread import LEAST, Matrix, spread

SURE = 0.95
"""Of the bound on what any candidate could gain."""


@dataclass(frozen=True)
class Gates:
    """How small the probability of a loss in the composite has to be for a candidate to ship.

    Where no other collection is known, Student's t is asked for `composite / untabled` instead: the table is worth
    that much. `folded` asks for a gain out of fold of more than its standard error, since other collections can
    mislead about this one.
    """

    composite: float
    untabled: float
    folded: bool = False


ONE_STRATEGY = Gates(composite=0.02, untabled=2.0)
"""For the settings of one strategy, which are much alike."""
ALL_FAMILIES = Gates(composite=0.005, untabled=5.0, folded=True)
"""For all families together: what is current may already be the best of them."""
FROM_A_LOG = Gates(composite=0.03, untabled=2.0)
"""For all families, where labels are of queries that were drawn from a log: chosen by rule in docs/feedback.md."""


@dataclass(frozen=True)
class Evidence:
    """The two matrices on the labelled queries, what is known beforehand, and which queries vary together.

    Attributes
    ----------
    groups : int64[n]
        Numbers the groups; all different where queries are independent.
    second : SecondMeasurement or None
        Clicks on these and on other queries: the matrices are those that it has moved.
    share, share_composite : float
        How much of it was used, in each matrix.
    """

    metric: Matrix
    composite: Matrix
    prior_metric: PriorGains
    prior_composite: PriorGains
    groups: Indices
    second: SecondMeasurement | None = None
    share: float = 0.0
    share_composite: float = 0.0

    @classmethod
    def of(
        cls,
        metric: Matrix,
        composite: Matrix,
        priors: tuple[PriorGains, PriorGains] | None = None,
        groups: Indices | None = None,
        second: SecondMeasurement | None = None,
    ) -> Evidence:
        """Without priors nothing is known but the labels; without groups every query counts by itself."""
        known = priors or (PriorGains.none(len(metric)), PriorGains.none(len(metric)))
        numbers = np.arange(metric.shape[1]) if groups is None else groups
        if second is None:
            return cls(metric, composite, *known, numbers)
        shares = second.share(metric), second.share(composite)
        moved, smooth = second.adjusted(metric, shares[0]), second.adjusted(composite, shares[1])
        return cls(moved, smooth, *known, numbers, second, *shares)

    @property
    def beyond(self) -> Floats | float:
        """float64[C]: the variance of the metric's means that the second measurement of other queries adds."""
        return 0.0 if self.second is None else self.share**2 * self.second.variance

    def moved(self, candidate: int, differences: Floats) -> Floats:
        """float64[n]: exact differences of a candidate, moved as the matrix is."""
        return differences if self.second is None else self.second.move(candidate, differences, self.share)

    @cached_property
    def of_metric(self) -> Posterior:
        """Of every candidate's difference in the reported metric."""
        return posterior(spread(self.metric, self.groups), self.prior_metric, self.beyond)

    @cached_property
    def of_composite(self) -> Posterior:
        """Of every candidate's difference in the composite, by which candidates are chosen."""
        beyond = 0.0 if self.second is None else self.share_composite**2 * self.second.variance
        return posterior(spread(self.composite, self.groups), self.prior_composite, beyond)

    def of_composite_without(self, queries: Bools) -> Posterior:
        """Of every candidate's difference in the composite, without the queries where bool[n] is true."""
        return posterior(spread(self.composite[:, ~queries], self.groups[~queries]), self.prior_composite)

    def on(self, queries: Bools) -> Evidence:
        """The evidence on some of the queries: those where bool[n] is true."""
        kept = self.metric[:, queries], self.composite[:, queries]
        return Evidence(*kept, self.prior_metric, self.prior_composite, self.groups[queries])


def best(evidence: Evidence) -> int | None:
    """The candidate of largest posterior mean of the composite, unproven; None when none lies above 0."""
    return likeliest(evidence.of_composite)


def likeliest(of: Posterior, always: bool = False) -> int | None:
    """The candidate of largest posterior mean; None when none lies above 0, unless `always`."""
    top = int(np.argmax(of.mean))
    return top if always or of.mean[top] > 0 else None


def passed(evidence: Evidence, gates: Gates) -> Bools:
    """bool[C]: which candidates pass the gate."""
    composite = evidence.of_composite
    return np.asarray(
        (composite.mean >= quantiles(evidence, gates) * composite.deviation) & (composite.mean > 0), dtype=np.bool_
    )


def quantiles(evidence: Evidence, gates: Gates) -> Floats:
    """float64[C]: how many standard deviations the gate asks a mean of the composite to lie above 0, by t."""
    alpha = np.where(evidence.prior_composite.worth > 0, gates.composite, gates.composite / gates.untabled)
    return np.asarray(-stdtrit(evidence.of_composite.degrees, alpha), dtype=np.float64)


def shrinkage(differences: Floats, groups: Indices) -> float:
    """What is left of a gain on the queries that it was chosen on: ``1 - 1 / t^2`` of the sample's t, or 0."""
    sample = spread(differences, groups)
    t = float(sample.mean) / max(float(sample.error), LEAST)
    return 1.0 - 1.0 / t**2 if t > 1 else 0.0


def doubt(evidence: Evidence, candidate: int, differences: Floats) -> float:
    """The probability that a candidate gains nothing, by other differences of the metric, float64[n]."""
    prior = PriorGains(*(values[[candidate]] for values in vars(evidence.prior_metric).values()))
    return float(posterior(spread(differences[None, :], evidence.groups), prior).harm()[0])


def bound(metric: Matrix, groups: Indices, beyond: Floats | float = 0.0) -> float:
    """X of "nothing found beats it by more than X": the largest upper end of a one-sided 95% interval, at least 0.

    It needs no correction for the number of candidates: the truly best one is one fixed candidate, and X is at
    least the upper end of its own interval. `beyond` is what `Evidence.beyond` says.
    """
    sample = spread(metric, groups)
    reach = stdtrit(max(sample.units - 1, 1), SURE) * np.sqrt(sample.error**2 + beyond)
    return max(0.0, float((sample.mean + reach).max(initial=0.0)))
