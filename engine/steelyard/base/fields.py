"""The fields of entries, and how their values are read from JSON."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

TIME_FIELDS = frozenset(
    {"created_at", "updated_at", "last_accessed_at", "last_review", "valid_from", "valid_until"}
)
FIRST_TIME, END_OF_TIME = -62_135_596_800.0, 253_402_300_800.0
"""Seconds UTC from the year 1 to the end of 9999: what a calendar can show."""
NUMBER_FIELDS = TIME_FIELDS | frozenset(
    """importance stability difficulty review_count access_count correction_count
    half_life_days""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
LIST_FIELDS = frozenset({"tags", "participants"})
TEXT_FIELDS = frozenset(
    """id title text context why impact details l0 l1 type category domain severity project source vault tenant
    kind uri speaker spec_level document_type memory_type context_type importance_tier visibility embedding_status
    superseded_by""".split()  # noqa: SIM905 -- a list of 28 words reads worse
)

Reader = Callable[[Any], Any]
"""Reads one JSON value; ValueError or OverflowError when it has the wrong type."""


def parse_time(value: object) -> float:
    """Read a time as seconds UTC, from an ISO 8601 date or date-time or a number of seconds.

    >>> parse_time("1970-01-02")
    86400.0
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("not a time")
    if isinstance(value, str):
        if not value.isascii():
            raise ValueError("not a time in ASCII")
        moment = datetime.fromisoformat(value)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    else:
        seconds = read_number(value)
    try:
        datetime.fromtimestamp(seconds, UTC)  # raises for milliseconds and all else beyond the year 9999
    except OSError as error:  # some numbers do not reach the check of years
        raise ValueError(str(error)) from None
    return seconds


_NUMBER = re.compile(r"[+-]?([0-9]++(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def parse_number(text: str) -> float:
    """A number as it is written in ASCII; ValueError for one in other digits, with underscores, or infinite."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(value := float(text)):
        raise ValueError("not a finite number")
    return value


def format_time(seconds: float | None) -> str:
    """Format a time (seconds UTC) as ISO 8601 with a final Z; empty for None."""
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def read_text(value: object) -> str:
    """Read a string of valid Unicode."""
    if not isinstance(value, str):
        raise ValueError("not a string")
    value.encode("utf-8")  # lone surrogates from \ud800 escapes cannot be stored
    return value


def read_number(value: object) -> float:
    """Read a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("not a finite number")
    return float(value)


def read_texts(value: object) -> tuple[str, ...]:
    """Read a list of strings."""
    if not isinstance(value, list | tuple):
        raise ValueError("not a list")
    return tuple(read_text(item) for item in value)


def read_flag(value: object) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


RULES: dict[Reader, tuple[str, str]] = {
    read_text: ("must be a string of valid Unicode", 'Write it as "..." without lone surrogates'),
    read_number: ("must be a finite number", "Write a number, or leave the field out"),
    read_texts: ("must be a list of strings", 'Write it as ["...", "..."]'),
    read_flag: ("must be true or false", "Write true or false without quotes"),
    parse_time: ("must be an ISO 8601 date or time", "Write it as 2026-11-21 or 2026-11-21T10:00:00Z"),
}
"""For each reader, the rule that a value has to follow and the remedy."""

READERS: dict[str, Reader] = {
    **dict.fromkeys(TEXT_FIELDS, read_text),
    **dict.fromkeys(LIST_FIELDS, read_texts),
    **dict.fromkeys(NUMBER_FIELDS, read_number),
    **dict.fromkeys(TIME_FIELDS, parse_time),
}
"""The reader of every field except relations."""
