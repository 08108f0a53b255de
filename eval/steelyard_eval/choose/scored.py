"""What the rule works on: differences between candidates and what is used today, a column a labelled query.

==========  ==================  ===============================================================================
matrix      shape               what it is
==========  ==================  ===============================================================================
metric      float[C, n]         the metric that is reported, nDCG@10 as a rule, candidate - current
composite   float[C, n]         a steadier measure of the same thing, smoothed along the weights: `composite.py`
==========  ==================  ===============================================================================

Clicks, or the labels of a model, are a second measurement of the same differences: they move the columns of both
matrices and decide nothing by themselves (`second_measurement.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.choose.posterior import Posterior, PriorGains, posterior
from steelyard_eval.choose.second_measurement import SecondMeasurement
from steelyard_eval.measures.spread import Matrix, spread


@dataclass(frozen=True)
class Scored:
    """The two matrices on the labelled queries, what is known beforehand, and which queries vary together.

    Attributes
    ----------
    units : int64[n]
        Numbers what varies together; all different where queries are independent.
    second : SecondMeasurement or None
        Clicks on these and on other queries: the matrices are those that it has moved.
    share, share_composite : float
        How much of it was used, in each matrix.
    """

    metric: Matrix
    composite: Matrix
    prior_metric: PriorGains
    prior_composite: PriorGains
    units: Indices
    second: SecondMeasurement | None = None
    share: float = 0.0
    share_composite: float = 0.0

    @classmethod
    def of(
        cls,
        metric: Matrix,
        composite: Matrix,
        priors: tuple[PriorGains, PriorGains] | None = None,
        units: Indices | None = None,
        second: SecondMeasurement | None = None,
    ) -> Scored:
        """Without priors nothing is known but the labels; without units every query counts by itself."""
        known = priors or (PriorGains.none(len(metric)), PriorGains.none(len(metric)))
        numbers = np.arange(metric.shape[1]) if units is None else units
        if second is None:
            return cls(metric, composite, *known, numbers)
        shares = second.share(metric), second.share(composite)
        moved, smooth = second.adjusted(metric, shares[0]), second.adjusted(composite, shares[1])
        return cls(moved, smooth, *known, numbers, second, *shares)

    @property
    def extra_variance(self) -> Floats | float:
        """float64[C]: the variance of the metric's means that the second measurement of other queries adds."""
        return 0.0 if self.second is None else self.share**2 * self.second.variance

    def adjusted(self, candidate: int, differences: Floats) -> Floats:
        """float64[n]: exact differences of a candidate, moved as the matrix is."""
        return differences if self.second is None else self.second.move(candidate, differences, self.share)

    @cached_property
    def of_metric(self) -> Posterior:
        """Of every candidate's difference in the reported metric."""
        return posterior(spread(self.metric, self.units), self.prior_metric, self.extra_variance)

    @cached_property
    def of_composite(self) -> Posterior:
        """Of every candidate's difference in the composite, by which candidates are chosen."""
        extra = 0.0 if self.second is None else self.share_composite**2 * self.second.variance
        return posterior(spread(self.composite, self.units), self.prior_composite, extra)

    def of_composite_on(self, queries: Bools) -> Posterior:
        """The same on some of the queries alone, those where bool[n] is true."""
        return posterior(spread(self.composite[:, queries], self.units[queries]), self.prior_composite)

    def on(self, queries: Bools) -> Scored:
        """All of it on some of the queries, without the second measurement."""
        parts = self.metric[:, queries], self.composite[:, queries]
        return Scored(*parts, self.prior_metric, self.prior_composite, self.units[queries])

    def p_no_gain(self, candidate: int, differences: Floats) -> float:
        """The probability that a candidate gains nothing, by other differences of the metric, float64[n]."""
        prior = PriorGains(*(values[[candidate]] for values in vars(self.prior_metric).values()))
        return float(posterior(spread(differences[None, :], self.units), prior).p_loss()[0])
