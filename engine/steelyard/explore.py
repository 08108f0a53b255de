"""Team-draft interleaving: in a share of the searches, two rankings take turns in filling the list.

Each place then says which ranking placed its entry, so acts decide between the two without any model of
examination; and entries move between places, which shows how places are examined. Source: Radlinski, Kurup and
Joachims, CIKM 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


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
