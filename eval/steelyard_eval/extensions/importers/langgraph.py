"""LangGraph's store of long-term memory in SQLite or PostgreSQL: the tables `store` and `store_vectors`.

Columns are those of langgraph-checkpoint-sqlite and langgraph-checkpoint-postgres 3. A value is any JSON object,
so its text is looked for by name. Vectors of deleted items are still in an SQLite file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.files import STRICT_JSON
from steelyard_eval.extensions.importers.base import Imported, Importer, LiveTables, Record, filled, identifier
from steelyard_eval.extensions.importers.columns import named, searched
from steelyard_eval.extensions.importers.postgres import LiveDatabase
from steelyard_eval.extensions.importers.source import ForeignStore

MODEL = "langgraph"


def matches(source: ForeignStore) -> bool:
    """An SQLite file with the table `store`."""
    if source.path.is_dir() or not source.is_database(source.path.name):
        return False
    with source.database(source.path.name) as db:
        return "prefix" in db.columns.get("store", [])


def read(source: ForeignStore) -> Imported:
    """Every item, with the vector of its whole value."""
    with source.database(source.path.name) as db:
        imported = _imported(db.rows("store", "prefix"), db.rows("store_vectors", "prefix"), db.floats)
        imported.notes += db.notes()
        return imported


def read_live(database: LiveDatabase) -> Imported:
    """The same of the tables of a running database."""
    return _imported(
        database.rows("store", ("prefix", "key")),
        database.rows("store_vectors", ("prefix", "key")),
        lambda text: np.array(STRICT_JSON.decode(text), dtype=np.float32),
    )


def _imported(
    items: Iterable[Mapping[str, object]],
    vectors: Iterable[Mapping[str, object]],
    vector_of: Callable[[Any], NDArray[np.float32] | None],
) -> Imported:
    imported, kept = Imported(), dict[str, NDArray[np.float32]]()
    imported.add(items, _entry)
    known = {entry["id"] for entry in imported.entries}
    for row in vectors:
        id_ = _id(row)
        if id_ not in known or row["field_name"] != "$" or row["embedding"] is None:
            continue
        if (vector := vector_of(row["embedding"])) is not None:
            kept[id_] = vector
    imported.vectors = {MODEL: kept} if kept else {}
    return imported


def _id(row: Mapping[str, Any]) -> str:
    return identifier(f"{row['prefix']}/{row['key']}")


def _entry(row: Mapping[str, Any]) -> Record:
    raw = row["value"]
    value = _value(raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw))
    prefix = row["prefix"]
    entry = searched(named(value))
    return filled(
        {
            "id": _id(row),
            **{name: part for name, part in entry.items() if name not in ("id", "uri")},
            "uri": f"{prefix}/{row['key']}",
            "project": prefix.rpartition(".")[2],
            "namespace": prefix.split("."),
            "item_key": row["key"],
            "created_at": _time(row["created_at"]),
            "updated_at": _time(row["updated_at"]),
            "ttl_minutes": _number(row.get("ttl_minutes")),
            "value": value,
        }
    )


def _number(value: object) -> float | None:
    try:
        return None if value in (None, "") else float(str(value))
    except ValueError:
        return None


def _value(text: str) -> dict[str, object]:
    """ValueError for what is no JSON."""
    value = STRICT_JSON.decode(text)
    return value if isinstance(value, dict) else {"text": str(value)}


def _time(value: object) -> str | None:
    """SQLite's own form of a time, in UTC, as ISO 8601."""
    return f"{value}".replace(" ", "T") if value else None


IMPORTER = Importer(
    "langgraph",
    "LangGraph: the SQLite file of a store, or postgresql://...",
    matches,
    read,
    live=LiveTables(("store",), ("prefix", "key", "value"), read_live),
)
