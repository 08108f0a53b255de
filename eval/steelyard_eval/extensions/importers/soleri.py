"""Soleri: `vault.db` with entries, memories, links, vectors and feedback.

Columns are those of commit d87b305. Times of entries and feedback are seconds, those of links milliseconds.
Archived entries are in a table that the program does not search, so they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from steelyard.base.secret_texts import kept_text
from steelyard.feedback.log import ACTIONS, SCHEMA_VERSION
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, filled, identifier, moment
from steelyard_eval.extensions.importers.database import Database, StoreRow
from steelyard_eval.extensions.importers.source import ForeignStore

VAULT = "vault.db"
MEMORY = "memory"
"""The kind of an entry that lies in Soleri's table of memories."""
RECIPE = "{title}\n{text}"


def homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The vaults of all agents below SOLERI_HOME, else ~/.soleri; then those of agents that live in ~ itself."""
    home = Path(environ.get("SOLERI_HOME") or Path.home() / ".soleri")
    yield from sorted(path.parent for path in home.glob(f"*/{VAULT}"))
    yield home
    yield from sorted(path.parent for path in Path.home().glob(f".*/{VAULT}"))


def matches(source: ForeignStore) -> bool:
    """A vault.db with Soleri's entries."""
    if not source.has(VAULT):
        return False
    with source.database(VAULT) as db:
        return {"severity", "domain"} <= set(db.columns.get("entries", ()))


def read(source: ForeignStore) -> Imported:
    """Entries and memories, links as relations, vectors, and feedback."""
    imported = Imported(system="soleri", recipe=RECIPE)
    with source.database(VAULT) as db:
        links: dict[str, list[Record]] = {}
        for row in db.rows("vault_links"):
            link = filled({"type": row["link_type"], "target": row["target_id"], "note": row["note"]})
            links.setdefault(row["source_id"], []).append(link)
        imported.add(db.rows("entries"), lambda row: _entry(row, links, db))
        imported.add(db.rows("memories"), lambda row: _memory(row, db))
        known = {entry["id"] for entry in imported.entries}
        _vectors(imported, known, db)
        _feedback(imported, known, db)
        imported.notes += db.notes()
        left_out = {name: sum(1 for _ in db.rows(name)) for name in ("entries_archive", "transcript_sessions")}
    for name, count in left_out.items():
        imported.note(count, "row", f"of {name} left out: the program does not search them")
    return imported


def _entry(row: StoreRow, links: Mapping[str, list[Record]], db: Database) -> Record:
    relations = links.get(row["id"], [])
    same = ("id", "type", "domain", "title", "severity", "context", "why", "created_at", "updated_at")
    return filled(
        {
            **{name: row[name] for name in same},
            "text": row["description"],
            "impact": _joined(  # which no search of the program reads
                row["example"], row["counter_example"], *(link.get("note") for link in relations)
            ),
            "valid_from": row.get("valid_from"),
            "valid_until": row.get("valid_until"),
            "tags": db.json_list(row, "tags"),
            "vault": row.get("tier"),
            "relations": [{name: link[name] for name in ("type", "target")} for link in relations],
            "link_notes": [link for link in relations if "note" in link],
            "example": row["example"],
            "counter_example": row["counter_example"],
            "applies_to": db.json_list(row, "applies_to"),
            "origin": row.get("origin"),
        }
    )


def _memory(row: StoreRow, db: Database) -> Record:
    names = ("files_modified", "tools_used", "decisions", "next_steps", "vault_entries_referenced")
    lists = {name: db.json_list(row, name) for name in names}
    said = (row.get("intent"), row.get("current_state"), *lists["decisions"], *lists["next_steps"])
    return filled(
        {
            "id": row["id"],
            "text": row["summary"],
            "context": row["context"],
            "impact": _joined(*said),
            "type": row["type"],
            "kind": MEMORY,
            "tags": db.json_list(row, "topics"),
            "project": row["project_path"],
            "created_at": row["created_at"],
            "intent": row.get("intent"),
            "current_state": row.get("current_state"),
            "archived_at": row["archived_at"],
            **lists,
        }
    )


def _joined(*texts: object) -> str:
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def _vectors(imported: Imported, known: set[object], db: Database) -> None:
    for row in db.rows("entry_vectors"):
        if row["entry_id"] in known and (vector := db.floats(row["vector"])) is not None:
            imported.vectors.setdefault(identifier(str(row["model"])), {})[row["entry_id"]] = vector


def _feedback(imported: Imported, known: set[object], db: Database) -> None:
    """Each row as a list of the one entry that it names: what else was shown, and where, is not in the store."""
    rows = list(db.rows("brain_feedback", "id"))
    timeless = 0
    for row in rows:
        if row["action"] not in ACTIONS or row["entry_id"] not in known:
            continue
        timestamp = moment(row["created_at"])
        if not timestamp:
            timeless += 1
            continue
        imported.feedback.append(
            {
                "schema_version": SCHEMA_VERSION,
                "timestamp": timestamp,
                "query_id": f"brain-{row['id']}",
                "client_id": f"brain-{row['id']}",  # an event of its own, which repeats no other
                "user_query": kept_text(str(row["query"] or "")),
                "policy": "soleri",
                "hits": [{"object_id": row["entry_id"], "position": 1}],
                "actions": [{"object_id": row["entry_id"], "action_name": row["action"]}],
            }
        )
    imported.note(
        len(rows),
        "row",
        f"of feedback, of which {len(imported.feedback)} name an entry of the store; they are weak evidence, "
        "because places and the other entries of each list are not recorded",
    )
    imported.note(timeless, "row", "of feedback without a time left out")


IMPORTER = Importer("soleri", "Soleri: vault.db", matches, read, homes)
