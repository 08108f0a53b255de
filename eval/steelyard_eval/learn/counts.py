"""The counts of a log: how often each entry was shown at each place of a query, and acted upon there.

Where two rankings took turns, also which of them was preferred, by whose entries were acted upon.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.feedback import ACTIONS
from steelyard_eval.datasets.logs import LogLine
from steelyard_eval.learn.first_ten import PLACES, LoggedPairs
from steelyard_eval.measures.paired import exact_interval
from steelyard_eval.result.structs import Fact, Message

KINDS = ACTIONS
CODE = {kind: at for at, kind in enumerate(KINDS)}
NEGATIVE_KINDS = frozenset({"dismissed", "failed", "thumbs_down", "none_useful"})
POSITIVE = np.array([kind not in NEGATIVE_KINDS for kind in KINDS])  # bool[A]: which kinds speak for an entry
EVERYTHING_SHOWN = "none_useful"  # the act on a whole list: nothing in it was of use
EVENT_WEIGHT = np.array([1.0 if kind != EVERYTHING_SHOWN else 0.1 for kind in KINDS])
"""float64[A]: what one act counts as. That on a whole list is one act, shared by its ten places."""


@dataclass(frozen=True)
class PositionCounts:
    """Counts by (row of the pairs, place), joined to the rows of `LoggedPairs`."""

    row: Indices  # int64[M], ascending
    place: Indices  # int64[M], from 0
    shown: Floats  # float64[M]: how often the entry was shown there
    acts: Floats  # float64[M, A]: how often it was acted upon there, by `KINDS`; the sum is at most `shown`
    query: Indices  # int64[M]: the query of each cell

    @classmethod
    def of(cls, pairs: LoggedPairs, row: Indices, place: Indices, shown: Floats, acts: Floats) -> "PositionCounts":
        """Count equal (row, place) pairs together; rows of -1 are left out."""
        keep = row >= 0
        cell, counted, by_kind = grouped(row[keep] * PLACES + place[keep], shown[keep], acts[keep])
        # Repeated acts may exceed the number of shows.
        share = np.minimum(1.0, counted / np.maximum(by_kind.sum(axis=1), 1e-12))
        rows = cell // PLACES
        return cls(rows, cell % PLACES, counted, by_kind * share[:, None], pairs.query[rows])

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def positive(self) -> Floats:
        """float64[M]: acts of the kinds that speak for an entry."""
        return np.asarray(self.acts[:, POSITIVE].sum(axis=1), dtype=np.float64)

    @cached_property
    def queries(self) -> Indices:
        """The distinct queries, ascending; int64."""
        return np.unique(self.query)

    def where(self, kept: Bools) -> "PositionCounts":
        """Some of the cells; bool[M]."""
        names = "row", "place", "shown", "acts", "query"
        return replace(self, **{name: getattr(self, name)[kept] for name in names})

    def on(self, queries: Indices) -> "PositionCounts":
        """The cells of some queries."""
        return self.where(np.isin(self.query, queries))

    def by_kind(self) -> dict[str, int]:
        """How many acts there are of each kind that occurs."""
        totals = self.acts.sum(axis=0)
        return {kind: int(total) for kind, total in zip(KINDS, totals, strict=True) if total > 0}


@dataclass(frozen=True)
class MatchedImpressions:
    """The counts of a log, M of them: numbers of query and entry, -1 for one that is in no recording."""

    query: Indices  # int64[M]
    fold: Indices  # int64[M]: of the client
    largest: Bools  # bool[M]: whether they are of the largest client
    entry: Indices  # int64[M]
    place: Indices  # int64[M], from 0
    shown: Floats  # float64[M]
    acts: Floats  # float64[M, A]

    def matched(self, query_of: Indices, entry_of: Indices) -> "MatchedImpressions":
        """The same by the numbers of a recording, int64 each; the last of `entry_of` is of unknown entries."""
        return replace(self, query=query_of[self.query], entry=entry_of[self.entry])

    @property
    def known(self) -> tuple[Indices, Indices]:
        """int64[K] each: query and entry where both are known."""
        known = (self.query >= 0) & (self.entry >= 0)
        return self.query[known], self.entry[known]

    @property
    def listless(self) -> bool:
        """Whether every list is one entry that was acted upon: a tally, such as Soleri keeps, and no lists."""
        acted = self.acts.sum(axis=1) >= self.shown - 1e-9
        return bool(len(acted)) and bool(acted.all()) and not self.place.any()

    def cells(self, pairs: LoggedPairs, part: Bools | slice = slice(None)) -> PositionCounts:
        """The counts, or a part of them, by rows of the pairs."""
        row = pairs.find(self.query[part], self.entry[part])
        return PositionCounts.of(pairs, row, self.place[part], self.shown[part], self.acts[part])


def grouped(key: Indices, shown: Floats, acts: Floats) -> tuple[Indices, Floats, Floats]:
    """Counts of equal keys together, by ascending key: int64[M], float64[M] and float64[M, A]."""
    known, inverse = np.unique(key, return_inverse=True)
    return known, sums(inverse, shown, len(known)), column_sums(inverse, acts, len(known))


def sums(numbers: NDArray[np.integer], weights: Floats, size: int = 0) -> Floats:
    """float64[max(size, highest number + 1)]: the sum of the weights of each number."""
    return np.bincount(numbers, weights, size).astype(np.float64, copy=False)


def column_sums(numbers: NDArray[np.integer], columns: Floats, size: int) -> Floats:
    """float64[size, A]: the same of every column of float64[n, A]."""
    summed = np.zeros((size, columns.shape[1]))
    for column in np.flatnonzero(columns.any(axis=0)).tolist():
        summed[:, column] = sums(numbers, columns[:, column], size)
    return summed


MOST_TEAMS = 1_000  # other rankings, and clients of one, that are told apart
MAX_STRATEGY_CHARS = 200  # characters of a strategy that a sentence has
ALPHA = 0.05  # the probability of so uneven a result between equals, below which one is preferred


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
        return self.wins > self.losses if self.p < ALPHA else None

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


def describe_interleaving(
    result: InterleavingResult, configurations: Mapping[str, Mapping[str, object]]
) -> Message:
    """Which of two interleaved rankings was preferred, and how sure that is; `configurations` are the log's."""
    strategy = str(configurations.get(result.other, {}).get("strategy", ""))[:MAX_STRATEGY_CHARS]
    facts: dict[str, Fact] = {"other": result.other or None, "all": not result.other, "strategy": strategy or None}
    if not result.decided:
        return Message("turns_untold", facts)
    facts |= {"wins": result.wins, **result.share}
    if result.preferred is None:
        return Message("turns_open", facts)
    sided = [won - lost for won, _, lost in result.clients.values() if won != lost]
    same = sum((side > 0) == result.preferred for side in sided)
    return Message("turns_preferred", {**facts, "not": not result.preferred, "same": same, "clients": len(sided)})
