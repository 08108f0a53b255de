"""Reads a feedback log line by line in bounded memory, and counts what it says.

Faults are counted by rule with the lines they stand in, and never stop the reading: what is left is used. A search
that a client repeats on the same day counts once, a client counts for `MOST_A_DAY` searches a day at most, and for
a tenth of all (`searches`), so that nobody outvotes the rest. The log is read twice: first for who searched.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError
from steelyard.memory.query import EVERYTHING, Filters
from steelyard_eval.datasets.logs import HeldLog, LogLine, decode, lines_of
from steelyard_eval.learn import searchers
from steelyard_eval.learn.counts import (
    CODE,
    EVENT_WEIGHT,
    EVERYTHING_SHOWN,
    KINDS,
    InterleavingResult,
    MatchedImpressions,
    count_turn,
    grouped,
)
from steelyard_eval.learn.first_ten import PLACES

MOST_A_DAY = 1_000  # searches of one client and day; more are those of a program that is out of hand
CHUNK = 20_000  # impressions that are counted together at most
MOST_POLICIES = 16  # policies whose configurations are kept, and whose searches are counted
MOST_QUERIES = 20_000  # distinct queries that the data set does not have; more are set aside
UNKNOWN = "asks a query that the data set does not have"
UNEMBEDDED = f"{UNKNOWN}, and whose vector is not recorded (name another --embedder)"
EARLIEST = 946_684_800.0  # 2000-01-01: times before it come from a clock that was never set


@dataclass
class DatasetIndex:
    """What a log is matched against."""

    entries: Mapping[str, int]  # entry ids to a number from 0
    by_id: Mapping[str, int]  # query ids to a number from 0
    by_text: dict[str, int]  # texts that only one query has, to that
    texts: Mapping[str, str]  # the text of every query by its id
    extensible: bool = False  # whether other texts can be searched, and so learned from
    scoped: dict[tuple[str, Filters], int] = field(default_factory=dict)  # the same of texts with their filters
    added: list[tuple[str, Filters]] = field(default_factory=list)  # what was asked beside these

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


@dataclass(frozen=True)
class Log:
    """A log that was read."""

    census: searchers.Census
    hits: MatchedImpressions  # the counts, by numbers of the index; E is an unknown entry
    clients: Mapping[int, int]  # how often each client searched
    searches: Mapping[str, int]  # impressions of each policy
    configurations: Mapping[str, Mapping[str, object]]  # records that the log holds, by policy; unchecked
    added: Sequence[tuple[str, Filters]]
    given: Floats  # float64[PLACES], the mean logged probability that a place was examined, NaN without any
    turns: Sequence[InterleavingResult]  # rankings that took turns, most searches first; all under an empty name


def read_log(path: str | Path | HeldLog, known: DatasetIndex, now: float) -> Log:
    """Read a log to its end; see the module.

    `now` is the latest time that an impression can have, seconds UTC, give or take a day.
    """
    clients: Counter[int] = Counter()
    for _, raw in lines_of(path):
        try:
            line = decode(raw)
        except ValueError:
            continue
        if line.hits:
            client = searchers.client_of(line)
            clients[client if client in clients or len(clients) < searchers.MOST_CLIENTS else searchers.LATER] += 1
    reading = _ReadingState(known, now, clients)
    for number, raw in lines_of(path):
        reading.take(raw, number)
    return reading.finish()


class _ReadingState:
    def __init__(self, known: DatasetIndex, now: float, clients: Counter[int]) -> None:
        self.known = known
        self.clients = clients
        counts = np.fromiter(clients.values(), dtype=np.int64, count=len(clients))
        self.weight = dict(zip(clients, searchers.weights(counts).tolist(), strict=True))
        self.largest = min(clients, key=lambda n: (-clients[n], n)) if len(clients) > 1 else None
        self.latest = now + searchers.DAY
        self.census = searchers.Census()
        none = np.zeros(0)
        self.counts = none.astype(np.int64), none, np.zeros((0, len(KINDS)))
        self.turns: dict[str, InterleavingResult] = {}
        self.searches: Counter[str] = Counter()
        self.configurations: dict[str, Mapping[str, object]] = {}
        self.waiting = searchers.Waiting()
        self.per_client: Counter[int] = Counter()
        self.seen, self.seen_turns = searchers.SeenFilter(), searchers.SeenFilter()
        self.examined = np.zeros((2, PLACES))
        self.lists: list[tuple[int, int, int, float, str, tuple[int, ...]]] = []
        """Impressions that wait to be counted together: hash, line, size, weight, policy, head of its keys."""
        self.hits = array("q")
        """Their hits, three numbers each: entry, place, act."""

    @property
    def axes(self) -> tuple[int, ...]:
        """What the key of a count is made of: query, fold, whether of the largest client, entry, place."""
        known = self.known
        queries = len(known.by_id) + (MOST_QUERIES if known.extensible else 0)
        return queries, searchers.FOLDS, 2, len(known.entries) + 1, PLACES

    def take(self, raw: bytes, number: int) -> None:
        self.census.lines += 1
        try:
            line = decode(raw)
        except ValueError as error:
            self.census.reject(str(error), number)
            return
        self.census.simulated |= line.simulated
        if line.configuration is not None:
            if len(self.configurations) < MOST_POLICIES:
                self.configurations[line.policy] = line.configuration
        elif line.hits and (fault := self._fault(line)):
            self.census.reject(fault, number)
        elif line.hits:
            waits = line.actions is None
            self._emit_impressions(self.waiting.put(line, number, len(raw)) if waits else [(line, number)])
        elif line.actions:
            if (gone := self.waiting.act(line, len(raw))) is None:
                self.census.reject("acts on a list that is empty, not in the log, or long past", number)
            else:
                self._emit_impressions(gone)

    def finish(self) -> Log:
        self._emit_impressions(self.waiting.rest())
        self._count()
        with np.errstate(invalid="ignore", divide="ignore"):
            given = self.examined[0] / self.examined[1]
        key, shown, acts = self.counts
        query, fold, largest, entry, place = (axis.astype(np.int64) for axis in np.unravel_index(key, self.axes))
        return Log(
            self.census,
            MatchedImpressions(query, fold, largest > 0, entry, place, shown, acts),
            self.clients,
            self.searches,
            self.configurations,
            self.known.added,
            given,
            sorted(self.turns.values(), key=lambda of: (-(of.decided + of.ties), of.other)),
        )

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
        day = searchers.of_day(line.client_id, int(time // searchers.DAY))
        if len(self.per_client) >= searchers.MOST_CLIENTS:
            self.per_client.clear()
        self.per_client[day] += 1
        busy = bool(line.client_id) and self.per_client[day] > MOST_A_DAY
        return f"is one of more than {MOST_A_DAY:,} searches of its client that day (a program)" if busy else ""

    def _emit_impressions(self, lines: Iterable[tuple[LogLine, int]]) -> None:
        for line, number in lines:
            if any([hit.interleaved for hit in line.hits]):  # noqa: C419 -- a generator takes twice as long
                key = searchers.token(line.client_id, line.user_query, int((line.seconds or 0.0) // searchers.DAY))
                if self.seen_turns.first(np.array([key], dtype=np.uint64))[0]:
                    count_turn(self.turns, line)
            query = self.known.query(line)
            if query < 0:
                self.census.reject(UNKNOWN if self.known.extensible else UNEMBEDDED, number)
            else:
                self._add(line, number, query)

    def _add(self, line: LogLine, number: int, query: int) -> None:
        acts = {act.object_id: CODE[act.action_name] for act in line.actions or ()}
        none = CODE[EVERYTHING_SHOWN] if "" in acts else -1
        entries, before = self.known.entries, len(self.hits)
        for hit in line.hits:
            id_, place = hit.object_id, hit.position
            if place <= PLACES:
                self.hits.extend((entries.get(id_, len(entries)), place - 1, acts.get(id_, none)))
                if hit.examined_probability is not None:
                    self.examined[:, place - 1] += hit.examined_probability, 1
        if acts and (missed := acts.keys() - {hit.object_id for hit in line.hits} - {""}):
            self.census.reject("acts on an entry that was not shown", number, len(missed))
        self.census.saw(time := line.seconds or 0.0)
        client, day = searchers.client_of(line), int(time // searchers.DAY)
        head = query, client % searchers.FOLDS, client == self.largest
        weight = self.weight.get(client, self.weight.get(searchers.LATER, 1.0))
        size = (len(self.hits) - before) // 3
        self.lists.append((searchers.token(line.client_id, query, day), number, size, weight, line.policy, head))
        if len(self.lists) >= CHUNK:
            self._count()

    def _count(self) -> None:
        """Count what waits to be counted together, repetitions apart."""
        if not self.lists:
            return
        tokens, numbers, sizes, worths, policies, heads = zip(*self.lists, strict=True)
        hits = np.array(self.hits, dtype=np.int64).reshape(-1, 3)
        self.lists, self.hits = [], array("q")
        fresh = self.seen.first(np.array(tokens, dtype=np.uint64))
        for number in np.array(numbers)[~fresh].tolist():
            self.census.reject("repeats a search of its client on that day", number)
        of = np.repeat(np.arange(len(fresh)), sizes)
        hits, of = hits[fresh[of]], of[fresh[of]]
        entry, place, kind = hits.T
        head, weight, done = np.array(heads, dtype=np.int64), np.array(worths)[of], kind >= 0
        acts = np.zeros((len(kind), len(KINDS)))
        acts[done, kind[done]] = EVENT_WEIGHT[kind[done]] * weight[done]
        part = grouped(np.ravel_multi_index((*head[of].T, entry, place), self.axes), weight, acts)
        self.counts = grouped(*(np.concatenate(pair) for pair in zip(self.counts, part, strict=True)))
        self.census.impressions += int(fresh.sum())
        of_list = kind == CODE[EVERYTHING_SHOWN]
        self.census.acts += int((done & ~of_list).sum()) + len(np.unique(of[of_list]))
        for policy in compress(policies, fresh):
            if policy in self.searches or len(self.searches) < MOST_POLICIES:
                self.searches[policy] += 1
