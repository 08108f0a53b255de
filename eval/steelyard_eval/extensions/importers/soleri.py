"""Soleri: `vault.db` with entries, memories, links, vectors and feedback.

Columns are those of commit d87b305. Times of entries and feedback are seconds, those of links milliseconds.
Archived entries are in a table that the program does not search, so they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

from steelyard.feedback.log import ACTIONS
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, filled, grouped, moment
from steelyard_eval.extensions.importers.database import Database, StoreRow
from steelyard_eval.extensions.importers.source import ForeignStore

VAULT = "vault.db"
ENTRY = "id type domain title severity context why created_at updated_at text=description impact valid_from "
ENTRY += "valid_until tags=[tags] vault=tier relations link_notes example counter_example applies_to=[applies_to] "
ENTRY += "origin"
MEMORY = (
    "id text=summary context impact type kind tags=[topics] project=project_path created_at intent current_state "
)
MEMORY += "archived_at files_modified=[files_modified] tools_used=[tools_used] decisions=[decisions] "
MEMORY += "next_steps=[next_steps] vault_entries_referenced=[vault_entries_referenced]"


def homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The vaults of all agents below SOLERI_HOME, else ~/.soleri; then those of agents that live in ~ itself."""
    home = Path(environ.get("SOLERI_HOME") or Path.home() / ".soleri")
    yield from sorted(path.parent for path in home.glob(f"*/{VAULT}"))
    yield home
    yield from sorted(path.parent for path in Path.home().glob(f".*/{VAULT}"))


def read(source: ForeignStore) -> Imported:
    """Entries and memories, links as relations, vectors, and feedback."""
    imported = Imported(system="soleri")
    with source.database(VAULT) as db:
        links = grouped(db.rows("vault_links"), "source_id", "type=link_type target=target_id note")
        imported.add(db.rows("entries"), lambda row: _entry(row, links.get(row["id"], []), db))
        imported.add(db.rows("memories"), lambda row: _memory(row, db))
        known = {entry["id"] for entry in imported.entries}
        for row in db.rows("entry_vectors"):
            if row["entry_id"] in known:
                imported.vector(row["model"], row["entry_id"], db.floats(row["vector"]))
        _feedback(imported, known, db)
        imported.notes += db.notes()
        for name in ("entries_archive", "transcript_sessions"):
            left_out = sum(1 for _ in db.rows(name))
            imported.note(left_out, "row", f"of {name} left out: the program does not search them")
    return imported


def _entry(row: StoreRow, links: list[Record], db: Database) -> Record:
    said = (row["example"], row["counter_example"], *(link.get("note") for link in links))
    more = {
        "impact": _joined(*said),  # which no search of the program reads
        "relations": [{name: link[name] for name in ("type", "target")} for link in links],
        "link_notes": [link for link in links if "note" in link],
    }
    return filled(db.picked(row, ENTRY) | more)


def _memory(row: StoreRow, db: Database) -> Record:
    """An entry of the kind `memory`, as those are called that lie in Soleri's table of them."""
    record = db.picked(row, MEMORY)
    lists = [value for name in ("decisions", "next_steps") if isinstance(value := record[name], list)]
    said = _joined(record["intent"], record["current_state"], *chain.from_iterable(lists))
    return filled(record | {"impact": said, "kind": "memory"})


def _joined(*texts: object) -> str:
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def _feedback(imported: Imported, known: set[object], db: Database) -> None:
    """Each row as a list of the one entry that it names: what else was shown, and where, is not in the store."""
    rows = list(db.rows("brain_feedback", "id"))
    timeless = 0
    for row in rows:
        entry, action, time = row["entry_id"], row["action"], moment(row["created_at"])
        if action not in ACTIONS or entry not in known:
            continue
        if not time:
            timeless += 1
            continue
        act: Record = {"object_id": entry, "action_name": action}
        name = f"brain-{row['id']}"  # and the client's, too: an event of its own, which repeats no other
        imported.impression(time, name, name, row["query"], [entry], [act])
    imported.note(
        len(rows),
        "row",
        f"of feedback, of which {len(imported.feedback)} name an entry of the store; they are weak evidence, "
        "because places and the other entries of each list are not recorded",
    )
    imported.note(timeless, "row", "of feedback without a time left out")


IMPORTER = Importer(
    "soleri",
    "Soleri: vault.db",
    lambda source: source.holds(VAULT, entries=["severity", "domain"]),
    read,
    homes,
)
