"""Who searched, how much that may count, and what is held while a log is read.

Nobody outvotes the rest: a client counts for a tenth of all searches at most. Errors are those between clients, as
far as there are several (cluster-robust by a delete-a-group jackknife: Kott, 2001). Searches that name no client
count as one client a day.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import visible
from steelyard_eval.datasets.logs import LogLine

DAY = 86_400.0
CAP = 0.1  # A client counts as this share of the searches at most
LEAST_CLIENT = 20  # searches that a client may always have; so may half of the clients what they have
FOLDS = 6  # folds of clients
MOST_CLIENTS = 200_000  # clients that are told apart; later ones count as one
LATER = -1  # the number of the clients that come later
OPEN = 10_000  # impressions that wait: an act reaches back so many searches
ROOM = 32 * 2**20  # bytes of the lines of those that wait, and of their acts; in memory five times that
EXAMPLES = 3  # lines that are named for each rule
RULES = 100  # rules that are told apart; what breaks yet another is counted as one


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


def client_of(line: LogLine) -> int:
    """A number for who searched; for the day where nobody is named."""
    return of_day(line.client_id, 0 if line.client_id else int((line.seconds or 0.0) // DAY))


@lru_cache(maxsize=10_000)
def of_day(client: str, day: int) -> int:
    """A number for a client on a day; most of them search again."""
    return token(client, day)


def token(*parts: object) -> int:
    """64 bits that stand for a client, a query, a day: texts of others are not kept."""
    text = "\0".join(map(str, parts)).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


class Waiting:
    """Impressions by their ids, with their lines' numbers and bytes.

    The oldest go when there are more than `OPEN`, or they take more than `ROOM`; acts on one that is gone find
    nothing, and are counted as such.
    """

    def __init__(self) -> None:
        self._open: dict[str, tuple[LogLine, int]] = {}
        self._sizes: Counter[str] = Counter()
        self._bytes = 0

    def put(self, line: LogLine, number: int, size: int) -> Iterator[tuple[LogLine, int]]:
        """Let an impression wait, of a line of so many bytes; those that no longer wait, with their numbers."""
        yield from self._gone(line.query_id)
        self._open[line.query_id] = line, number
        yield from self._grown(line.query_id, size)

    def act(self, line: LogLine, size: int) -> Iterator[tuple[LogLine, int]] | None:
        """Add acts to the impression that they name; those that no longer wait. None where it does not."""
        if line.query_id not in self._open:
            return None
        impression, _ = self._open[line.query_id]
        if impression.actions is None:
            impression.actions = []
        impression.actions.extend(line.actions or ())
        return self._grown(line.query_id, size)

    def rest(self) -> Iterator[tuple[LogLine, int]]:
        """All that still wait."""
        yield from self._open.values()

    def _grown(self, query_id: str, size: int) -> Iterator[tuple[LogLine, int]]:
        self._sizes[query_id] += size
        self._bytes += size
        while len(self._open) > OPEN or self._bytes > ROOM:
            yield from self._gone(next(iter(self._open)))

    def _gone(self, query_id: str) -> Iterator[tuple[LogLine, int]]:
        if query_id in self._open:
            self._bytes -= self._sizes.pop(query_id)
            yield self._open.pop(query_id)


class SeenFilter:
    """Remembers hashes in bounded memory: a Bloom filter of 64 MB, filled in only as far as it is used.

    After ten million hashes it takes a new one for a known one in fewer than 1 of 1,000 cases; such an impression
    is then counted as a repetition, and lost.
    """

    BITS = 29
    FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)

    def __init__(self) -> None:
        self._bits = np.zeros(1 << (self.BITS - 3), dtype=np.uint8)

    def first(self, hashes: NDArray[np.uint64]) -> Bools:
        """bool[n]: which hashes are new, here and among all that were asked before; then they are known."""
        new = np.zeros(len(hashes), dtype=bool)
        new[np.unique(hashes, return_index=True)[1]] = True
        places = [(hashes * np.uint64(factor)) >> np.uint64(64 - self.BITS) for factor in self.FACTORS]
        known = np.ones(len(hashes), dtype=bool)
        for place in places:
            known &= (self._bits[place >> np.uint64(3)] >> (place & np.uint64(7)).astype(np.uint8)) & 1 == 1
        for place in places:
            bit = np.left_shift(np.uint8(1), (place & np.uint64(7)).astype(np.uint8))
            np.bitwise_or.at(self._bits, place >> np.uint64(3), bit)
        return np.asarray(new & ~known, dtype=np.bool_)


@dataclass
class Census:
    """Counts of lines and impressions.

    `rejected` counts what was not used, by rule, and `first` has the first lines of each; `disordered` counts the
    impressions that are more than a day out of order, which are used.
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

    def reject(self, rule: str, line: int, count: int = 1) -> None:
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
