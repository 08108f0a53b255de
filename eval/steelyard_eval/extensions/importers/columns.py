"""Which field of an entry a foreign column or key stands for, guessed by its name.

Vector databases keep the fields of an entry one level below it, as `payload`, `metadata` or `properties`. A key
there is a column, too, named with a dot between: `payload.text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.fields import LIST_FIELDS, TEXT_FIELDS, TIME_FIELDS
from steelyard.memory.entry import FIELDS
from steelyard.memory.text import CONTENT

_WORDS = {
    "id": "id key uuid guid docid documentid entryid memoryid pid docno rowid",
    "text": "text content contents body what memory data document pagecontent passage note message chunk "
    "chunktext summary value description",
    "title": "title name heading headline subject",
    "tags": "tags tag labels keywords topics",
    "created_at": "createdat created date day timestamp time createdtime createdon datetime creationtimeunix",
    "updated_at": "updatedat updated modified lastmodified modifiedat updatedon lastupdatetimeunix",
    "category": "category kind class",
    "project": "project workspace repo repository folder",
    "source": "source author origin",
    "importance": "importance priority",
}
ALIASES = {field: tuple(words.split()) for field, words in _WORDS.items()}
"""Field -> names that other programs have for it, best first, without case and punctuation."""


CONTAINERS = ("payload", "metadata", "properties", "_source", "_additional", "fields", "document", "data", "node")
"""Keys whose objects hold the fields of an entry."""
VECTORS = ("vector", "embedding", "values", "embeddings", "vectors", "dense_vector")
"""Columns of vectors, best first."""
PLAIN_VECTORS = ("", "default", "dense", "text")
"""Names of the vector of an entry that has several, best first."""


def guessed(names: Iterable[str]) -> dict[str, str]:
    """Field -> the column that stands for it: a column of the field's own name, else the best alias.

    Columns one level down stand for fields that no other does.

    >>> guessed(["uuid", "Content", "created", "severity"])
    {'severity': 'severity', 'id': 'uuid', 'text': 'Content', 'created_at': 'created'}
    >>> guessed(["id", "payload.text", "payload.id"])
    {'id': 'id', 'text': 'payload.text'}
    """
    names = list(dict.fromkeys(names))
    below = {name: name.split(".", 1) for name in names if name.partition(".")[0] in CONTAINERS and "." in name}
    columns = _guessed({name: name for name in names if name not in below})
    for container in CONTAINERS:
        inside = _guessed({key: name for name, (outer, key) in below.items() if outer == container})
        columns |= {field: name for field, name in inside.items() if field not in columns}
    return columns


def _guessed(left: dict[str, str]) -> dict[str, str]:
    """Field -> column, of columns by the name that tells what they are."""
    columns = {name: column for name, column in left.items() if name in FIELDS}
    for name in columns:
        del left[name]
    for field, aliases in ALIASES.items():
        if field in columns:
            continue
        bare = {re.sub(r"[\W_]+", "", name).casefold(): name for name in reversed(left)}
        found = next((bare[alias] for alias in aliases if alias in bare), None)
        if found is not None:
            columns[field] = left.pop(found)
    return columns


def names_of(row: Mapping[str, object], before: str = "") -> Iterator[str]:
    """The columns of a row: its keys, but of a container the keys inside, with a dot between."""
    for name, value in row.items():
        if isinstance(value, Mapping) and value:
            yield from names_of(value, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def value_at(row: Mapping[str, object], column: str) -> object:
    """The value of a column; None where the row has none."""
    value: object = row
    if column in row:
        return row[column]
    for key in column.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def without(row: Mapping[str, object], columns: Iterable[str]) -> dict[str, object]:
    """The row without these columns, and without containers that are then empty."""
    columns = list(columns)
    rest: dict[str, object] = {}
    for name, value in row.items():
        if name in columns:
            continue
        inside = [column.removeprefix(f"{name}.") for column in columns if column.startswith(f"{name}.")]
        if inside and isinstance(value, Mapping):
            value = without(value, inside)
            if not value:
                continue
        rest[name] = value
    return rest


def mapped(row: Mapping[str, object], columns: Mapping[str, str]) -> dict[str, object]:
    """The row with fields in place of the columns that stand for them; other columns are kept as they are."""
    rest = without(row, columns.values())
    record = {name: value for name, value in rest.items() if name not in FIELDS}
    for field, column in columns.items():
        if (value := value_at(row, column)) is not None:
            record[field] = fitted(field, value)
    return record


def vector_of(value: object) -> NDArray[np.float32] | None:
    """The vector in a cell: a list of numbers, one written as text, or the plain one of several by name.

    >>> vector_of("[0.5, 1]"), vector_of({"default": [1, 2]}), vector_of(["a"])
    (array([0.5, 1. ], dtype=float32), array([1., 2.], dtype=float32), None)
    """
    if isinstance(value, Mapping):
        names = [*(name for name in PLAIN_VECTORS if name in value), *value]
        return next((found for name in names if (found := vector_of(value[name])) is not None), None)
    if isinstance(value, str) and value[:1] == "[" and value[-1:] == "]":
        value = re.split(r"[\s,]+", value[1:-1].strip())
    if not isinstance(value, list) or not value:
        return None
    try:
        with np.errstate(over="ignore"):
            return np.array([_number(part) for part in value], dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        return None


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    return float(value)


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


_LETTER = re.compile(r"[^\W\d_]")


def searched(record: Mapping[str, object]) -> dict[str, object]:
    """The record with the sentences that no field stands for in its `context`, which keyword search reads.

    >>> searched({"id": "1", "text": "Rotate keys.", "answer": "Every 90 days.", "unit": "day"})["context"]
    'answer: Every 90 days.'
    """
    fields = [str(record[field]) for field in CONTENT if record.get(field)]
    there = {*fields, *(line for text in fields for line in text.split("\n"))}
    pairs = (pair for name, value in record.items() if name not in FIELDS for pair in _sentences(value, name))
    said = dict.fromkeys(f"{name}: {text}" for name, text in pairs if text not in there)
    return {**record, "context": "\n".join(filter(None, [str(record.get("context") or ""), *said]))}


def _sentences(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Texts of at least two words in a value of any shape, each with the name that it has."""
    if isinstance(value, str) and len(value.split(None, 1)) > 1 and _LETTER.search(value):
        yield name, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _sentences(part, str(key))
    elif isinstance(value, list):
        for part in value:
            yield from _sentences(part, name)


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
