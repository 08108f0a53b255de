"""A log matched to a recording, and which of two rankings that took turns was preferred.

What is learned from a list are its entries, their places and what was done with them, whatever engine made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import comb
from pathlib import Path

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.datasets.logs import HeldLog, LogLine, decode, lines_of
from steelyard_eval.learn.counts import NEGATIVE_KINDS, PositionCounts
from steelyard_eval.learn.reader import Log
from steelyard_eval.learn.searches import DAY, Waiting, token
from steelyard_eval.learn.top10 import LoggedPairs

MOST_TEAMS = 1_000  # other rankings, and clients of one, that are told apart
LONGEST = 200  # characters of a strategy that a sentence has
SURE = 0.05  # the probability of so uneven a result between equals, below which one is preferred


@dataclass(frozen=True)
class MatchedImpressions:
    """The counts of a log, matched to queries and entries of a recording; M keys."""

    # policy, query, fold, entry, place: int64[M]
    policy: Indices
    # mixed, largest: bool[M] `Log.columns`; `entry` is -1 for one that is in no recording,
    # `query` for one that was not recorded
    mixed: Bools
    query: Indices
    fold: Indices
    largest: Bools
    entry: Indices
    place: Indices
    shown: Floats  # float64[M]
    acts: Floats  # float64[M, A]

    @classmethod
    def of(cls, log: Log, query_of: Indices, entry_of: Indices) -> MatchedImpressions:
        """Translate a log's numbers: `query_of` to queries of a recording, `entry_of` to its entries.

        Both are int64, -1 for what it lacks; the last of `entry_of` stands for unknown entries.
        """
        policy, mixed, query, fold, largest, entry, place = log.columns
        return cls(
            policy,
            mixed > 0,
            query_of[query],
            fold,
            largest > 0,
            entry_of[entry],
            place,
            log.tally.shown,
            log.tally.acts,
        )

    @property
    def known(self) -> Bools:
        """bool[M]: whose query and entry are known."""
        return np.asarray((self.query >= 0) & (self.entry >= 0), dtype=np.bool_)

    @property
    def listless(self) -> bool:
        """Whether every list is one entry that was acted upon: a tally, such as Soleri keeps, and no lists."""
        acted = self.acts.sum(axis=1) >= self.shown - 1e-9
        return bool(len(acted)) and bool(acted.all()) and not self.place.any()

    def cells(self, pairs: LoggedPairs, part: Bools | slice = slice(None)) -> PositionCounts:
        """The counts, or a part of them, by rows of the pairs."""
        row = pairs.find(self.query[part], self.entry[part])
        return PositionCounts.of(pairs, row, self.place[part], self.shown[part], self.acts[part])


@dataclass
class InterleavingResult:
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

        >>> InterleavingResult("x", wins=5).p
        0.0625
        """
        n, most = self.decided, max(self.wins, self.losses)
        return float(min(1.0, 2 * sum(comb(n, i) for i in range(most, n + 1)) / 2**n))

    @property
    def preferred(self) -> bool | None:
        """Whether the other ranking is preferred; None where that is not decided."""
        return self.wins > self.losses if self.p < SURE else None


def interleaving_results(path: str | Path | HeldLog) -> list[InterleavingResult]:
    """The results of a log, most frequent first, and under an empty name all of them together."""
    rivals = {"": InterleavingResult("")}
    strategies: dict[str, str] = {}
    for line in _lists(path, strategies):
        teams = {hit.interleaved for hit in line.hits if hit.interleaved}
        other = next(iter(sorted(teams - {line.policy})), None)
        if other is None:
            continue
        balance = _balance(line, other)
        known = other in rivals or len(rivals) < MOST_TEAMS
        own = [rivals.setdefault(other, InterleavingResult(other))] if known else []
        for result in (*own, rivals[""]):
            result.add(balance, line.client_id)
    for name, result in rivals.items():
        result.strategy = strategies.get(name, "")
    return sorted(rivals.values(), key=lambda result: (-(result.decided + result.ties), result.other))


def _balance(line: LogLine, other: str) -> int:
    """Acts that speak for entries of the other ranking, less those for the policy's own."""
    team = {hit.object_id: hit.interleaved for hit in line.hits}
    liked = {act.object_id for act in line.actions or () if act.action_name not in NEGATIVE_KINDS}
    return sum(1 if team[name] == other else -1 for name in liked & team.keys())


def _lists(path: str | Path | HeldLog, strategies: dict[str, str]) -> Iterator[LogLine]:
    """The interleaved lists with the acts that were logged for them, each client's search of a day once.

    `strategies` takes those of the policies, as text.
    """
    seen: set[int] = set()
    waiting = Waiting()
    for number, encoded in lines_of(path):
        try:
            line = decode(encoded)
            gone = waiting.act(line, len(encoded)) if not line.hits else iter(())
        except (ValueError, KeyError):
            continue
        if line.configuration is not None and len(strategies) < MOST_TEAMS:
            strategies[line.policy] = str(line.configuration.get("strategy", ""))[:LONGEST]
        if any(hit.interleaved for hit in line.hits):
            key = token(line.client_id, line.user_query, int((line.seconds or 0.0) // DAY))
            if key not in seen:
                seen.add(key)
                gone = waiting.put(line, number, len(encoded)) if line.actions is None else iter([(line, number)])
        yield from (done for done, _ in gone)
    yield from (done for done, _ in waiting.rest())
