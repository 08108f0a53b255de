"""MoltNet: its database while it runs, a plain dump of it, a folder of CSV files of its tables, or a JSON export.

Tables are those of commit 25e711d: `diaries`, `diary_entries`, `entry_relations`. The newer entry of a relation is
its source, the superseded one its target.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping

import numpy as np

from steelyard.base.errors import DataError
from steelyard.base.files import STRICT_JSON
from steelyard_eval.extensions.importers.base import (
    Imported,
    Importer,
    LiveTables,
    Record,
    Row,
    filled,
    grouped,
    picked,
)
from steelyard_eval.extensions.importers.postgres import LiveDatabase, array_of, copied_rows
from steelyard_eval.extensions.importers.source import ForeignStore

FILES = {
    "diaries": ("diaries.csv",),
    "diary_entries": ("diary_entries.csv", "entries.csv"),
    "entry_relations": ("entry_relations.csv", "relations.csv"),
}
"""Its tables, and the names that CSV files of them have."""
ORDERS = {
    "diaries": ("id",),
    "diary_entries": ("created_at", "id"),
    "entry_relations": ("source_id", "created_at", "id"),
}
"""The columns that the rows of a running database are ordered by."""
MODEL = "e5-small-v2"
"""The model of the program's vectors; texts have the prefix "passage: ", which recorded queries lack here."""
ENTRY = "id title text=content tags type=entry_type category importance access_count created_at updated_at "
ENTRY += "last_accessed_at vault=diary_id project tenant visibility relations injection_threats creator_agent_id "
ENTRY += "creator_human_id content_hash content_signature signing_nonce"
Tables = Mapping[str, list[Row]]


def _reader(source: ForeignStore) -> Callable[[ForeignStore], Tables] | None:
    """How the source is read; None where it is something else."""
    name = source.path.name
    if source.path.is_dir():
        files = (file for file in FILES["diary_entries"] if source.has(file))
        csvs = any("diary_id" in next((line for _, line in source.lines(file)), "") for file in files)
        return _csv_tables if csvs else None
    if name.endswith(".sql"):
        return _dumped if any("COPY public.diary_entries (" in line for _, line in source.lines(name)) else None
    if name.endswith(".json"):
        return _exported if '"diary_entries"' in source.text(name, None) else None
    return None


def read(source: ForeignStore) -> Imported:
    """Entries of all diaries, with their relations and vectors."""
    reader = _reader(source)
    if reader is None:
        raise DataError(
            f"{source} holds no diary_entries; name a plain dump, a JSON export or a folder of CSV files"
        )
    try:
        return _imported(reader(source))
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{source} is damaged ({error}); dump or export the tables again") from None


def _imported(tables: Tables) -> Imported:
    imported = Imported(system="moltnet", recipe="{title}\n{text}\ntag:{tag}")
    diaries = {row["id"]: row for row in tables.get("diaries", [])}
    form = "type=relation target=target_id status"
    relations = grouped(tables.get("entry_relations", []), "source_id", form)
    imported.add(
        tables["diary_entries"],
        lambda row: _entry(row, diaries.get(row["diary_id"], {}), relations.get(row["id"], [])),
    )
    for row in tables["diary_entries"]:
        if vector := row.get("embedding"):
            numbers = STRICT_JSON.decode(vector) if isinstance(vector, str) else vector
            imported.vector(MODEL, row["id"], np.array(numbers, dtype=np.float32))
    return imported


def _entry(row: Row, diary: Row, relations: list[Record]) -> Record:
    tags, threats = row.get("tags"), row.get("injection_threats")
    more = {
        "tags": [tag for tag in (array_of(tags) if isinstance(tags, str) else tags or []) if tag is not None],
        "category": "suspicious" if row["injection_risk"] in (True, "t", "true") else None,
        "importance": _number(row["importance"]),
        "access_count": _number(row["access_count"]),
        **picked(diary, "project=name tenant=team_id visibility"),
        "relations": relations,
        "injection_threats": STRICT_JSON.decode(threats) if isinstance(threats, str) else threats,
    }
    return filled(picked(row, ENTRY) | more)


def _number(value: object) -> float | None:
    return None if value in (None, "") else float(str(value))


def _dumped(source: ForeignStore) -> Tables:
    tables: dict[str, list[Row]] = {}
    for table, row in copied_rows(source.text(source.path.name, None).split("\n"), FILES):
        tables.setdefault(table, []).append(row)
    return tables


def _exported(source: ForeignStore) -> Tables:
    tables = source.json(source.path.name)
    if not isinstance(tables, dict) or not all(isinstance(tables.get(name, []), list) for name in FILES):
        raise ValueError("it is no object of tables")
    return tables


def _csv_tables(source: ForeignStore) -> Tables:
    """The rows with None for what is blank, by which COPY ... CSV writes NULL."""
    files = {table: name for table, names in FILES.items() for name in names if source.has(name)}
    texts = {table: io.StringIO(source.text(name, None), newline="") for table, name in files.items()}
    return {
        table: [{name: value or None for name, value in row.items()} for row in csv.DictReader(text)]
        for table, text in texts.items()
    }


def read_live(database: LiveDatabase) -> Imported:
    """The same of the tables of a running database."""
    return _imported({table: list(database.rows(table, order)) for table, order in ORDERS.items()})


IMPORTER = Importer(
    "moltnet",
    "MoltNet: postgresql://..., a plain dump, a JSON export, CSV files of its tables",
    lambda source: _reader(source) is not None,
    read,
    live=LiveTables({"diary_entries": ("diary_id", "content"), "diaries": (), "entry_relations": ()}, read_live),
)
