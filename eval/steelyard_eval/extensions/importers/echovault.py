"""EchoVault: `index.db` with memories and details, golden queries beside it.

Columns are those of commits 18790d6 to a1f74ca; what an older store lacks is not given. The database has the
newest text, so the Markdown files are not read. A golden query that expects nothing is marked as unanswerable.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from steelyard.base.errors import DataError, shown
from steelyard.base.files import canonical
from steelyard_eval.common.markup import counted
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, filled
from steelyard_eval.extensions.importers.columns import searched
from steelyard_eval.extensions.importers.database import Database, StoreRow
from steelyard_eval.extensions.importers.source import ForeignStore, read_yaml

INDEX = "index.db"
GOLDEN = ("golden.yaml", "golden.yml")
COUNTERS = ("retrieved_count", "details_opened_count", "dismissed_count")
GRADE = 1
"""Of an entry that a golden query expects: the file has no grades."""
RECIPE = "{title}\n{text}\n{why}\n{impact}\n{tags}"
MEMORY = "id title text=what why impact details context category tags=[tags] project source created_at updated_at "
MEMORY += "superseded_by valid_from valid_until last_accessed_at=last_used_at related_files=[related_files] "
MEMORY += "links=[links] structured={structured_data} "
MEMORY += (
    "rowid file_path section_anchor updated_count status archived_at archive_reason confidence commit_sha branch"
)
MEMORY += " last_verified retrieved_count details_opened_count dismissed_count"


def read(source: ForeignStore) -> Imported:
    """Memories, their vectors and counters, golden queries."""
    imported = Imported(system="echovault", recipe=RECIPE)
    with source.database(INDEX) as db:
        details = {row["memory_id"]: row["body"] for row in db.rows("memory_details")}
        rows = list(db.rows("memories"))

        def entry(row: StoreRow) -> Record:
            body = details.get(row["id"])  # which the program opens and does not search; other searches do
            return filled(searched(db.picked(row, MEMORY) | {"details": body, "context": body}))

        imported.add(rows, entry)
        _vectors(imported, rows, db)
        imported.notes += db.notes()
    _counters(imported, rows)
    for name in GOLDEN:
        if source.has(name):
            _golden(imported, read_yaml(source.text(name), f"{source}: {name}"), rows, f"{source}: {name}")
    return imported


def _vectors(imported: Imported, rows: Sequence[StoreRow], db: Database) -> None:
    """Vectors of the memories that are in the store; those of deleted memories are still in the file."""
    vectors = db.vectors("memories_vec")
    model = {row["key"]: row["value"] for row in db.rows("meta")}.get("embedding_model")
    for row in rows:
        imported.vector(model or "echovault", row["id"], vectors.get(row["rowid"]))
    if model is None:
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
        text, project, expected = golden["query"], golden.get("project"), golden.get("expected") or []
        # By what it asks: its place changes when another is added before it.
        id_ = "golden-" + sha256(canonical([text, project]).encode()).hexdigest()[:12]
        if id_ in seen:
            imported.notes.append(f"the golden query {shown(text)} is there twice; the first counts")
            continue
        seen.add(id_)
        filters = {"project": project} if project else None
        query = {"id": id_, "text": text, "filter": filters, "answerable": None if expected else False}
        imported.queries.append(filled(query))
        entries = [named.get(str(name)) for name in ([expected] if isinstance(expected, str) else expected)]
        missing += entries.count(None)
        if labels := {entry: GRADE for entry in entries if entry}:
            imported.qrels[id_] = labels
    negative = sum(q.get("answerable") is False for q in imported.queries)
    imported.notes.append(
        f"{counted(len(queries), 'golden query', 'golden queries')}, {negative} of them without an answer"
    )
    imported.note(missing, "expected entry is", "not in the store", "expected entries are")


IMPORTER = Importer(
    "echovault",
    "EchoVault: index.db, golden.yaml",
    lambda source: source.holds(INDEX, memories=["what"], memory_details=[]),
    read,
    lambda environ: [Path(environ.get("MEMORY_HOME") or Path.home() / ".memory")],
)
