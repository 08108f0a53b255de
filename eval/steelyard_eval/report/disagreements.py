"""Finds the queries on which configurations differ most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard_eval.report.text import MISSING, clip, number

Record = Mapping[str, Any]
_QUERIES_SHOWN = 10
_TEXT_COLUMNS = 240


@dataclass(frozen=True)
class Disagreement:
    """A query on which configurations differ, with their values in the order of the labels."""

    text: str
    about: str
    values: tuple[str, ...]
    best: tuple[bool, ...]


def disagreements(results: Record, labels: Sequence[str]) -> tuple[Disagreement, ...]:
    """The queries with the widest range of values, widest first, equal ones by id."""
    ranges = []
    for query in results.get("per_query", ()):
        values = [value for value in query["values"].values() if value is not None]
        if values and max(values) > min(values):
            ranges.append((min(values) - max(values), query["id"], query))
    top = sorted(ranges, key=lambda found: found[:2])[:_QUERIES_SHOWN]
    return tuple(_disagreement(query, labels) for _, _, query in top)


def _disagreement(query: Record, labels: Sequence[str]) -> Disagreement:
    values = [query["values"].get(label) for label in labels]
    best = max(value for value in query["values"].values() if value is not None)
    return Disagreement(
        text=clip(query.get("text") or MISSING, _TEXT_COLUMNS),
        about=", ".join(clip(part, 60) for part in (query["id"], query.get("category")) if part),
        values=tuple(number(value) for value in values),
        best=tuple(value == best for value in values),
    )
