"""Which of two rankings that took turns was preferred, by whose entries were acted upon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import comb

from steelyard_eval.datasets.logs import LogLine
from steelyard_eval.learn.counts import NEGATIVE_KINDS
from steelyard_eval.measures.paired import exact_interval
from steelyard_eval.result.structs import Fact, Said

MOST_TEAMS = 1_000  # other rankings, and clients of one, that are told apart
LONGEST = 200  # characters of a strategy that a sentence has
SURE = 0.05  # the probability of so uneven a result between equals, below which one is preferred


@dataclass
class InterleavingResult:
    """Searches in which another ranking was drafted in, and who won them, in all and by client."""

    other: str
    wins: int = 0
    losses: int = 0
    ties: int = 0
    clients: dict[str, list[int]] = field(default_factory=dict)

    def add(self, balance: int, client: str) -> None:
        """Count a search: `balance` is above 0 where the other ranking won it."""
        self.wins += balance > 0
        self.losses += balance < 0
        self.ties += balance == 0
        if client in self.clients or len(self.clients) < MOST_TEAMS:
            counts = self.clients.setdefault(client, [0, 0, 0])
            counts[1 - (balance > 0) + (balance < 0)] += 1

    @property
    def decided(self) -> int:
        """Searches that one of the two won."""
        return self.wins + self.losses

    @property
    def p(self) -> float:
        """The two-sided probability of so uneven a result between equals.

        >>> InterleavingResult("x", wins=5).p
        0.0625
        """
        n, most = self.decided, max(self.wins, self.losses)
        return float(min(1.0, 2 * sum(comb(n, i) for i in range(most, n + 1)) / 2**n))

    @property
    def preferred(self) -> bool | None:
        """Whether the other ranking is preferred; None where that is not decided."""
        return self.wins > self.losses if self.p < SURE else None

    @property
    def share(self) -> dict[str, Fact]:
        """The share of the searches that the other ranking won, with its exact interval, where any was won."""
        low, high = exact_interval(self.wins, self.decided)
        return {"share": self.wins / self.decided, "low": low, "high": high, "decided": self.decided}


def count_turn(results: dict[str, InterleavingResult], line: LogLine) -> None:
    """Count an interleaved list with its acts: under the other ranking's name, and empty for all of them."""
    team = {hit.object_id: hit.interleaved for hit in line.hits if hit.interleaved}
    other = min(set(team.values()) - {line.policy}, default=None)
    if other is None:
        return
    liked = {act.object_id for act in line.actions or () if act.action_name not in NEGATIVE_KINDS}
    own = {hit.object_id for hit in line.hits} & liked
    balance = sum(1 if team.get(name) == other else -1 for name in own)
    for name in ("", other):
        if name in results or len(results) < MOST_TEAMS:
            results.setdefault(name, InterleavingResult(name)).add(balance, line.client_id)


def said_of_turns(result: InterleavingResult, configurations: Mapping[str, Mapping[str, object]]) -> Said:
    """Which of two interleaved rankings was preferred, and how sure that is; `configurations` are the log's."""
    strategy = str(configurations.get(result.other, {}).get("strategy", ""))[:LONGEST]
    facts: dict[str, Fact] = {"other": result.other or None, "all": not result.other, "strategy": strategy or None}
    if not result.decided:
        return Said("turns_untold", facts)
    facts |= {"wins": result.wins, **result.share}
    if result.preferred is None:
        return Said("turns_open", facts)
    sided = [won - lost for won, _, lost in result.clients.values() if won != lost]
    same = sum((side > 0) == result.preferred for side in sided)
    return Said("turns_preferred", {**facts, "not": not result.preferred, "same": same, "clients": len(sided)})
