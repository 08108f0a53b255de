"""What a restriction costs in quality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.candidates.restriction import Restriction
from steelyard_eval.choose.gain_prior import GainPrior, expected_gain
from steelyard_eval.choose.rule import gains_out_of_fold
from steelyard_eval.choose.scored import Scored
from steelyard_eval.common.answer import Conclusion, Step
from steelyard_eval.common.documents.parts import ExpectedGain, FavouriteRecord, RestrictionRecord
from steelyard_eval.common.markup import in_range, number
from steelyard_eval.decide.promise import Gain
from steelyard_eval.decide.steps import WEIGHTS, beside, exporting
from steelyard_eval.measures.spread import spread


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

    def to_json(self) -> FavouriteRecord:
        """For the document."""
        expected = self.expected
        low, high = expected.stated(-1.0)
        gain = ExpectedGain(value=expected.mean, low=low, high=high, harm=expected.worse)
        return {"formula": self.formula, "gain": gain}


@dataclass(frozen=True)
class RestrictionCost:
    """What a restriction costs: the best without it beside the best with it, by the same estimator."""

    restriction: Restriction
    without: BestCandidate
    within: BestCandidate
    units: Indices
    metric: str
    counts: tuple[int, int]
    lost: str
    """Why what is used today is not among what may be chosen; empty where it is."""

    @property
    def change(self) -> Gain:
        """The gain that is given up: the difference of the two, as sure as the paired differences are."""
        apart = self.without.gains - self.within.gains
        error = float(spread(apart, self.units).error)
        return Gain.of(self.without.expected.mean - self.within.expected.mean, error)

    def sentence(self) -> str:
        """The whole of it in words."""
        kept, of = self.counts
        today = f"; what you use today is none of them: {self.lost}" if self.lost else ""
        lead = f"Only what {self.restriction} was a candidate ({kept:,} of {of:,}){today}."
        if not (self.without.gains - self.within.gains).any():
            return f"{lead} The restriction costs nothing: the same would be chosen without it."
        change, free = self.change, self.without
        low, high, within, without = (
            number(in_range(value), signed=True)
            for value in (change.low, change.high, self.within.expected.mean, free.expected.mean)
        )
        if change.mean <= 0:
            return f"{lead} The restriction shows no cost: the choice without it is expected to do no better."
        cost = f"The restriction costs {change.mean:.3f} {self.metric} (95% sure of {low} to {high})"
        return f"{lead} {cost}: {within} expected with it, {without} without, by {free.formula}."

    def beside(self, answer: Conclusion, verdict: str) -> Conclusion:
        """An answer with the cost below it, and the command that writes what was chosen for the target."""
        steps, kept_out = answer.steps, verdict == "keep" and bool(self.lost)  # what is used cannot be written
        if to := self.restriction.target:
            path = beside(WEIGHTS) if kept_out or verdict not in ("ship", "keep") else WEIGHTS
            what = f"if it has to be {to}, write the best that it expresses" if kept_out else f"write it for {to}"
            settling = () if verdict == "ship" else steps[-1:]  # it is searched there, not here
            steps = (Step(what, exporting(path, to)), *settling)
        instead = kept_out and answer.formula
        above = "The formula above is the best that may be chosen." if instead else ""
        return replace(answer, steps=steps, beside=" ".join(filter(None, (answer.beside, above, self.sentence()))))

    def to_json(self) -> RestrictionRecord:
        """For the document."""
        restriction, change = self.restriction, self.change
        low, high = change.stated(-1.0)
        return {
            "target": restriction.target or None,
            "latency_ms": restriction.latency,
            "embedding_calls_of_100": restriction.embedding_calls,
            "candidates": self.counts[0],
            "of": self.counts[1],
            "current": self.lost or None,
            "without": self.without.to_json(),
            "with": self.within.to_json(),
            "cost": {"metric": self.metric, "value": change.mean, "low": low, "high": high},
            "sentence": self.sentence(),
        }
