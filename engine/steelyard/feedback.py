"""What was shown and what was used: the log of searches, reviews, and searches that explore another ranking.

The log is append-only JSON Lines, of one process or many. A *policy* line has a configuration under its hash,
once. An *impression* has the query, the client and the list as it was shown. An *act* line refers to an impression
by its `query_id`. Field names follow OpenSearch's User Behavior Insights where it has one.

    log = FeedbackLog("feedback.jsonl", searcher.config)
    result = searcher.search("how do we rotate keys")
    query_id = log.shown(result, client="agent-7")
    log.act(query_id, result.hits[0].entry.id, "cited")
"""

import errno
import json
import os
import random
import secrets
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from steelyard.base.errors import PATH_WIDTH, ConfigError, MachineError, nearest, quote
from steelyard.base.extensions import extension
from steelyard.base.fields import format_time
from steelyard.base.files import READ_BYTES, fcntl, open_regular, regular_target
from steelyard.config import SearchConfig, policy_of, ranking_of
from steelyard.results import SearchResult

T = TypeVar("T", bound=Hashable)
SCHEMA_VERSION = 1
_Used = Literal["accepted", "used", "cited", "copied", "opened", "clicked", "modified"]
Action = Literal[_Used, "thumbs_up", "thumbs_down", "dismissed", "failed", "reviewed", "none_useful"]
"""What can be done with a result; `none_useful` is about the whole list."""
ACTIONS: tuple[str, ...] = get_args(Action)
LOCK_SECONDS, PAUSE = 30.0, 0.005
"""Seconds that a lock is waited for, as whoever has it may have stopped, and between two looks at it."""
LONGEST_LINE = 2**25  # bytes: a longer line is none of a log
LONGEST_TEXT = 10_000  # characters of a query, an id or a client that are logged


