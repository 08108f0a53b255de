"""Which field of an entry a foreign column or key stands for, guessed by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.base.fields import LIST_FIELDS, TEXT_FIELDS, TIME_FIELDS
from steelyard.memory.entry import FIELDS

_WORDS = {
    "id": "id key uuid guid docid documentid entryid memoryid pid docno rowid",
    "text": "text content contents body what memory data document passage note message summary value description",
    "title": "title name heading headline subject",
    "tags": "tags tag labels keywords topics",
    "created_at": "createdat created date day timestamp time createdtime createdon datetime",
    "updated_at": "updatedat updated modified lastmodified modifiedat updatedon",
    "category": "category kind class",
    "project": "project workspace repo repository folder",
    "source": "source author origin",
    "importance": "importance priority",
}
ALIASES = {field: tuple(words.split()) for field, words in _WORDS.items()}
"""Field -> names that other programs have for it, best first, without case and punctuation."""


def guessed(names: Iterable[str]) -> dict[str, str]:
    """Field -> the column that stands for it: a column of the field's own name, else the best alias.

    >>> guessed(["uuid", "Content", "created", "severity"])
    {'severity': 'severity', 'id': 'uuid', 'text': 'Content', 'created_at': 'created'}
    """
    left = dict.fromkeys(names)
    columns = {name: name for name in left if name in FIELDS}
    for name in columns:
        del left[name]
    for field, aliases in ALIASES.items():
        if field in columns:
            continue
        bare = {re.sub(r"[\W_]+", "", name).casefold(): name for name in reversed(left)}
        column = next((bare[alias] for alias in aliases if alias in bare), None)
        if column is not None:
            columns[field] = column
            del left[column]
    return columns


def mapped(row: Mapping[str, object], columns: Mapping[str, str]) -> dict[str, object]:
    """The row with fields in place of the columns that stand for them; other columns are kept as they are."""
    taken = set(columns.values())
    record = {name: value for name, value in row.items() if name not in taken and name not in FIELDS}
    for field, column in columns.items():
        if (value := row.get(column)) is not None:
            record[field] = fitted(field, value)
    return record


def fitted(field: str, value: Any) -> Any:  # noqa: ANN401 -- whatever a column holds
    """A value as its field wants it: texts as texts, tags as a list, numbers that are written as texts."""
    if field in LIST_FIELDS:
        parts = (
            re.split(r"[,;]", value) if isinstance(value, str) else value if isinstance(value, list) else [value]
        )
        return [str(part).strip() for part in parts if str(part).strip()]
    if field in TEXT_FIELDS:
        return value if isinstance(value, str) else str(value)
    if field in FIELDS and field not in TIME_FIELDS and isinstance(value, str) and field != "relations":
        try:
            return float(value)
        except ValueError:
            return value
    return value


def named(value: Mapping[str, object]) -> dict[str, object]:
    """An object of unknown shape as the fields of an entry; an object in the place of the text is looked into.

    >>> named({"content": {"title": "Keys", "body": "Rotate them."}, "tags": ["ops"]})
    {'title': 'Keys', 'text': 'Rotate them.', 'tags': ['ops']}
    """
    columns = guessed(value)
    inner = value.get(columns.get("text", ""))
    if isinstance(inner, Mapping):
        rest = {name: part for name, part in value.items() if name != columns["text"]}
        return named(inner) | mapped(rest, guessed(rest))
    return mapped(value, columns)
