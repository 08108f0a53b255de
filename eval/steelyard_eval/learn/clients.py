"""Who searched: how much one client may count, which searches vary together, and what of a log is set aside.

Nobody outvotes the rest: a client counts for a tenth of all searches at most. Errors are those between clients, as
far as there are several (cluster-robust by a delete-a-group jackknife: Kott, 2001). Searches that name no client
count as one client a day. Searches whose acts stand later in the log are kept, in bounded memory, until those are
read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.escape import visible
from steelyard_eval.datasets.logs import LogLine

DAY = 86_400.0
CAP = 0.1
"""A client counts as this share of the searches at most."""
LEAST_CLIENT = 20
"""Searches that a client may always have; so may half of the clients what they have."""
FOLDS = 6
"""Folds of clients."""
MOST = 200_000
"""Clients that are told apart."""
LATER = -1
"""The number of the clients that come later, which count as one."""


def weights(counts: Indices) -> Floats:
    """float64[K]: the weight of each client's searches, by how many it made (int64[K]).

    With it no client has more than `CAP` of what all together count, but for `LEAST_CLIENT` searches, and for as
    many as the upper median of the clients made: of two or three none can have so little.

    >>> weights(np.array([30] * 30 + [300])).round(3).tolist()[-1]
    0.333
    """
    if not len(counts):
        return np.zeros(0)
    least = max(LEAST_CLIENT, float(np.sort(counts)[len(counts) // 2]))
    most = float(counts.max())
    for _ in range(100):
        most = max(least, CAP * float(np.minimum(counts, most).sum()))
    return np.asarray(np.minimum(1.0, most / np.maximum(counts, 1)), dtype=np.float64)


@dataclass
class Clients:
    """Who searched: counted in a first reading of the log."""

    searches: Counter[int] = field(default_factory=Counter)

    def saw(self, line: LogLine) -> None:
        """Count an impression."""
        client = client_of(line)
        self.searches[client if client in self.searches or len(self.searches) < MOST else LATER] += 1

    @property
    def weight(self) -> Mapping[int, float]:
        """What a search of each client counts as."""
        weight = weights(np.fromiter(self.searches.values(), dtype=np.int64, count=len(self.searches)))
        return dict(zip(self.searches, weight.tolist(), strict=True))

    @property
    def largest(self) -> int | None:
        """The client that searched most; None for one client alone, or none."""
        return min(self.searches, key=lambda n: (-self.searches[n], n)) if len(self.searches) > 1 else None


def client_of(line: LogLine) -> int:
    """A number for who searched; for the day where nobody is named."""
    return _numbered(line.client_id, 0 if line.client_id else int((line.seconds or 0.0) // DAY))


@lru_cache(maxsize=10_000)
def _numbered(client: str, day: int) -> int:
    return token(client, day)


EXAMPLES = 3
"""Lines that are named for each rule."""
RULES = 100
"""Rules that are told apart; what breaks yet another is counted as one."""


@dataclass
class Census:
    """Counts of lines and impressions.

    `rejected` counts what was not used, by rule; `disordered` the impressions that are more than a day out of
    order, which are used.
    """

    lines: int = 0
    impressions: int = 0
    acts: int = 0
    simulated: bool = False
    disordered: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[int]] = field(default_factory=dict)
    first_time: float | None = None
    last_time: float | None = None

    def set_aside(self, rule: str, line: int, count: int = 1) -> None:
        """Count something that is not used."""
        if rule not in self.rejected and len(self.rejected) >= RULES:
            rule = "breaks some other rule"
        self.rejected[rule] += count
        lines = self.first.setdefault(rule, [])
        if len(lines) < EXAMPLES:
            lines.append(line)

    def saw(self, time: float) -> None:
        """Note the time of an impression."""
        self.disordered += time < (self.last_time or 0.0) - DAY
        self.first_time = time if self.first_time is None else min(self.first_time, time)
        self.last_time = time if self.last_time is None else max(self.last_time, time)

    @property
    def ordered(self) -> list[tuple[int, str, list[int]]]:
        """What was set aside: how often, the rule, the first lines; most frequent first."""
        rows = sorted(self.rejected.items(), key=lambda item: (-item[1], item[0]))
        return [(count, visible(rule), self.first[rule]) for rule, count in rows]


OPEN = 10_000
"""Impressions that wait: an act reaches back so many searches."""
ROOM = 32 * 2**20
"""Bytes of the lines of those that wait, and of their acts; in memory five times that."""


@dataclass
class _Open:
    line: LogLine
    number: int
    size: int


class Waiting:
    """Impressions by their ids. The oldest go when there are more than `OPEN`, or they take more than `ROOM`.

    Acts on one that is gone find nothing, and are counted as such.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._bytes = 0

    def put(self, line: LogLine, number: int, size: int) -> Iterator[tuple[LogLine, int]]:
        """Let an impression wait, of a line of so many bytes; those that no longer wait, with their numbers."""
        yield from self._gone(line.query_id)
        self._open[line.query_id] = _Open(line, number, size)
        yield from self._grown(size)

    def act(self, line: LogLine, size: int) -> Iterator[tuple[LogLine, int]]:
        """Add acts to the impression that they name; those that no longer wait. KeyError where it does not."""
        impression = self._open[line.query_id]
        impression.size += size
        if impression.line.actions is None:
            impression.line.actions = []
        impression.line.actions.extend(line.actions or ())
        return self._grown(size)

    def rest(self) -> Iterator[tuple[LogLine, int]]:
        """All that still wait."""
        for impression in self._open.values():
            yield impression.line, impression.number

    def _grown(self, size: int) -> Iterator[tuple[LogLine, int]]:
        self._bytes += size
        while len(self._open) > OPEN or self._bytes > ROOM:
            yield from self._gone(next(iter(self._open)))

    def _gone(self, query_id: str) -> Iterator[tuple[LogLine, int]]:
        if (impression := self._open.pop(query_id, None)) is not None:
            self._bytes -= impression.size
            yield impression.line, impression.number


def token(*parts: object) -> int:
    """64 bits that stand for a client, a query, a day: texts of others are not kept."""
    text = "\0".join(map(str, parts)).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")
