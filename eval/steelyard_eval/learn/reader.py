"""Reads a feedback log line by line in bounded memory, and counts what it says.

Faults are counted by rule with the lines they stand in, and never stop the reading: what is left is used. A search
that a client repeats on the same day counts once, a client counts for `MOST_A_DAY` searches a day at most, and for
a tenth of all (`clients`), so that nobody outvotes the rest. The log is read twice: first for who searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.base.errors import ConfigError
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard_eval.datasets.logs import HeldLog, LogLine, decode, lines_of
from steelyard_eval.learn.acts import CODE, EVERYTHING_SHOWN
from steelyard_eval.learn.census import Census
from steelyard_eval.learn.clients import DAY, FOLDS, LATER, Clients, client_of
from steelyard_eval.learn.first_ten import PLACES
from steelyard_eval.learn.tally import MOST_POLICIES, Axes, Seen, Tally
from steelyard_eval.learn.waiting import Waiting, token

MOST_A_DAY = 1_000
"""Searches of one client and day; more are those of a program that is out of hand."""
CHUNK = 20_000
"""Impressions that are counted together at most."""
APART = ("client", "day", "earlier")
"""What is counted apart, too: the largest client, the busiest day, the earlier half."""
MOST_QUERIES = 20_000
"""Distinct queries that the data set does not have; more are set aside."""
UNKNOWN = "asks a query that the data set does not have"
UNEMBEDDED = f"{UNKNOWN}, and whose vector is not recorded (name another --embedder)"
EARLIEST = 946_684_800.0
"""2000-01-01: times before it come from a clock that was never set."""
MOST_CLIENTS = 200_000
"""Clients and days that are counted at a time."""


@dataclass
class Known:
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
    def axes(self) -> Axes:
        """Room for the queries that are known and those that may be added."""
        return Axes(len(self.by_id) + (MOST_QUERIES if self.extensible else 0), len(self.entries))


@dataclass(frozen=True)
class Log:
    """A log that was read.

    Attributes
    ----------
    folds : the counts, in folds of clients that are none of the others'; their sum is all of it
    apart : the counts of each of `APART`
    clients : who searched
    policies : names of the policies, in the order in which they first occur; their numbers are those of the counts
    searches : impressions of each policy
    configurations : records of configurations that the log holds, by policy; unchecked
    given : float64[PLACES], the mean logged probability that a place was examined, NaN without any
    """

    census: Census
    axes: Axes
    folds: tuple[Tally, ...]
    apart: Mapping[str, Tally]
    clients: Clients
    policies: tuple[str, ...]
    searches: Mapping[str, int]
    configurations: Mapping[str, Mapping[str, object]]
    added: tuple[tuple[str, Filters], ...]
    given: Floats

    @property
    def whole(self) -> Tally:
        """All counts."""
        return Tally.sum(self.folds)


def read_log(path: str | Path | HeldLog, known: Known, now: float) -> Log:
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

    def __init__(self, known: Known, now: float, clients: Clients) -> None:
        self.known = known
        self.clients = clients
        self.weight = clients.weight
        self.marks = clients.largest, clients.busiest, clients.middle
        self.axes = known.axes
        self.latest = now + DAY
        self.census = Census()
        self.folds = [Tally.empty() for _ in range(FOLDS)]
        self.apart = {name: Tally.empty() for name in APART}
        self.policies: dict[str, int] = {}
        self.searches: dict[str, int] = {}
        self.configurations: dict[str, Mapping[str, object]] = {}
        self.waiting = Waiting()
        self.per_client: dict[int, int] = {}
        self.seen = Seen()
        self.examined = np.zeros((2, PLACES))
        self.chunk = _Chunk()

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
        self._emit_all(self.waiting.rest())
        self._flush()
        with np.errstate(invalid="ignore", divide="ignore"):
            given = self.examined[0] / self.examined[1]
        return Log(
            self.census,
            self.axes,
            tuple(self.folds),
            self.apart,
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
        elif line.actions is not None:
            self._emit(line, number)
        else:
            self._emit_all(self.waiting.put(line, number, size))

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
        count = self.per_client[key] = self.per_client.get(key, 0) + 1
        busy = bool(client) and count > MOST_A_DAY
        return f"is one of more than {MOST_A_DAY:,} searches of its client that day (a program)" if busy else ""

    def _acts(self, line: LogLine, number: int, size: int) -> None:
        try:
            gone = self.waiting.act(line, size)
        except KeyError:
            self.census.set_aside("acts on an impression that is not in the log, or long past", number)
        else:
            self._emit_all(gone)

    def _emit_all(self, lines: Iterable[tuple[LogLine, int]]) -> None:
        for line, number in lines:
            self._emit(line, number)

    def _emit(self, line: LogLine, number: int) -> None:
        query = self.known.query(line)
        if query < 0:
            self.census.set_aside(UNKNOWN if self.known.extensible else UNEMBEDDED, number)
            return
        policy = self.policies.setdefault(line.policy, len(self.policies))
        if policy >= MOST_POLICIES:
            del self.policies[line.policy]
            self.census.set_aside(f"is by one more policy than {MOST_POLICIES}", number)
            return
        self.chunk.add(line, number, policy, query, self)
        if len(self.chunk.hashes) >= CHUNK:
            self._flush()

    def _flush(self) -> None:
        """Count the chunk."""
        chunk, self.chunk = self.chunk, _Chunk()
        if not chunk.hashes:
            return
        fresh = self.seen.first(np.array(chunk.hashes, dtype=np.uint64))
        for number in np.array(chunk.numbers)[~fresh].tolist():
            self.census.set_aside("repeats a search of its client on that day", number)
        sizes = np.array(chunk.sizes)
        hits = np.repeat(fresh, sizes)
        per_hit = np.repeat(np.array(chunk.heads, dtype=np.int64), sizes, axis=0)[hits]
        weight = np.repeat(np.array(chunk.weights), sizes)[hits]
        entry, place, kind = np.array(chunk.hits, dtype=np.int64).reshape(-1, 3)[hits].T
        key = self.axes.key(per_hit[:, 0], per_hit[:, 1], per_hit[:, 2], entry, place)

        def counted(mask: Bools, known: Tally) -> Tally:
            return Tally.sum([known, Tally.of(key[mask], kind[mask], weight[mask])])

        self.folds = [counted(per_hit[:, 3] == fold, known) for fold, known in enumerate(self.folds)]
        for column, name in enumerate(APART, 4):
            self.apart[name] = counted(per_hit[:, column] > 0, self.apart[name])
        self.census.impressions += int(fresh.sum())
        self.census.acts += int((kind >= 0).sum())
        for policy, count in zip(*np.unique(np.array(chunk.heads)[fresh, 0], return_counts=True), strict=True):
            name = list(self.policies)[policy]
            self.searches[name] = self.searches.get(name, 0) + int(count)


class _Chunk:
    """Impressions that wait to be counted together, as plain lists."""

    def __init__(self) -> None:
        self.hashes: list[int] = []
        self.weights: list[float] = []
        self.numbers: list[int] = []
        self.sizes: list[int] = []
        self.heads: list[tuple[int, ...]] = []
        self.hits: list[tuple[int, int, int]] = []

    def add(self, line: LogLine, number: int, policy: int, query: int, reading: _Reading) -> None:
        """One impression: policy, whether mixed, query, fold, what it is apart for; then a row a hit."""
        entries = reading.known.entries
        acts = {act.object_id: CODE[act.action_name] for act in line.actions or ()}
        none = CODE[EVERYTHING_SHOWN] if "" in acts else -1
        size, mixed, missed = 0, 0, len(acts) - (none >= 0)
        for hit in line.hits:
            kind = acts.get(hit.object_id, none)
            missed -= hit.object_id in acts
            if hit.position > PLACES:
                continue
            size += 1
            mixed |= hit.interleaved is not None
            self.hits.append((entries.get(hit.object_id, len(entries)), hit.position - 1, kind))
            if hit.examined_probability is not None:
                reading.examined[:, hit.position - 1] += hit.examined_probability, 1
        if missed:
            reading.census.set_aside("acts on an entry that was not shown", number, missed)
        time = line.seconds or 0.0
        reading.census.disordered += time < (reading.census.last_time or 0.0) - DAY
        reading.census.saw(time)
        self.hashes.append(token(line.client_id, query, int(time // DAY)))
        self.numbers.append(number)
        self.sizes.append(size)
        client, day = client_of(line), int(time // DAY)
        largest, busiest, middle = reading.marks
        self.heads.append(
            (policy, int(mixed), query, client % FOLDS, client == largest, day == busiest, day < middle)
        )
        self.weights.append(reading.weight.get(client, reading.weight.get(LATER, 1.0)))
