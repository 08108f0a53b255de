"""The paired test of interleaving: whose entries were acted upon more often, in lists that two rankings drafted.

Each such search is a trial that one of the two wins, or that is tied. A client's repeated search of one day counts
once. Wins are compared by the exact two-sided sign test (Chapelle, Joachims, Radlinski and Yue, TOIS 2012).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil, comb, sqrt
from pathlib import Path

from scipy.special import ndtri  # scipy.stats takes half a second to import

from steelyard_eval.common.documents.learn import DuelRecord
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets.logs import HeldLog, LogLine, decode, lines_of
from steelyard_eval.learn.acts import NEGATIVE_KINDS
from steelyard_eval.learn.clients import DAY
from steelyard_eval.learn.waiting import Waiting, token
from steelyard_eval.measures.paired import exact_interval

MOST_TEAMS = 1_000
"""Other rankings, and clients of one, that are told apart."""
LONGEST = 200
"""Characters of a strategy that a sentence has."""


SURE = 0.05
"""The probability of so uneven a result between equals, below which one is preferred."""
POWER = 0.8
"""With what probability the searches that are still needed would tell."""
WORTH = 0.1
"""Shares of the decided searches beyond a half that are worth telling apart: 60 to 40."""
MOST_CLIENTS = 20
"""Clients that are told of."""


@dataclass
class Duel:
    """Searches in which another ranking was drafted in, and who won them, in all and by client."""

    other: str
    wins: int = 0
    losses: int = 0
    ties: int = 0
    clients: dict[str, list[int]] = field(default_factory=dict)
    strategy: str = ""

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

        >>> Duel("x", wins=5).p
        0.0625
        """
        n, k = self.decided, max(self.wins, self.losses)
        if n == 0:
            return 1.0
        return float(min(1.0, 2 * sum(comb(n, i) for i in range(k, n + 1)) / 2**n))

    @property
    def preferred(self) -> bool | None:
        """Whether the other ranking is preferred; None where that is not decided."""
        return self.wins > self.losses if self.p < SURE else None

    @property
    def needed(self) -> int | None:
        """How many more searches would tell which is preferred; None where none was decided, which has no rate.

        That is at the share seen so far, or at 60% where it is nearer to a half; by the normal approximation of
        the test of one proportion (Fleiss, Levin and Paik, 2003, section 2.2).

        >>> Duel("x", wins=5, losses=5, ties=10).needed  # 194 decided ones at 60%, 10 of them seen, half are ties
        368
        """
        if self.preferred is not None or not self.decided:
            return 0 if self.decided else None
        beyond = max(abs(self.wins / self.decided - 0.5), WORTH)
        return max(1, ceil((_decided(beyond) - self.decided) * (self.decided + self.ties) / self.decided))

    def to_json(self) -> DuelRecord:
        """As plain JSON values; `preferred` is the other ranking's share of the decided searches."""
        share = self.wins / self.decided if self.decided else None
        low, high = exact_interval(self.wins, self.decided)
        shown = sorted(self.clients.items(), key=lambda item: (-sum(item[1]), item[0]))[:MOST_CLIENTS]
        return {
            "other": self.other,
            "strategy": self.strategy,
            "wins": self.wins,
            "ties": self.ties,
            "losses": self.losses,
            "preferred": share,
            "interval": [low, high],
            "p": self.p,
            "needed": self.needed,
            "clients": [
                {"client": name, "wins": wins, "ties": ties, "losses": losses}
                for name, (wins, ties, losses) in shown
            ],
            "sentence": self.sentence(),
        }

    def sentence(self) -> str:
        """Which ranking is preferred, how sure that is, and how many more searches would tell."""
        other = f"{self.other} ({self.strategy})" if self.strategy else self.other or "the other ranking"
        if not self.decided:
            return f"No search tells whether {other} is preferred: nothing that was shown was acted upon."
        low, high = exact_interval(self.wins, self.decided)
        share = f"it won {self.wins} of {self.decided} decided searches, {self.wins / self.decided:.0%}"
        about = f"{share} [95%: {low:.0%} to {high:.0%}]"
        if self.preferred is not None:
            verdict = f"{other} is preferred" if self.preferred else f"{other} is not preferred"
            return f"{verdict}: {about}; {self._agreeing()}."
        return f"Not decided yet about {other}: {about}; about {self.needed:,} more searches would tell."

    def _agreeing(self) -> str:
        sided = [won - lost for won, _, lost in self.clients.values() if won != lost]
        same = sum((side > 0) == (self.wins > self.losses) for side in sided)
        return f"{same} of {counted(len(sided), 'client')} agree"


def _decided(beyond: float) -> int:
    """Decided searches that tell a share that far from a half from a half."""
    spread = 0.5 * float(ndtri(1 - SURE / 2)) + sqrt(0.25 - beyond**2) * float(ndtri(POWER))
    return ceil((spread / beyond) ** 2)


def duels(path: str | Path | HeldLog) -> list[Duel]:
    """The duels of a log, most frequent first, and under an empty name all of them together."""
    rivals = {"": Duel("")}
    strategies: dict[str, str] = {}
    for line in _lists(lines_of(path), strategies):
        teams = {hit.interleaved for hit in line.hits if hit.interleaved}
        other = next(iter(sorted(teams - {line.policy})), None)
        if other is None:
            continue
        balance = _balance(line, other)
        duel = rivals.setdefault(other, Duel(other)) if len(rivals) < MOST_TEAMS else rivals[""]
        for contest in {id(duel): duel, id(rivals[""]): rivals[""]}.values():
            contest.add(balance, line.client_id)
    for name, duel in rivals.items():
        duel.strategy = strategies.get(name, "")
    return sorted(rivals.values(), key=lambda duel: (-(duel.decided + duel.ties), duel.other))


def _balance(line: LogLine, other: str) -> int:
    """Acts that speak for entries of the other ranking, less those for the policy's own."""
    team = {hit.object_id: hit.interleaved for hit in line.hits}
    liked = {act.object_id for act in line.actions or () if act.action_name not in NEGATIVE_KINDS}
    return sum(1 if team[name] == other else -1 for name in liked & team.keys())


def _lists(raw: Iterable[tuple[int, bytes]], strategies: dict[str, str]) -> Iterator[LogLine]:
    """The interleaved lists with the acts that were logged for them, each client's search of a day once.

    `strategies` takes those of the policies, as text.
    """
    seen: set[int] = set()
    waiting = Waiting()
    for number, encoded in raw:
        gone: Iterable[tuple[LogLine, int]] = ()
        try:
            line = decode(encoded)
            if not line.hits:
                gone = waiting.act(line, len(encoded))
        except (ValueError, KeyError):
            continue
        if line.configuration is not None and len(strategies) < MOST_TEAMS:
            strategies[line.policy] = str(line.configuration.get("strategy", ""))[:LONGEST]
        if any(hit.interleaved for hit in line.hits):
            key = token(line.client_id, line.user_query, int((line.seconds or 0.0) // DAY))
            if key not in seen:
                seen.add(key)
                gone = waiting.put(line, number, len(encoded)) if line.actions is None else [(line, number)]
        yield from (done for done, _ in gone)
    yield from (done for done, _ in waiting.rest())
