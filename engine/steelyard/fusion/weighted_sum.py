"""The weighted sum of normalised signals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.fusion.available import Available
from steelyard.fusion.base import Linear
from steelyard.fusion.sums import NormalizedSum


@dataclass(frozen=True)
class WeightedSum(NormalizedSum):
    """``sum of weight * normalize(signal)``; a signal that did not return the entry adds 0."""

    keyword: ClassVar[str] = "weighted_sum"
    shown_as: ClassVar[str] = "weighted sum"
    common: ClassVar[bool] = True
    unwritten: ClassVar[float | None] = None

    @classmethod
    def starts(cls, there: Available) -> dict[str, list[str]]:
        """Sums of the lists, and sums with signals that are derived from facts: all of them, then each."""
        facts = [there.sum_with(*there.facts), *map(there.sum_with, there.facts)] if there.facts else []
        graph = [there.sum_with(*more, *there.facts) for more in there.additions[1:] if facts]
        return {cls.shown_as: there.sums, "all signals": list(dict.fromkeys([*facts, *graph]))}

    def describe(self) -> Linear:
        """Describe it as the linear sum that it is."""
        return Linear("", self.terms, self.normalize)

    def _written(self) -> list[str]:
        return [] if self.normalize == "none" else super()._written()
