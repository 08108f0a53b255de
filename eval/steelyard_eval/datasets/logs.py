"""Reads a feedback log line by line, however long it is; lines are checked while they are decoded."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from steelyard.base.errors import PATH_WIDTH, DataError, quote
from steelyard.base.files import lines
from steelyard.feedback import Action
from steelyard.memory.query import Filters
from steelyard_eval.datasets.file_reader import FolderReader

MAX_LINE_BYTES = 1_000_000
MOST_HITS = 1000
MAX_RULE_CHARS = 200

MAX_LOG_FAULTS = 1_000

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]
Text = Annotated[str, msgspec.Meta(max_length=10_000)]
Place = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]


class LoggedHit(msgspec.Struct, gc=False):
    """An entry that was shown at a place."""

    object_id: Name
    position: Place
    score: float | None = None
    examined_probability: Share | None = None
    interleaved: Text | None = None


class Act(msgspec.Struct, gc=False):
    """What was done with an entry, or with the whole list."""

    action_name: Action
    object_id: Text = ""
    strength: Literal["strong", "medium", "weak"] | None = None


class Layers(msgspec.Struct, gc=False):
    """How far a layered search went: `steelyard.fusion.layered.COUNTS`."""

    step: Annotated[int, msgspec.Meta(ge=-1, le=100)]
    directories: Count
    refined: Count
    entries: Count
    ranked: Count


class LogLine(msgspec.Struct, gc=False):
    """A line: an impression when it has hits, acts on an earlier one when it has none, or a policy.

    An impression with `actions`, were they none, is complete; one without waits for lines of acts. `query_key`
    stands for a text that is not kept, `search` names the search in the log that it was read from.
    """

    schema_version: Literal[1]
    timestamp: datetime | None = None
    query_id: Text = ""
    user_query: Text = ""
    query_key: Text = ""
    search: Text = ""
    filter: dict[str, object] | None = None
    client_id: Text = ""
    policy: Text = ""
    hits: Annotated[list[LoggedHit], msgspec.Meta(max_length=MOST_HITS)] = []
    actions: Annotated[list[Act], msgspec.Meta(max_length=MOST_HITS)] | None = None
    configuration: dict[str, object] | None = None
    simulated: bool = False
    layers: Layers | None = None

    @property
    def filters(self) -> Filters | None:
        """What the search was narrowed to, None where the line does not say; ConfigError for what is no filter."""
        return None if self.filter is None else Filters.of(self.filter)

    @property
    def seconds(self) -> float | None:
        """The time in seconds UTC; a time without zone is UTC."""
        timestamp = self.timestamp
        if timestamp is None:
            return None
        return (timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)).timestamp()


_DECODER = msgspec.json.Decoder(LogLine)
_INDEX = re.compile(r"\[\d+\]")


def decode(raw: bytes) -> LogLine:
    """Decode one line; ValueError with the rule that it breaks, alike for alike lines."""
    if len(raw) > MAX_LINE_BYTES:
        raise ValueError(f"is longer than {MAX_LINE_BYTES:,} bytes")
    try:
        return _DECODER.decode(raw)
    except msgspec.ValidationError as error:
        raise ValueError(_INDEX.sub("[...]", str(error))[:MAX_RULE_CHARS]) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        if b"NaN" in raw or b"Infinity" in raw:
            raise ValueError("has NaN or infinity as a number") from None
        kind = str(error).partition(" (byte")[0]
        raise ValueError(f"is not valid JSON: {kind}") from None


def check_log(reader: FolderReader, name: str) -> None:
    """Record a fault for each line of a log that breaks its schema."""
    count = 0
    try:
        for number, raw in lines_of(reader.folder / name):
            try:
                decode(raw)
            except ValueError as error:
                reader.fault(name, number, "", "", str(error), "Correct the line; until then, learning skips it")
                count += 1
            if count >= MAX_LOG_FAULTS:
                return
    except DataError as error:
        reader.fault(name, 0, "", "", f"cannot be read ({error})", "Put a readable log there")


@dataclass(frozen=True)
class HeldLog:
    """A log in memory: texts of queries that no file keeps are in its lines."""

    name: str
    lines: tuple[bytes, ...]

    def __str__(self) -> str:
        return self.name


def lines_of(path: str | Path | HeldLog) -> Iterator[tuple[int, bytes]]:
    """The lines of a log that are not blank with their numbers, compressed or not; DataError for no such file."""
    if isinstance(path, HeldLog):
        yield from enumerate(path.lines, 1)
        return
    try:
        yield from lines(path, MAX_LINE_BYTES)
    except OSError as error:
        place, reason = quote(str(path), PATH_WIDTH), error.strerror or error
        raise DataError(f"cannot read the feedback log {place}: {reason}; name a JSON Lines file") from None