class FeedbackLog:
    """Writes a feedback log.

    Every line is appended by one write under a lock, so processes may share a file. A writer that is killed loses
    the line that it was writing at most; the next writer begins a new line. MachineError when that cannot be done.

    `config` is what ranks: its hash is the `policy` of the impressions, and its record is written once. The clock
    is in seconds UTC; `new_id` makes ids of impressions, random ones by default.
    """

    def __init__(
        self,
        path: str | Path,
        config: SearchConfig,
        *,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self.path, self.config, self.policy = Path(path), config, policy_of(config)
        self._clock, self._new_id = clock, new_id
        self._named: set[str] = set()

    def shown(self, result: SearchResult, client: str = "") -> str:
        """Log the list of a search as it was shown; returns the id that `act` refers to.

        The text of a query that may hold a secret is left out, and the list is logged all the same.
        """
        for config in (self.config, *result.explored):
            self._name(config)
        query_id = self._new_id()
        placed = result.placed_by or ("",) * len(result.hits)
        hits = [
            {"object_id": hit.entry.id, "position": hit.rank, "score": hit.score}
            | ({"interleaved": team} if team else {})
            for hit, team in zip(result.hits, placed, strict=True)
        ]
        text = extension("secrets").loggable_text(result.query.text)[:LONGEST_TEXT]
        asked: dict[str, object] = {"query_id": query_id, "user_query": text}
        if result.query.filters and (narrowed := result.query.filters.to_json()) is not None:
            asked["filter"] = narrowed
        progress = result.progress
        layers = {"layers": progress.counts()} if progress is not None and progress.answered[0] else {}
        if result.degraded or result.strategy.signals != self.config.effective.signals:  # it lacked vectors
            asked["degraded"] = True
        stamp = {"schema_version": SCHEMA_VERSION, "timestamp": format_time(self._clock())}
        by = {"client_id": client[:LONGEST_TEXT]} if client else {}
        append(self.path, [{**stamp, **by, **asked, "policy": self.policy, "hits": hits, **layers}])
        return query_id

    def act(self, query_id: str, entry_id: str = "", action: str = "accepted", client: str = "") -> None:
        """Log what was done with an entry of an impression, or without one with the whole list."""
        append_act(self.path, query_id, entry_id, action, client, self._clock)

    def _name(self, config: SearchConfig) -> None:
        """Write the record of a configuration, unless the log has it."""
        policy = self.policy if config is self.config else policy_of(config)
        if policy not in self._named and not any(_lines_with(self.path, _own_bytes("policy", policy) + b"}")):
            record = {"schema_version": SCHEMA_VERSION, "configuration": ranking_of(config), "policy": policy}
            append(self.path, [record])
        self._named.add(policy)


def append_act(
    path: str | Path,
    query_id: str,
    entry_id: str,
    action: str,
    client: str = "",
    clock: Callable[[], float] = time.time,
    shown_to: str | None = None,
) -> None:
    """Append an act to a log; `shown_to` is the client to whom the list must have been shown, where that is known.

    ConfigError for an unknown action, one that is not of an entry, or not of the list, and when no list of the log
    has this id, or that list shows no such entry.
    """
    if action not in ACTIONS:
        raise ConfigError(f"there is no action {quote(action)}{nearest(action, ACTIONS)}")
    if bool(entry_id) == (action == "none_useful"):
        rule = "is about the whole list, so leave the entry out" if entry_id else "is about an entry; name it"
        raise ConfigError(f"the action {action} {rule}")
    _utf8(entry_id)
    place = quote(str(path), PATH_WIDTH)
    listed = _shown_list(Path(path), query_id)
    if listed is None or (shown_to is not None and listed.get("client_id", "") != shown_to):
        raise ConfigError(f"no impression in {place} has the id {quote(query_id)}; log the search first")
    if entry_id and entry_id not in {hit.get("object_id") for hit in listed["hits"]}:
        raise ConfigError(
            f"the list {quote(query_id)} in {place} does not show {quote(entry_id)}; name one it shows"
        )
    stamp = format_time(clock())
    act = {"action_name": action, "timestamp": stamp, **({"object_id": entry_id} if entry_id else {})}
    record = {"schema_version": SCHEMA_VERSION, "timestamp": stamp, "query_id": query_id, "actions": [act]}
    append(path, [{**record, **({"client_id": client[:LONGEST_TEXT]} if client else {})}])


def append(path: str | Path, records: list[dict[str, object]]) -> None:
    """Append lines in one write under a lock; MachineError when that cannot be done.

    ConfigError for odd text, and for a file that is neither empty nor a log.
    """
    data = _utf8("".join(map(line, records)))
    try:
        target = regular_target(Path(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(target, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)
        try:
            with _locked(handle):
                size, head = os.fstat(handle).st_size, os.pread(handle, 2**16, 0)
                # A vault, a corpus, a weights file, and what is compressed begin otherwise.
                if size and not (head[:1] == b"{" and head[1:2] != b"\n" and b'"schema_version"' in head):
                    raise ConfigError(f"{quote(str(path), PATH_WIDTH)} is not a feedback log; name a new file")
                torn = size and os.pread(handle, 1, size - 1) != b"\n"
                view = memoryview(b"\n" + data if torn else data)
                while view:  # a disk that is full may take some of the bytes
                    view = view[os.write(handle, view) :]
        finally:
            os.close(handle)
    except OSError as error:
        place = quote(str(path), PATH_WIDTH)
        reason = error.strerror or str(error)
        raise MachineError(f"cannot append to {place}: {reason}; free space or check permissions") from None


def line(record: Mapping[str, object]) -> str:
    """One line of a log."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def _own_bytes(key: str, value: str) -> bytes:
    """The bytes of a key and its value in a line; behind them only the line of a policy ends."""
    return _utf8(f'"{key}":{json.dumps(value, ensure_ascii=False)}')


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # bytes of an argument that were no UTF-8
        odd = quote(text[error.start])
        raise ConfigError(f"{odd} is not valid Unicode; write ids and clients as UTF-8") from None


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    # Windows has no fcntl; nor has it os.pread, without which no log is written.
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                raise OSError(errno.EBUSY, f"another program has locked it for {LOCK_SECONDS:g} s") from None
            time.sleep(PAUSE)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _shown_list(path: Path, query_id: str) -> dict[str, Any] | None:
    """The newest list of a log with this id; None where there is none."""
    for row in _lines_with(path, _own_bytes("query_id", query_id)):
        try:
            record = json.loads(row)
        except (ValueError, RecursionError):  # a writer was killed in this line, or it is no line of ours
            continue
        listed = record.get("hits") if isinstance(record, dict) and record.get("query_id") == query_id else None
        if isinstance(listed, list):
            return {**record, "hits": [hit for hit in listed if isinstance(hit, dict)]}
    return None


def _lines_with(path: Path, text: bytes) -> Iterator[bytes]:
    """The lines of a file that have these bytes, the last one first.

    It is read and not mapped: a page of a file that somebody cuts off meanwhile ends the process.
    """
    try:
        with open_regular(path) as stream:
            position = os.fstat(stream.fileno()).st_size
            after = b""
            while position > 0:
                position, size = max(position - READ_BYTES, 0), min(position, READ_BYTES)
                first, *whole = (os.pread(stream.fileno(), size, position) + after).split(b"\n")
                yield from (row for row in reversed(whole) if text in row)
                after = first if len(first) <= LONGEST_LINE else b""
            if text in after:
                yield after
    except FileNotFoundError:
        return
    except OSError as error:
        raise MachineError(f"cannot read {quote(str(path), PATH_WIDTH)}: {error.strerror or error}") from None


@dataclass(frozen=True)
class Explore:
    """In which share of the searches two rankings take turns in filling the list, and which other one.

    Each place then says which ranking placed its entry, so acts decide between the two without any model of
    examination; and entries move between places, which shows how places are examined (team-draft interleaving;
    Radlinski, Kurup and Joachims, CIKM 2008).

    A tenth identifies how places are examined, and costs nothing that could be measured; ConfigError for a share
    outside 0 to 1. `against` is the other configuration, by default the current one under weights drawn anew each
    time, halfway between its own and random ones. A seed of None gives other draws in every process.
    """

    share: float = 0.1
    against: SearchConfig | None = None
    seed: int | None = None
    _random: random.Random = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigError(f"the share {self.share} of searches to explore is not between 0 and 1")
        object.__setattr__(self, "_random", random.Random(self.seed))  # noqa: S311 -- no secret depends on it

    def draw(self, config: SearchConfig) -> SearchConfig | None:
        """The configuration to interleave with in this search; None in most of them."""
        if self._random.random() >= self.share:
            return None
        if self.against is not None:
            return self.against
        weights = config.strategy.weights
        drawn = [self._random.expovariate(1.0) for _ in weights]
        scale = sum(weights) / (sum(drawn) or 1.0)
        mixed = [round((a + scale * b) / 2, 4) for a, b in zip(weights, drawn, strict=True)]
        return config.with_strategy(config.strategy.with_weights(mixed)) if mixed else None

    def coin(self) -> bool:
        """Who picks first."""
        return self._random.random() < 0.5


def draft_teams(
    first: Sequence[T], second: Sequence[T], length: int, coin: Callable[[], bool]
) -> list[tuple[T, bool]]:
    """Interleave two rankings: (entry, whether the first ranking placed it), best first.

    In each round a coin decides who picks first; each ranking then picks its best entry that is not in the list.

    >>> draft_teams("ab", "ba", 2, lambda: True)
    [('a', True), ('b', False)]
    """
    teams = [list(reversed(first)), list(reversed(second))]
    made: dict[T, bool] = {}
    while len(made) < length and any(teams):
        for team in (0, 1) if coin() else (1, 0):
            while teams[team] and teams[team][-1] in made:
                teams[team].pop()
            if teams[team] and len(made) < length:
                made[teams[team].pop()] = team == 0
    return list(made.items())


def drafted(
    own: SearchResult, theirs: SearchResult, config: SearchConfig, other: SearchConfig, coin: Callable[[], bool]
) -> SearchResult:
    """Two results of one query as one list, as long as the longer of them, that says who placed each hit.

    A hit keeps the score of the ranking that placed it; `SearchResult.behind` gives the result it is from.
    """
    both = [{hit.entry.id: hit for hit in result.hits} for result in (own, theirs)]
    order = draft_teams(list(both[0]), list(both[1]), max(map(len, both)), coin)
    hits = (replace(both[not first][name], rank=rank) for rank, (name, first) in enumerate(order, 1))
    names = {True: policy_of(config), False: policy_of(other)}
    placed = tuple(names[first] for _, first in order)
    return replace(own, hits=tuple(hits), explored=(other,), placed_by=placed, parts=(own, theirs))
