"""How much the searches of one client may count, and which searches vary together because one client made them.

Nobody outvotes the rest: a client counts for a tenth of all searches at most. Errors are those between clients, as
far as there are several (cluster-robust by a delete-a-group jackknife: Kott, 2001). Searches that name no client
count as one client a day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.datasets.logs import LogLine
from steelyard_eval.learn.waiting import token

DAY = 86_400.0
CAP = 0.1
"""A client counts as this share of the searches at most."""
LEAST_CLIENT = 20
"""Searches that a client may always have; so may half of the clients what they have."""
FOLDS = 6
"""Folds of clients."""
MOST = 200_000
"""Clients, and days, that are told apart."""
LATER = -1
"""The number of the clients, and of the days, that come later, which count as one."""


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
    """Who searched, and when: counted in a first reading of the log."""

    searches: Counter[int] = field(default_factory=Counter)
    days: Counter[int] = field(default_factory=Counter)

    def saw(self, line: LogLine) -> None:
        """Count an impression."""
        day = int((line.seconds or 0.0) // DAY)
        for counter, key in ((self.searches, client_of(line)), (self.days, day)):
            counter[key if key in counter or len(counter) < MOST else LATER] += 1

    @property
    def weight(self) -> Mapping[int, float]:
        """What a search of each client counts as."""
        weight = weights(np.fromiter(self.searches.values(), dtype=np.int64, count=len(self.searches)))
        return dict(zip(self.searches, weight.tolist(), strict=True))

    @property
    def largest(self) -> int | None:
        """The client that searched most; None for one client alone, or none."""
        return min(self.searches, key=lambda n: (-self.searches[n], n)) if len(self.searches) > 1 else None

    @property
    def busiest(self) -> int | None:
        """The day of most searches; None for a single day."""
        return min(self.days, key=lambda day: (-self.days[day], day)) if len(self.days) > 1 else None

    @property
    def middle(self) -> int:
        """The day in which half of the searches are reached."""
        days = sorted(self.days)
        reached = np.cumsum([self.days[day] for day in days])
        return days[int(np.searchsorted(reached, reached[-1] / 2))] if days else 0


def client_of(line: LogLine) -> int:
    """A number for who searched; for the day where nobody is named."""
    return _numbered(line.client_id, 0 if line.client_id else int((line.seconds or 0.0) // DAY))


@lru_cache(maxsize=10_000)
def _numbered(client: str, day: int) -> int:
    return token(client, day)
