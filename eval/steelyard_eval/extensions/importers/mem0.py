"""mem0: a local Qdrant folder with texts, metadata and vectors, else `history.db` with texts alone.

Facts are those of mem0ai 2.2.1. Qdrant's local files hold pickles, which are read as plain values and never
unpickled. Of a memory that only the history has, the last event counts; who it belongs to is not kept there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.base.errors import DataError, shown
from steelyard_eval.extensions.importers.base import BROKEN, Imported, Importer, Record, filled, picked
from steelyard_eval.extensions.importers.columns import fitted
from steelyard_eval.extensions.importers.database import Database
from steelyard_eval.extensions.importers.pickled import PickleTooLargeError, Unpacking
from steelyard_eval.extensions.importers.source import ForeignStore

HISTORY, META, STORAGE = "history.db", "meta.json", "storage.sqlite"
MODEL = "mem0"
FIELDS = ("title", "category", "tags", "project", "type", "domain", "source")
"""Keys of a user's metadata that fields of ours stand for."""
INTERNAL = frozenset(("data", "text_lemmatized", "hash"))


def matches(source: ForeignStore) -> bool:
    """A folder with mem0's history, or the folder of a local Qdrant alone, which mem0 keeps in /tmp by default."""
    if source.has(HISTORY):
        return source.holds(HISTORY, history=["memory_id"])
    return source.has(META) and next(source.files(STORAGE), None) is not None


def read(source: ForeignStore) -> Imported:
    """The memories that are there now."""
    imported, unread = Imported(recipe="{text}"), 0
    for point in _stored(source):
        try:
            _point(imported, point)
        except BROKEN:
            unread += 1
    imported.note(unread, "point", "of Qdrant left out: no text of a memory is found in them")
    if source.has(HISTORY):
        known = {entry["id"] for entry in imported.entries}
        with source.database(HISTORY) as db:
            left = _last(db, known)
        imported.entries += left
        rest = f"taken from {HISTORY}, which has no user and no metadata"
        imported.note(len(left), "memory is", rest, "memories are")
    return imported


def _stored(source: ForeignStore) -> Iterator[object]:
    """The points of a local Qdrant folder; None for one that is not plain values: pickles are never run."""
    unpacking = Unpacking()
    for name in source.files(STORAGE):
        with source.database(name) as db:
            for row in db.rows("points", "id"):
                try:
                    yield unpacking.plain(row["point"]) if isinstance(row["point"], bytes) else None
                except (ValueError, TypeError):
                    yield None
                except PickleTooLargeError:
                    raise DataError(
                        f"{source}: {shown(name)} has points that unpack to far more than they are; "
                        "export the collection from Qdrant itself"
                    ) from None


def _point(imported: Imported, point: Any) -> None:  # noqa: ANN401 -- whatever the file holds
    payload = point.get("payload")
    if not isinstance(payload, dict) or not isinstance(payload.get("data"), str):
        raise ValueError("no memory")
    if not isinstance(point["id"], str | int) or isinstance(point["id"], bool):
        raise ValueError("no id of Qdrant")
    id_ = str(point["id"])
    known = {name: fitted(name, payload[name]) for name in FIELDS if payload.get(name)}
    rest = {name: value for name, value in payload.items() if name not in INTERNAL and name not in FIELDS}
    imported.entries.append(filled({"id": id_, "text": payload["data"], **known, **rest}))
    vector = point.get("vector")
    dense = vector.get("") if isinstance(vector, dict) else vector
    if isinstance(dense, list) and dense:
        with np.errstate(over="ignore"):
            imported.vector(MODEL, id_, np.array(dense, dtype=np.float32))


def _last(db: Database, known: set[object]) -> list[Record]:
    """The memories that the history alone has, as their last event left them."""
    entries: dict[str, Record] = {}
    for row in db.rows("history"):
        id_ = row["memory_id"]
        if row["event"] == "DELETE":
            entries.pop(id_, None)
        elif id_ not in known:
            form = "id=memory_id text=new_memory created_at updated_at role actor_id"
            entries[id_] = filled(picked(row, form))
    return list(entries.values())


IMPORTER = Importer(
    "mem0",
    "mem0: history.db and a local Qdrant folder",
    matches,
    read,
    lambda environ: [Path(environ.get("MEM0_DIR") or Path.home() / ".mem0")],
)
