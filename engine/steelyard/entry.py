"""What a vault holds and what a search asks: entries, queries, filters, hits.

Field names are those of the data-set format; each system's own names are mapped onto them by its
preset. Times are seconds since 1970-01-01 UTC; a time without a zone is UTC.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from steelyard.errors import ConfigError, Fault, nearest, shown


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed edge from an entry to another; `strength` is on the scale of its data set, or absent."""

    type: str
    target: str
    strength: float | None = None
    status: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One document of the corpus. Only `id` is required; an empty string means "not given"."""

    id: str
    title: str = ""
    text: str = ""
    context: str = ""
    why: str = ""
    impact: str = ""
    details: str = ""
    l0: str = ""
    l1: str = ""
    type: str = ""
    category: str = ""
    domain: str = ""
    severity: str = ""
    tags: tuple[str, ...] = ()
    importance: float | None = None
    project: str = ""
    source: str = ""
    vault: str = ""
    tenant: str = ""
    kind: str = ""
    uri: str = ""
    speaker: str = ""
    spec_level: str = ""
    visibility: str = ""
    embedding_status: str = ""
    superseded_by: str = ""
    participants: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    stability: float | None = None
    difficulty: float | None = None
    review_count: float | None = None
    access_count: float | None = None
    half_life_days: float | None = None
    created_at: float | None = None
    updated_at: float | None = None
    last_accessed_at: float | None = None
    last_review: float | None = None
    valid_from: float | None = None
    valid_until: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filters:
    """The scope of a search: every named field equals its value (case-sensitive)."""

    equals: tuple[tuple[str, str | float], ...] = ()

    @classmethod
    def of(cls, mapping: Mapping[str, Any]) -> Filters:
        """Check names and values of ``{field: value}`` and freeze them, sorted by field.

        Raises ConfigError naming every unknown field and every value that is not a scalar.
        """
        problems = [
            f"unknown filter field {shown(name)}{nearest(name, FILTERABLE)}"
            for name in mapping
            if name not in FILTERABLE
        ]
        problems += [
            f"filter {shown(name)} = {shown(value)} must be a string of valid Unicode or a number"
            for name, value in mapping.items()
            if not _is_scalar(value)
        ]
        if problems:
            raise ConfigError("; ".join(problems))
        return cls(tuple(sorted((name, _bindable(value)) for name, value in mapping.items())))

    def __bool__(self) -> bool:
        return bool(self.equals)


EVERYTHING = Filters()
"""The scope that leaves nothing out."""


@dataclass(frozen=True, slots=True)
class Query:
    """One request. `asked_at` (seconds UTC) is its clock; `group` ties queries that share a cause."""

    text: str
    id: str = ""
    filters: Filters = EVERYTHING
    asked_at: float | None = None
    intent: str = ""
    category: str = ""
    group: str = ""
    tags: tuple[str, ...] = ()
    domain: str = ""
    split: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: `rank` from 1, `score` (None where a finish stage appended the entry unscored)."""

    rank: int
    score: float | None
    entry: Entry


