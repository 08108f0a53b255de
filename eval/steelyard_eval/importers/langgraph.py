"""LangGraph's store of long-term memory in SQLite: the tables `store` and `store_vectors`.

Columns are those of langgraph-checkpoint-sqlite 3. A value is any JSON object, so its text is looked for by name.
Vectors of deleted items are still in the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.base.files import STRICT_JSON
from steelyard_eval.importers.base import Imported, Importer, Record, filled, identifier
from steelyard_eval.importers.columns import named
from steelyard_eval.importers.database import Database
from steelyard_eval.importers.source import ForeignStore

MODEL = "langgraph"


def matches(source: ForeignStore) -> bool:
    """An SQLite file with the table `store`."""
    return not source.path.is_dir() and source.is_database(source.path.name) and "prefix" in _columns(source)


def _columns(source: ForeignStore) -> list[str]:
    with source.database(source.path.name) as db:
        return db.columns.get("store", [])


def read(source: ForeignStore) -> Imported:
    """Every item, with the vector of its whole value."""
    found = Imported()
    with source.database(source.path.name) as db:
        ids = {}
        for row in db.rows("store", "prefix"):
            entry = _entry(row, db)
            ids[row["prefix"], row["key"]] = entry["id"]
            found.entries.append(entry)
        for row in db.rows("store_vectors", "prefix"):
            if (row["prefix"], row["key"]) in ids and row["field_name"] == "$":
                vector = np.frombuffer(db.blob(row["embedding"]), "<f4")
                found.vectors.setdefault(MODEL, {})[ids[row["prefix"], row["key"]]] = vector
    return found


def _entry(row: Record, db: Database) -> Record:
    raw = row["value"]
    value = _value(raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw), db)
    prefix = row["prefix"]
    entry = named(value)
    return filled(
        {
            "id": identifier(f"{prefix}/{row['key']}"),
            **{name: part for name, part in entry.items() if name not in ("id", "uri")},
            "uri": f"{prefix}/{row['key']}",
            "project": prefix.rpartition(".")[2],
            "namespace": prefix.split("."),
            "item_key": row["key"],
            "created_at": _time(row["created_at"]),
            "updated_at": _time(row["updated_at"]),
            "ttl_minutes": row.get("ttl_minutes"),
            "value": value,
        }
    )


def _value(text: str, db: Database) -> dict[str, Any]:
    try:
        value = STRICT_JSON.decode(text)
    except (ValueError, RecursionError) as error:
        raise db.damaged(f"a value is no JSON: {error}") from None
    return value if isinstance(value, dict) else {"text": str(value)}


def _time(value: object) -> str | None:
    """SQLite's own form of a time, in UTC, as ISO 8601."""
    return f"{value}".replace(" ", "T") if value else None


IMPORTER = Importer("langgraph", "LangGraph: the SQLite file of a store", matches, read)
