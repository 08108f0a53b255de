"""LangGraph's store of long-term memory in SQLite or PostgreSQL: the tables `store` and `store_vectors`.

Columns are those of langgraph-checkpoint-sqlite and langgraph-checkpoint-postgres 3. A value is any JSON object,
so its text is looked for by name. Vectors of deleted items are still in an SQLite file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.files import STRICT_JSON
from steelyard_eval.extensions.importers.base import (
    Imported,
    Importer,
    LiveTables,
    Record,
    Row,
    filled,
    identifier,
)
from steelyard_eval.extensions.importers.columns import named, searched
from steelyard_eval.extensions.importers.postgres import LiveDatabase
from steelyard_eval.extensions.importers.source import ForeignStore

MODEL = "langgraph"


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
    items: Iterable[Row], vectors: Iterable[Row], vector_of: Callable[[Any], NDArray[np.float32] | None]
) -> Imported:
    imported = Imported(recipe="")
    imported.add(items, _entry)
    known = {entry["id"] for entry in imported.entries}
    for row in vectors:
        if (id_ := _id(row)) in known and row["field_name"] == "$" and row["embedding"] is not None:
            imported.vector(MODEL, id_, vector_of(row["embedding"]))
    return imported


def _id(row: Row) -> str:
    return identifier(f"{row['prefix']}/{row['key']}")


def _entry(row: Row) -> Record:
    raw, prefix = row["value"], row["prefix"]
    value = STRICT_JSON.decode(raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw))
    value = value if isinstance(value, dict) else {"text": str(value)}
    entry, minutes = searched(named(value)), None
    with suppress(ValueError):
        minutes = float(str(row.get("ttl_minutes")))
    return filled(
        {
            "id": _id(row),
            **{name: part for name, part in entry.items() if name not in ("id", "uri")},
            "uri": f"{prefix}/{row['key']}",
            "project": prefix.rpartition(".")[2],
            "namespace": prefix.split("."),
            "item_key": row["key"],
            **{name: f"{row[name] or ''}".replace(" ", "T") for name in ("created_at", "updated_at")},
            "ttl_minutes": minutes,
            "value": value,
        }
    )


IMPORTER = Importer(
    "langgraph",
    "LangGraph: the SQLite file of a store, or postgresql://...",
    lambda source: not source.path.is_dir() and source.holds(source.path.name, store=["prefix"]),
    read,
    live=LiveTables({"store": ("prefix", "key", "value")}, read_live),
)
