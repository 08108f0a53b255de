"""The signals that a data set offers, from which each family makes the strategies that `recommend` starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ADDED, TOGETHER = 0.1, 0.5
"""The weight of whatever is added to a sum whose weights sum to 1, and the most of all that is added."""


@dataclass(frozen=True)
class Available:
    """Lists and signals that tell entries apart here.

    Attributes
    ----------
    lists : mapping of str to float
        The lists that are fused, with their weights in a sum.
    further : tuple of str
        Lists that are added to them, such as that of the graph.
    tiers : mapping of str to tuple of str
        The lists that may answer alone, each with those that answer where it finds too little.
    layers : tuple of str
        The layers of vectors.
    facts, factors : tuple of str
        Signals that are derived from facts, as expressions write them: to be added to a score, and to multiply it.
    intents : tuple of str
        The intents that enough queries have.
    """

    lists: Mapping[str, float]
    further: tuple[str, ...] = ()
    tiers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    layers: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()

    @property
    def additions(self) -> list[tuple[str, ...]]:
        """Nothing, and each further list."""
        return [(), *((name,) for name in self.further)]

    @property
    def fused(self) -> list[str]:
        """The lists as terms, then with each further one."""
        return [", ".join((*self.lists, *more)) for more in self.additions] if len(self.lists) > 1 else []

    @property
    def sums(self) -> list[str]:
        """The weighted sums of the same."""
        return [self.sum_with(*more) for more in self.additions] if len(self.lists) > 1 else []

    def sum_with(self, *more: str) -> str:
        """The weighted sum of the lists, with more signals in it."""
        terms = [f"{weight:.4g}*{name}" for name, weight in self.lists.items()]
        terms += [f"{min(ADDED, TOGETHER / len(more)):.4g}*{name}" for name in more]
        return f"weighted_sum({', '.join(terms)}, normalize=minmax)"
