"""What a restriction costs in quality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.candidates.restriction import Restriction
from steelyard_eval.choose.gain_prior import GainPrior, expected_gain
from steelyard_eval.choose.rule import gains_out_of_fold
from steelyard_eval.choose.scored import Scored
from steelyard_eval.common.markup import in_range
from steelyard_eval.measures.gain import Gain
from steelyard_eval.measures.spread import spread
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Fact, Said


@dataclass(frozen=True)
class BestCandidate:
    """The best of some candidates: as it is written, and what it gains out of fold, float64[n]."""

    formula: str
    gains: Floats
    expected: Gain

    @classmethod
    def of(
        cls,
        formula: str,
        scored: Scored,
        seed: int,
        row: Callable[[int], Floats],
        prior: GainPrior,
        always: bool = False,
    ) -> BestCandidate:
        """By the estimator of every promise; `always` where what is used today cannot be kept."""
        gains = gains_out_of_fold(scored, seed, row, always)
        return cls(formula, gains, expected_gain(gains, scored.units, prior))


@dataclass(frozen=True)
class RestrictionCost:
    """What a restriction costs: the best without it beside the best with it, by the same estimator."""

    restriction: Restriction
    without: BestCandidate
    within: BestCandidate
    units: Indices
    metric: str
    counts: tuple[int, int]
    not_allowed: Said | None
    """Why what is used today is not among what may be chosen; None where it is."""

    @property
    def change(self) -> Gain:
        """The gain that is given up: the difference of the two, as sure as the paired differences are."""
        apart = self.without.gains - self.within.gains
        error = float(spread(apart, self.units).error)
        return Gain.of(self.without.expected.mean - self.within.expected.mean, error)

    def said(self) -> Said:
        """The whole of it."""
        kept, of = self.counts
        why = None if self.not_allowed is None else say(self.not_allowed)
        facts: dict[str, Fact] = {**self.restriction.facts, "kept": kept, "of": of, "not_allowed": why}
        if not (self.without.gains - self.within.gains).any():
            return Said("restricted_free", facts)
        if (change := self.change).mean <= 0:
            return Said("restricted_no_cost", facts)
        gains = {"within": self.within.expected.mean, "without": self.without.expected.mean}
        ends = {"cost": change.mean, "low": change.low, "high": change.high}
        in_range_of = {name: in_range(value) for name, value in (gains | ends).items()}
        facts |= {**in_range_of, "metric": self.metric, "best": self.without.formula}
        return Said("restricted", facts)
