"""What a search asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.entry import read_fields
from steelyard.errors import ConfigError, Fault, shown
from steelyard.fields import Reader, parse_time, read_text, read_texts
from steelyard.filters import EVERYTHING, Filters


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


QUERY_FIELDS: dict[str, Reader] = {
    "id": read_text,
    "text": read_text,
    "asked_at": parse_time,
    "intent": read_text,
    "category": read_text,
    "group": read_text,
    "tags": read_texts,
    "domain": read_text,
    "split": read_text,
}


def read_query(record: Mapping[str, Any], file: str = "query", line: int = 0) -> tuple[Query | None, list[Fault]]:
    """Build a Query from a JSON object with its optional `filter`; None when faulty."""
    values, faults = read_fields(record, QUERY_FIELDS, ("id", "text"), file, line)
    filters = EVERYTHING
    scope = record.get("filter")
    if scope is not None:
        try:
            filters = Filters.of(scope if isinstance(scope, Mapping) else {"filter": scope})
        except ConfigError as error:
            faults.append(Fault(file, line, "filter", shown(scope), str(error), 'Write {"field": "value"}'))
    return (None, faults) if faults else (Query(**values, filters=filters), [])
