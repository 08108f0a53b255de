"""What another policy would have been worth, where a log has the probability of what was shown.

*IPS* weighs every show by the other policy's probability over the logged one; *SNIPS* divides by the sum of these
weights instead of the number of shows (Swaminathan and Joachims, NeurIPS 2015); *DR* starts from a model of the
reward and corrects it by what was seen (Dudik, Langford and Li, ICML 2011). All three need overlap: where weights
are few and huge, none of them means anything, and the answer is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

LEAST_EFFECTIVE = 100.0
"""Shows that the weighted ones have to be worth."""
MEAN_WEIGHT = (0.8, 1.25)
"""Where the policies overlap, weights have a mean of 1."""


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


def refusal_of(effective: float, mean_weight: float) -> str:
    """Why weights cannot be believed; empty where they can."""
    if effective < LEAST_EFFECTIVE:
        needed = f"{LEAST_EFFECTIVE:.0f} are needed; log more exploration"
        return f"the weighted shows are worth {effective:.0f}, and {needed}"
    low, high = MEAN_WEIGHT
    if not low <= mean_weight <= high:
        return f"the weights have a mean of {mean_weight:.2f} instead of 1, so the policies do not overlap"
    return ""
