"""EchoVault: `index.db` with memories and details, golden queries beside it.

Columns are those of commits 18790d6 to a1f74ca; what an older store lacks is not given. The database has the
newest text, so the Markdown files are not read. A golden query that expects nothing is marked as unanswerable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from steelyard.base.errors import DataError, shown
from steelyard.base.files import canonical
from steelyard_eval.common.markup import counted
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, filled, identifier
from steelyard_eval.extensions.importers.columns import searched
from steelyard_eval.extensions.importers.database import Database, StoreRow
from steelyard_eval.extensions.importers.source import ForeignStore, read_yaml

INDEX = "index.db"
GOLDEN = ("golden.yaml", "golden.yml")
COUNTERS = ("retrieved_count", "details_opened_count", "dismissed_count")
GRADE = 1
"""Of an entry that a golden query expects: the file has no grades."""
RECIPE = "{title}\n{text}\n{why}\n{impact}\n{tags}"
OWN = """rowid file_path section_anchor updated_count status archived_at archive_reason confidence commit_sha
    branch last_verified retrieved_count details_opened_count dismissed_count""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
"""Columns that no field of ours stands for; an entry keeps them."""


def homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """MEMORY_HOME, else ~/.memory."""
    yield Path(environ.get("MEMORY_HOME") or Path.home() / ".memory")


def matches(source: ForeignStore) -> bool:
    """An index.db with EchoVault's tables."""
    if not source.has(INDEX):
        return False
    with source.database(INDEX) as db:
        return {"memories", "memory_details"} <= db.columns.keys() and "what" in db.columns["memories"]


def read(source: ForeignStore) -> Imported:
    """Memories, their vectors and counters, golden queries."""
    imported = Imported(system="echovault", recipe=RECIPE)
    with source.database(INDEX) as db:
        details = {row["memory_id"]: row["body"] for row in db.rows("memory_details")}
        rows = list(db.rows("memories"))
        imported.add(rows, lambda row: _entry(row, details, db))
        _vectors(imported, rows, db)
        imported.notes += db.notes()
    _counters(imported, rows)
    for name in GOLDEN:
        if source.has(name):
            _golden(imported, read_yaml(source.text(name), f"{source}: {name}"), rows, f"{source}: {name}")
    return imported


def _entry(row: StoreRow, details: Mapping[str, str], db: Database) -> Record:
    known = {
        "id": row["id"],
        "title": row["title"],
        "text": row["what"],
        "why": row["why"],
        "impact": row["impact"],
        "details": details.get(row["id"]),
        "context": details.get(row["id"]),  # which the program opens and does not search; other searches do
        "category": row["category"],
        "tags": db.json_list(row, "tags"),
        "project": row["project"],
        "source": row["source"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "superseded_by": row.get("superseded_by"),
        "valid_from": row.get("valid_from"),
        "valid_until": row.get("valid_until"),
        "last_accessed_at": row.get("last_used_at"),
        "related_files": db.json_list(row, "related_files"),
        "links": db.json_list(row, "links"),
        "structured": filled(db.json_object(row, "structured_data")) or None,
    }
    return filled(searched(known | {name: row[name] for name in OWN if name in row}))


def _vectors(imported: Imported, rows: Sequence[StoreRow], db: Database) -> None:
    """Vectors of the memories that are in the store; those of deleted memories are still in the file."""
    vectors = db.vectors("memories_vec")
    meta = {row["key"]: row["value"] for row in db.rows("meta")}
    model = identifier(str(meta.get("embedding_model") or "echovault"))
    imported.vectors = {model: {row["id"]: vectors[row["rowid"]] for row in rows if row["rowid"] in vectors}}
    if meta.get("embedding_model") is None:
        imported.notes.append(
            "the store does not name the model of its vectors, so queries cannot be embedded by it"
        )


def _counters(imported: Imported, rows: Sequence[StoreRow]) -> None:
    """A note on the counters; without places and queries they are no feedback log."""
    sums = {name: sum(count for row in rows if isinstance(count := row.get(name), int)) for name in COUNTERS}
    if any(sums.values()):
        retrieved, opened, dismissed = sums.values()
        imported.notes.append(
            f"counters: {retrieved} retrieved, {opened} opened, {dismissed} dismissed; they are kept with their "
            "entries and are weak evidence, because no query or place belongs to them"
        )
    archived = sum(row.get("status") not in (None, "active") for row in rows)
    imported.note(archived, "memory is", "archived: the program hides them", "memories are")


def _golden(imported: Imported, document: object, rows: Sequence[StoreRow], place: str) -> None:
    """Golden queries as queries and labels; an expected entry is named by its id or its title."""
    named = {row["title"]: row["id"] for row in reversed(rows)} | {row["id"]: row["id"] for row in rows}
    queries = document.get("queries") if isinstance(document, dict) else None
    if not isinstance(queries, list) or not all(
        isinstance(q, dict) and isinstance(q.get("query"), str) for q in queries
    ):
        raise DataError(f"{place} has no list of golden queries; restore it or move it away")
    missing, seen = 0, set[str]()
    for golden in queries:
        expected = golden.get("expected") or []
        expected = [expected] if isinstance(expected, str) else expected
        project = golden.get("project")
        id_ = _golden_id(golden["query"], project)
        if id_ in seen:
            imported.notes.append(f"the golden query {shown(golden['query'])} is there twice; the first counts")
            continue
        seen.add(id_)
        record = {
            "id": id_,
            "text": golden["query"],
            "filter": {"project": project} if project else None,
            "answerable": None if expected else False,
        }
        imported.queries.append(filled(record))
        entries = [named.get(str(name)) for name in expected]
        missing += entries.count(None)
        if labels := {entry: GRADE for entry in entries if entry}:
            imported.qrels[id_] = labels
    negative = sum(q.get("answerable") is False for q in imported.queries)
    imported.notes.append(
        f"{counted(len(queries), 'golden query', 'golden queries')}, {negative} of them without an answer"
    )
    imported.note(missing, "expected entry is", "not in the store", "expected entries are")


def _golden_id(text: str, project: object) -> str:
    """The id of a golden query, by what it asks: its place changes when another is added before it."""
    return "golden-" + sha256(canonical([text, project]).encode()).hexdigest()[:12]


IMPORTER = Importer("echovault", "EchoVault: index.db, golden.yaml", matches, read, homes)
