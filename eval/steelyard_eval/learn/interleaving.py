"""The paired test of interleaving: whose entries were acted upon more often, in lists that two rankings drafted.

Each such search is a trial that one of the two wins, or that is tied. A client's repeated search of one day counts
once. Wins are compared by the exact two-sided sign test (Chapelle, Joachims, Radlinski and Yue, TOIS 2012).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import comb
from typing import Any

from steelyard_eval.datasets.log_schema import LogLine, decode
from steelyard_eval.datasets.logs import lines_of
from steelyard_eval.learn.acts import NEGATIVE_KINDS
from steelyard_eval.learn.reader import DAY
from steelyard_eval.learn.waiting import Waiting, token

MOST_TEAMS = 1_000
"""Other rankings that are told apart."""


@dataclass
class Duel:
    """Searches in which another ranking was drafted in, and who won them."""

    other: str
    wins: int = 0
    losses: int = 0
    ties: int = 0

    @property
    def p(self) -> float:
        """The two-sided probability of so uneven a result between equals.

        >>> Duel("x", wins=5).p
        0.0625
        """
        n, k = self.wins + self.losses, max(self.wins, self.losses)
        if n == 0:
            return 1.0
        return float(min(1.0, 2 * sum(comb(n, at) for at in range(k, n + 1)) / 2**n))

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values; `preferred` is the other ranking's share of the decided searches."""
        decided = self.wins + self.losses
        share = self.wins / decided if decided else None
        return {**vars(self), "preferred": share, "p": self.p}


def duels(path: str) -> list[Duel]:
    """The duels of a log, most frequent first, and under an empty name all of them together."""
    found = {"": Duel("")}
    for line in _lists(lines_of(path)):
        teams = {hit.interleaved for hit in line.hits if hit.interleaved}
        other = next(iter(sorted(teams - {line.policy})), None)
        if other is None:
            continue
        balance = _balance(line, other)
        duel = found.setdefault(other, Duel(other)) if len(found) < MOST_TEAMS else found[""]
        for one in {id(duel): duel, id(found[""]): found[""]}.values():
            one.wins += balance > 0
            one.losses += balance < 0
            one.ties += balance == 0
    return sorted(found.values(), key=lambda one: (-(one.wins + one.losses + one.ties), one.other))


def _balance(line: LogLine, other: str) -> int:
    """Acts that speak for entries of the other ranking, less those for the policy's own."""
    team = {hit.object_id: hit.interleaved for hit in line.hits}
    liked = {act.object_id for act in line.actions or () if act.action_name not in NEGATIVE_KINDS}
    return sum(1 if team[name] == other else -1 for name in liked & team.keys())


def _lists(raw: Iterable[tuple[int, bytes]]) -> Iterator[LogLine]:
    """The interleaved lists with the acts that were logged for them, each client's search of a day once."""
    seen: set[int] = set()
    waiting = Waiting()
    for number, one in raw:
        gone: Iterable[tuple[LogLine, int]] = ()
        try:
            line = decode(one)
            if not line.hits:
                gone = waiting.act(line, len(one))
        except (ValueError, KeyError):
            continue
        if any(hit.interleaved for hit in line.hits):
            key = token(line.client_id, line.user_query, int((line.seconds or 0.0) // DAY))
            if key not in seen:
                seen.add(key)
                gone = waiting.put(line, number, len(one)) if line.actions is None else [(line, number)]
        yield from (done for done, _ in gone)
    yield from (done for done, _ in waiting.rest())
