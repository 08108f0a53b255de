"""Checks the lists of a document by hand: there are too many places in them for a schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Found = tuple[str, object, str]
"""Where a fault is, the value, and the rule."""


def ranking_faults(rankings: Mapping[str, Any] | None) -> Iterator[Found]:
    """Every fault of the part `rankings` of a document, whose numbers are finite already."""
    if rankings is None:
        return
    entries, grades, lists = (rankings[name] for name in ("entries", "grades", "lists"))
    if not _texts(entries):
        yield "entries", entries, "must have a text for each entry"
    if not isinstance(grades, Mapping) or not all(_grades(own) for own in grades.values()):
        yield "grades", grades, "must have a whole number for each query and entry"
    if not isinstance(lists, list):
        yield "lists", lists, "must be a list"
        return
    for at, own in enumerate(lists):
        if not (isinstance(own, Mapping) and isinstance(own.get("label"), str)):
            yield f"lists.{at}", own, "must have a label"
        elif not isinstance(own.get("queries"), Mapping):
            yield f"lists.{at}.queries", own.get("queries"), "must have the lists by query"
        else:
            for query, found in own["queries"].items():
                if not _is_list(found):
                    rule = "must have entries, and as many scores and parts of each signal as entries"
                    yield f"lists.{at}.queries.{query}", found, rule


def _texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


def _grades(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(grade, int) and not isinstance(grade, bool) for grade in value.values()
    )


def _is_list(found: object) -> bool:
    if not isinstance(found, Mapping) or not isinstance(found.get("entries"), list):
        return False
    count = len(found["entries"])
    if not all(isinstance(id_, str) for id_ in found["entries"]):
        return False
    if "scores" not in found:
        return True
    parts = found.get("parts")
    return _numbers(found["scores"], count) and (
        isinstance(parts, Mapping) and all(_numbers(values, count) for values in parts.values())
    )


def _numbers(values: object, count: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) == count
        and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    )
