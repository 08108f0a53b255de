"""Reads a feedback log line by line in bounded memory, and counts what it says.

Faults are counted by rule with the lines they stand in, and never stop the reading: what is left is used. A search
that a client repeats on the same day counts once, a client counts for `MOST_A_DAY` searches a day at most, and for
a tenth of all (`clients`), so that nobody outvotes the rest. The log is read twice: first for who searched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard_eval.datasets.logs import HeldLog, LogLine, decode, lines_of
from steelyard_eval.learn.clients import DAY, FOLDS, LATER, Census, Clients, Waiting, client_of, token
from steelyard_eval.learn.tally import CODE, EVERYTHING_SHOWN, SeenFilter, Tally
from steelyard_eval.learn.top10 import PLACES

MOST_A_DAY = 1_000
"""Searches of one client and day; more are those of a program that is out of hand."""
CHUNK = 20_000
"""Impressions that are counted together at most."""
MOST_POLICIES = 16
MOST_QUERIES = 20_000
"""Distinct queries that the data set does not have; more are set aside."""
UNKNOWN = "asks a query that the data set does not have"
UNEMBEDDED = f"{UNKNOWN}, and whose vector is not recorded (name another --embedder)"
EARLIEST = 946_684_800.0
"""2000-01-01: times before it come from a clock that was never set."""
MOST_CLIENTS = 200_000
"""Clients and days that are counted at a time."""


@dataclass
class DatasetIndex:
    """What a log is matched against.

    Attributes
    ----------
    entries : mapping of entry id to a number from 0
    by_id, by_text : mapping of query ids, and of texts that only one query has, to a number from 0
    texts : the text of every query by its id
    extensible : whether other texts can be searched, and so learned from
    scoped : mapping of texts with their filters to a number from 0, for lines that say what was filtered
    added : texts that were asked beside these, with their filters
    """

    entries: Mapping[str, int]
    by_id: Mapping[str, int]
    by_text: dict[str, int]
    texts: Mapping[str, str]
    extensible: bool = False
    scoped: dict[tuple[str, Filters], int] = field(default_factory=dict)
    added: list[tuple[str, Filters]] = field(default_factory=list)

    def query(self, line: LogLine) -> int:
        """The number of the query that was asked: by its id, else by its text; -1 where it is unknown."""
        number = self.by_id.get(line.query_id)
        if number is not None and line.user_query in ("", self.texts[line.query_id]):
            return number
        filters = line.filters
        asked = (line.user_query, EVERYTHING if filters is None else filters)
        number = self.by_text.get(line.user_query) if filters is None else self.scoped.get(asked)
        if number is not None:
            return number
        if not self.extensible or not line.user_query.strip() or len(self.added) >= MOST_QUERIES:
            return -1
        number = len(self.by_id) + len(self.added)
        self.added.append(asked)
        self.scoped[asked] = number
        if not asked[1]:
            self.by_text.setdefault(line.user_query, number)
        return number

    @property
    def queries(self) -> int:
        """How many queries are known, or may be added."""
        return len(self.by_id) + (MOST_QUERIES if self.extensible else 0)


@dataclass(frozen=True)
class Log:
    """A log that was read.

    Attributes
    ----------
    tally : the counts
    axes : the lengths of what a key is made of: see `columns`
    clients : who searched
    policies : names of the policies, in the order in which they first occur; their numbers are those of the counts
    searches : impressions of each policy
    configurations : records of configurations that the log holds, by policy; unchecked
    given : float64[PLACES], the mean logged probability that a place was examined, NaN without any
    """

    census: Census
    tally: Tally
    axes: tuple[int, ...]
    clients: Clients
    policies: tuple[str, ...]
    searches: Mapping[str, int]
    configurations: Mapping[str, Mapping[str, object]]
    added: tuple[tuple[str, Filters], ...]
    given: Floats

    @property
    def columns(self) -> tuple[Indices, ...]:
        """int64[M] each, of every count: policy, whether the list was mixed, query, fold of the client, whether it
        is of the largest client; entry (E: unknown), place.
        """
        return tuple(column.astype(np.int64) for column in np.unravel_index(self.tally.key, self.axes))


def read_log(path: str | Path | HeldLog, known: DatasetIndex, now: float) -> Log:
    """Read a log to its end; see the module.

    `now` is the latest time that an impression can have, seconds UTC, give or take a day.
    """
    clients = Clients()
    for _, raw in lines_of(path):
        try:
            line = decode(raw)
        except ValueError:
            continue
        if line.hits:
            clients.saw(line)
    reading = _Reading(known, now, clients)
    for number, raw in lines_of(path):
        reading.take(raw, number)
    return reading.finish()


class _Reading:
    """The state of one reading."""

    def __init__(self, known: DatasetIndex, now: float, clients: Clients) -> None:
        self.known = known
        self.clients = clients
        self.weight = clients.weight
        self.axes = (MOST_POLICIES, 2, known.queries, FOLDS, 2, len(known.entries) + 1, PLACES)
        self.latest = now + DAY
        self.census = Census()
        self.tally = Tally.empty()
        self.policies: dict[str, int] = {}
        self.searches: Counter[str] = Counter()
        self.configurations: dict[str, Mapping[str, object]] = {}
        self.waiting = Waiting()
        self.per_client: Counter[int] = Counter()
        self.seen = SeenFilter()
        self.examined = np.zeros((2, PLACES))
        self.lists: list[tuple[int, int, int, float, tuple[int, ...]]] = []
        """Impressions that wait to be counted together: hash, line, size, weight, head of its keys."""
        self.hits: list[tuple[int, int, int]] = []
        """Their hits: entry, place, act."""

    def take(self, raw: bytes, number: int) -> None:
        """One line."""
        self.census.lines += 1
        try:
            line = decode(raw)
        except ValueError as error:
            self.census.set_aside(str(error), number)
            return
        self.census.simulated |= line.simulated
        if line.configuration is not None:
            if len(self.configurations) < MOST_POLICIES:
                self.configurations[line.policy] = line.configuration
        elif line.hits:
            self._impression(line, number, len(raw))
        elif line.actions:
            self._acts(line, number, len(raw))

    def finish(self) -> Log:
        """Everything that still waits, and the result."""
        self._emit(self.waiting.rest())
        self._count()
        with np.errstate(invalid="ignore", divide="ignore"):
            given = self.examined[0] / self.examined[1]
        return Log(
            self.census,
            self.tally,
            self.axes,
            self.clients,
            tuple(self.policies),
            self.searches,
            self.configurations,
            tuple(self.known.added),
            given,
        )

    def _impression(self, line: LogLine, number: int, size: int) -> None:
        fault = self._fault(line)
        if fault:
            self.census.set_aside(fault, number)
        else:
            complete = line.actions is not None
            self._emit([(line, number)] if complete else self.waiting.put(line, number, size))

    def _fault(self, line: LogLine) -> str:
        time = line.seconds
        if time is None:
            return "has no timestamp"
        if time > self.latest:
            return "has a timestamp in the future"
        if time < EARLIEST:
            return "has a timestamp before the year 2000"
        if len({hit.object_id for hit in line.hits}) < len(line.hits):
            return "shows an entry twice"
        if len({hit.position for hit in line.hits}) < len(line.hits):
            return "has two entries at one place"
        try:
            _ = line.filters
        except ConfigError as error:
            return f"has a filter that is none ({error})"
        return self._client_fault(line.client_id, time)

    def _client_fault(self, client: str, time: float) -> str:
        key = token(client, int(time // DAY))
        if len(self.per_client) >= MOST_CLIENTS:
            self.per_client.clear()
        self.per_client[key] += 1
        busy = bool(client) and self.per_client[key] > MOST_A_DAY
        return f"is one of more than {MOST_A_DAY:,} searches of its client that day (a program)" if busy else ""

    def _acts(self, line: LogLine, number: int, size: int) -> None:
        try:
            gone = self.waiting.act(line, size)
        except KeyError:
            self.census.set_aside("acts on an impression that is not in the log, or long past", number)
        else:
            self._emit(gone)

    def _emit(self, lines: Iterable[tuple[LogLine, int]]) -> None:
        """Impressions whose acts are known."""
        for line, number in lines:
            query = self.known.query(line)
            if query < 0:
                self.census.set_aside(UNKNOWN if self.known.extensible else UNEMBEDDED, number)
            elif (policy := self._policy(line.policy)) < 0:
                self.census.set_aside(f"is by one more policy than {MOST_POLICIES}", number)
            else:
                self._add(line, number, policy, query)
                if len(self.lists) >= CHUNK:
                    self._count()

    def _policy(self, name: str) -> int:
        """The number of a policy; -1 for one more than are told apart."""
        if name not in self.policies and len(self.policies) >= MOST_POLICIES:
            return -1
        return self.policies.setdefault(name, len(self.policies))

    def _add(self, line: LogLine, number: int, policy: int, query: int) -> None:
        acts = {act.object_id: CODE[act.action_name] for act in line.actions or ()}
        none = CODE[EVERYTHING_SHOWN] if "" in acts else -1
        missed = len(acts) - (none >= 0) - sum(hit.object_id in acts for hit in line.hits)
        if missed:
            self.census.set_aside("acts on an entry that was not shown", number, missed)
        near = [hit for hit in line.hits if hit.position <= PLACES]
        for hit in near:
            entry = self.known.entries.get(hit.object_id, len(self.known.entries))
            self.hits.append((entry, hit.position - 1, acts.get(hit.object_id, none)))
            if hit.examined_probability is not None:
                self.examined[:, hit.position - 1] += hit.examined_probability, 1
        self.census.saw(time := line.seconds or 0.0)
        client, day = client_of(line), int(time // DAY)
        mixed = any(hit.interleaved is not None for hit in near)
        head = policy, mixed, query, client % FOLDS, client == self.clients.largest
        weight = self.weight.get(client, self.weight.get(LATER, 1.0))
        self.lists.append((token(line.client_id, query, day), number, len(near), weight, head))

    def _count(self) -> None:
        """Count what waits to be counted together, repetitions apart."""
        if not self.lists:
            return
        tokens, numbers, sizes, weights, heads = zip(*self.lists, strict=True)
        hits = np.array(self.hits, dtype=np.int64).reshape(-1, 3)
        self.lists, self.hits = [], []
        fresh = self.seen.first(np.array(tokens, dtype=np.uint64))
        for number in np.array(numbers)[~fresh].tolist():
            self.census.set_aside("repeats a search of its client on that day", number)
        of = np.repeat(np.arange(len(fresh)), sizes)
        hits, of = hits[fresh[of]], of[fresh[of]]
        entry, place, kind = hits.T
        head = np.array(heads, dtype=np.int64)
        key = np.ravel_multi_index((*head[of].T, entry, place), self.axes)
        self.tally = Tally.sum([self.tally, Tally.of(key, kind, np.array(weights)[of])])
        self.census.impressions += int(fresh.sum())
        self.census.acts += int((kind >= 0).sum())
        names = list(self.policies)
        self.searches.update(names[policy] for policy in head[fresh, 0].tolist())
