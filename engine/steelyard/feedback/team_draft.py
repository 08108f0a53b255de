"""Team-draft interleaving: in a share of the searches, two rankings take turns in filling the list.

Each place then says which ranking placed its entry, so acts decide between the two without any model of
examination; and entries move between places, which shows how places are examined. Source: Radlinski, Kurup and
Joachims, CIKM 2008.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig, policy_of
from steelyard.results import SearchResult

T = TypeVar("T", bound=Hashable)
DIGITS = 4


@dataclass(frozen=True)
class Explore:
    """In which share of the searches another ranking is interleaved, and which one.

    A tenth identifies how places are examined, and costs nothing that could be measured; ConfigError for a share
    outside 0 to 1. `against` is the other configuration, by default the current one under weights drawn anew each
    time, halfway between its own and random ones. A seed of None gives other draws in every process.
    """

    share: float = 0.1
    against: SearchConfig | None = None
    seed: int | None = None
    _random: random.Random = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigError(f"the share {self.share} of searches to explore is not between 0 and 1")
        object.__setattr__(self, "_random", random.Random(self.seed))  # noqa: S311 -- no secret depends on it

    def draw(self, config: SearchConfig) -> SearchConfig | None:
        """The configuration to interleave with in this search; None in most of them."""
        if self._random.random() >= self.share:
            return None
        if self.against is not None:
            return self.against
        weights = config.strategy.weights
        drawn = [self._random.expovariate(1.0) for _ in weights]
        scale = sum(weights) / (sum(drawn) or 1.0)
        mixed = [round((a + scale * b) / 2, DIGITS) for a, b in zip(weights, drawn, strict=True)]
        return config.with_strategy(config.strategy.with_weights(mixed)) if mixed else None

    def coin(self) -> bool:
        """Who picks first."""
        return self._random.random() < 0.5


def draft_teams(
    first: Sequence[T], second: Sequence[T], length: int, coin: Callable[[], bool]
) -> list[tuple[T, bool]]:
    """Interleave two rankings: (entry, whether the first ranking placed it), best first.

    In each round a coin decides who picks first; each ranking then picks its best entry that is not in the list.

    >>> draft_teams("ab", "ba", 2, lambda: True)
    [('a', True), ('b', False)]
    """
    teams = [list(reversed(first)), list(reversed(second))]
    made: dict[T, bool] = {}
    while len(made) < length and any(teams):
        for team in (0, 1) if coin() else (1, 0):
            while teams[team] and teams[team][-1] in made:
                teams[team].pop()
            if teams[team] and len(made) < length:
                made[teams[team].pop()] = team == 0
    return list(made.items())


def drafted(
    own: SearchResult, theirs: SearchResult, config: SearchConfig, other: SearchConfig, coin: Callable[[], bool]
) -> SearchResult:
    """Two results of one query as one list, as long as the longer of them, that says who placed each hit.

    A hit keeps the score of the ranking that placed it; `SearchResult.behind` gives the result it is from.
    """
    both = [{hit.entry.id: hit for hit in result.hits} for result in (own, theirs)]
    order = draft_teams(list(both[0]), list(both[1]), max(map(len, both)), coin)
    hits = (replace(both[not first][name], rank=rank) for rank, (name, first) in enumerate(order, 1))
    names = {True: policy_of(config), False: policy_of(other)}
    placed = tuple(names[first] for _, first in order)
    return replace(own, hits=tuple(hits), explored=(other,), placed_by=placed, parts=(own, theirs))