def parse_time(value: object) -> float:
    """Seconds UTC of an ISO 8601 date or date-time, or of a number that is already seconds.

    >>> parse_time("1970-01-02")
    86400.0
    >>> parse_time("1970-01-01T01:00:00+01:00")
    0.0
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("not a time")
    if isinstance(value, str):
        moment = datetime.fromisoformat(value)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    else:
        seconds = _number(value)
    datetime.fromtimestamp(seconds, UTC)  # raises for milliseconds and all else beyond the year 9999
    return seconds


def format_time(seconds: float | None) -> str:
    """ISO 8601 in UTC with a final Z, or the empty string for an absent time."""
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a string")
    value.encode("utf-8")  # lone surrogates from \ud800 escapes cannot be stored
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("not a finite number")
    return float(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("not a list")
    return tuple(_text(item) for item in value)


def _is_scalar(value: object) -> bool:
    try:
        _text(value) if isinstance(value, str) else _number(value)
    except (ValueError, OverflowError):
        return False
    return True


def _bindable(value: str | float) -> str | float:
    """Whole numbers beyond 64 bits as floats, which is how a store holds them."""
    return float(value) if isinstance(value, int) and abs(value) >= 2**63 else value


def _relations(value: object) -> tuple[Relation, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("not a list")
    found = []
    for item in value:
        if not isinstance(item, Mapping) or "type" not in item or "target" not in item:
            raise ValueError("not a relation")
        strength = item.get("strength")
        found.append(
            Relation(
                _text(item["type"]),
                _text(item["target"]),
                None if strength is None else _number(strength),
                _text(item.get("status") or ""),
            )
        )
    return tuple(found)


_RULES: dict[Callable[[Any], Any], tuple[str, str]] = {
    _text: ("must be a string of valid Unicode", 'Write it as "..." without lone surrogates'),
    _number: ("must be a finite number", "Write a number, or leave the field out"),
    _texts: ("must be a list of strings", 'Write it as ["...", "..."]'),
    _relations: (
        "must be a list of relations",
        'Write it as [{"type": "...", "target": "..."}], strength a number',
    ),
    parse_time: ("must be an ISO 8601 date or time", "Write it as 2026-11-21 or 2026-11-21T10:00:00Z"),
}

_TIMES = {"created_at", "updated_at", "last_accessed_at", "last_review", "valid_from", "valid_until"}


def _parser(name: str, annotation: str) -> Callable[[Any], Any]:
    if name in _TIMES:
        return parse_time
    if annotation.startswith("float"):
        return _number
    if annotation.startswith("tuple[Relation"):
        return _relations
    return _texts if annotation.startswith("tuple") else _text


FIELDS: dict[str, Callable[[Any], Any]] = {
    f.name: _parser(f.name, str(f.type)) for f in dataclasses.fields(Entry) if f.name != "extra"
}
"""Every entry field with the function that reads its JSON value."""

TEXT_FIELDS = frozenset(name for name, parser in FIELDS.items() if parser is _text)
NUMBER_FIELDS = frozenset(name for name, parser in FIELDS.items() if parser in (_number, parse_time))
FILTERABLE = (TEXT_FIELDS | NUMBER_FIELDS) - {"id"}
"""Fields a filter may name: those with one string or one number."""

QUERY_FIELDS: dict[str, Callable[[Any], Any]] = {
    "id": _text,
    "text": _text,
    "asked_at": parse_time,
    "intent": _text,
    "category": _text,
    "group": _text,
    "tags": _texts,
    "domain": _text,
    "split": _text,
}


def read_fields(
    record: Mapping[str, Any], parsers: Mapping[str, Callable[[Any], Any]], file: str, line: int
) -> tuple[dict[str, Any], list[Fault]]:
    """Read the known fields of a JSON object; null counts as absent. Returns values and faults."""
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, raw in record.items():
        parser = parsers.get(name)
        if parser is None or raw is None:
            continue
        try:
            values[name] = parser(raw)
        except (ValueError, OverflowError):
            rule, remedy = _RULES[parser]
            faults.append(Fault(file, line, name, shown(raw), rule, remedy))
    for name in ("id", "text"):
        if name in parsers and record.get(name) is None and (name == "id" or parsers is QUERY_FIELDS):
            faults.append(Fault(file, line, name, "", "is missing", f'Add "{name}"'))
    identifier = values.get("id")
    if identifier is not None and (not identifier or any(c.isspace() for c in identifier)):
        rule = "must be non-empty and without white space, because TREC files separate by it"
        faults.append(Fault(file, line, "id", shown(identifier), rule, "Choose another id"))
    return values, faults


def read_entry(record: Mapping[str, Any], file: str = "entry", line: int = 0) -> tuple[Entry | None, list[Fault]]:
    """Build an Entry from a JSON object, keeping unknown fields in `extra`; None when faulty."""
    values, faults = read_fields(record, FIELDS, file, line)
    if faults:
        return None, faults
    extra = {name: value for name, value in record.items() if name not in FIELDS}
    return Entry(**values, extra=extra), []


def read_query(record: Mapping[str, Any], file: str = "query", line: int = 0) -> tuple[Query | None, list[Fault]]:
    """Build a Query from a JSON object with its optional `filter`; None when faulty."""
    values, faults = read_fields(record, QUERY_FIELDS, file, line)
    filters = EVERYTHING
    scope = record.get("filter")
    if scope is not None:
        try:
            filters = Filters.of(scope if isinstance(scope, Mapping) else {"filter": scope})
        except ConfigError as error:
            faults.append(Fault(file, line, "filter", shown(scope), str(error), 'Write {"field": "value"}'))
    return (None, faults) if faults else (Query(**values, filters=filters), [])
