"""An append-only log of what was shown and what was done with it: JSON Lines, one process or many.

Three kinds of line. A *policy* line has a configuration under its hash, once. An *impression* has the query, the
client and the list as it was shown. An *act* line refers to an impression by its `query_id`. Field names follow
OpenSearch's User Behavior Insights where it has one. The workbench learns from such a log (`steelyard learn`).

    log = FeedbackLog("feedback.jsonl", searcher.config)
    result = searcher.search("how do we rotate keys")
    query_id = log.shown(result, client="agent-7")
    log.act(query_id, result.hits[0].entry.id, "cited")
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

from steelyard.base.errors import PATH_WIDTH, ConfigError, MachineError, nearest, shown
from steelyard.base.extensions import extension
from steelyard.base.fields import format_time
from steelyard.base.files import BLOCK, open_regular, regular_target
from steelyard.config.search_config import SearchConfig, policy_of, ranking_of
from steelyard.results import SearchResult

try:
    import fcntl
except ImportError:  # Windows: lines are appended whole, but two processes may need to take turns by themselves
    fcntl = None  # type: ignore[assignment]  # there is no such module on Windows

SCHEMA_VERSION = 1
_Used = Literal["accepted", "used", "cited", "copied", "opened", "clicked", "modified"]
Action = Literal[_Used, "thumbs_up", "thumbs_down", "dismissed", "failed", "reviewed", "none_useful"]
"""What can be done with a result; `none_useful` is about the whole list."""
ACTIONS: tuple[str, ...] = get_args(Action)
PATIENCE, PAUSE = 30.0, 0.005
"""Seconds that a lock is waited for, as whoever has it may have stopped, and between two looks at it."""
LONGEST_LINE = 2**25
"""Bytes: a longer line is none of a log."""
LONGEST_TEXT = 10_000
"""Characters of a query, an id or a client that are logged."""


class FeedbackLog:
    """Writes a feedback log.

    Every line is appended by one write under a lock, so processes may share a file. A writer that is killed loses
    the line that it was writing at most; the next writer begins a new line.

    The file is created with the first line; MachineError when it cannot be written. `config` is what ranks: its
    hash is the `policy` of the impressions, and its record is written once. The clock is in seconds UTC; `new_id`
    makes ids of impressions, random ones by default.
    """

    def __init__(
        self,
        path: str | Path,
        config: SearchConfig,
        *,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self.path = Path(path)
        self.config = config
        self.policy = policy_of(config)
        self._clock = clock
        self._new_id = new_id
        self._named: set[str] = set()

    def shown(self, result: SearchResult, client: str = "") -> str:
        """Log the list of a search as it was shown; returns the id that `act` refers to.

        The text of a query that may hold a secret is left out, and the list is logged all the same.
        """
        self.name(self.config)
        for other in result.explored:
            self.name(other)
        query_id = self._new_id()
        placed = result.placed_by or ("",) * len(result.hits)
        hits = [
            {"object_id": hit.entry.id, "position": hit.rank, "score": hit.score}
            | ({"interleaved": team} if team else {})
            for hit, team in zip(result.hits, placed, strict=True)
        ]
        text = extension("secrets").kept_text(result.query.text)[:LONGEST_TEXT]
        asked: dict[str, object] = {"query_id": query_id, "user_query": text}
        if result.query.filters and (narrowed := result.query.filters.to_json()) is not None:
            asked["filter"] = narrowed
        progress = result.progress
        layers = {"layers": progress.counts()} if progress is not None and progress.asked[0] else {}
        stamp = {"schema_version": SCHEMA_VERSION, "timestamp": format_time(self._clock())}
        by = {"client_id": client[:LONGEST_TEXT]} if client else {}
        append(self.path, [{**stamp, **by, **asked, "policy": self.policy, "hits": hits, **layers}])
        return query_id

    def act(self, query_id: str, entry_id: str = "", action: str = "accepted", client: str = "") -> None:
        """Log what was done with an entry of an impression; without an entry, with the whole list.

        Raises ConfigError for an unknown action, and for an entry where the action is about the whole list.
        """
        append_act(self.path, query_id, entry_id, action, client, self._clock)

    def name(self, config: SearchConfig) -> None:
        """Write the record of a configuration, unless the log has it."""
        policy = self.policy if config is self.config else policy_of(config)
        if policy not in self._named and not any(_lines_with(self.path, policy_key(policy))):
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
    """Append an act to a log; ConfigError when no list of the log has this id, or that list shows no such entry.

    `shown_to` is the client to whom the list must have been shown, where that is known.
    """
    if action not in ACTIONS:
        raise ConfigError(f"there is no action {shown(action)}{nearest(action, ACTIONS)}")
    if bool(entry_id) == (action == "none_useful"):
        rule = "is about the whole list, so leave the entry out" if entry_id else "is about an entry; name it"
        raise ConfigError(f"the action {action} {rule}")
    _utf8(entry_id)
    place = shown(str(path), PATH_WIDTH)
    listed = _shown_list(Path(path), query_id)
    if listed is None or (shown_to is not None and listed.get("client_id", "") != shown_to):
        raise ConfigError(f"no impression in {place} has the id {shown(query_id)}; log the search first")
    if entry_id and entry_id not in {hit.get("object_id") for hit in listed["hits"]}:
        raise ConfigError(
            f"the list {shown(query_id)} in {place} does not show {shown(entry_id)}; name one it shows"
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
                size = os.fstat(handle).st_size
                if size and not _begins_a_log(os.pread(handle, 2**16, 0)):
                    raise ConfigError(f"{shown(str(path), PATH_WIDTH)} is no feedback log; name a new file")
                torn = size and os.pread(handle, 1, size - 1) != b"\n"
                view = memoryview(b"\n" + data if torn else data)
                while view:  # a disk that is full may take some of the bytes
                    view = view[os.write(handle, view) :]
        finally:
            os.close(handle)
    except OSError as error:
        place = shown(str(path), PATH_WIDTH)
        reason = error.strerror or str(error)
        raise MachineError(f"cannot append to {place}: {reason}; free space or check permissions") from None


def _begins_a_log(head: bytes) -> bool:
    """Whether a file may be one: not a vault, a corpus, a weights file, or what is compressed."""
    return head[:1] == b"{" and head[1:2] != b"\n" and b'"schema_version"' in head


def line(record: Mapping[str, object]) -> str:
    """One line of a log."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def policy_key(policy: str) -> bytes:
    """The bytes that only the line of a policy has."""
    return f'"policy":{json.dumps(policy, ensure_ascii=False)}}}'.encode()


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # bytes of an argument that were no UTF-8
        odd = shown(text[error.start])
        raise ConfigError(f"{odd} is not valid Unicode, and a log is UTF-8; write ids and clients so") from None


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    until, waits = time.monotonic() + PATIENCE, True
    while waits:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            waits = False
        except BlockingIOError:
            if time.monotonic() > until:
                raise OSError(errno.EBUSY, f"another program has locked it for {PATIENCE:g} s") from None
            time.sleep(PAUSE)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _shown_list(path: Path, query_id: str) -> dict[str, Any] | None:
    """The newest list of a log with this id; None where there is none."""
    for row in _lines_with(path, _utf8(f'"query_id":{json.dumps(query_id, ensure_ascii=False)}')):
        try:
            record = json.loads(row)
        except (ValueError, RecursionError):  # a writer was killed in this line, or it is no line of ours
            continue
        if (
            isinstance(record, dict)
            and record.get("query_id") == query_id
            and isinstance(record.get("hits"), list)
        ):
            return record | {"hits": [hit for hit in record["hits"] if isinstance(hit, dict)]}
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
                position, size = max(position - BLOCK, 0), min(position, BLOCK)
                first, *whole = (os.pread(stream.fileno(), size, position) + after).split(b"\n")
                yield from (row for row in reversed(whole) if text in row)
                after = first if len(first) <= LONGEST_LINE else b""
            if text in after:
                yield after
    except FileNotFoundError:
        return
    except OSError as error:
        raise MachineError(f"cannot read {shown(str(path), PATH_WIDTH)}: {error.strerror or error}") from None
