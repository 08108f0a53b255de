"""Claude Code's memory of a project: a folder of notes with an index, MEMORY.md; or CLAUDE.md and rules.

Observed at version 2.1.219. Front matter has a name, a description and a type. What only the index says is an
entry, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from steelyard_eval.importers.base import Imported, Importer, Record
from steelyard_eval.importers.markdown import read_notes
from steelyard_eval.importers.notes import entry_of, link_names
from steelyard_eval.importers.source import ForeignStore

INDEX, RULES = "MEMORY.md", "CLAUDE.md"
_LINE = re.compile(r"^\s*[-*] \[[^\]]*\]\([^)]*\)")


def homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The memory of the project here, then of all projects, below CLAUDE_CONFIG_DIR, else ~/.claude."""
    root = Path(environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"
    yield root / re.sub(r"[^A-Za-z0-9]", "-", str(Path.cwd())) / "memory"
    yield from sorted(path.parent for path in root.glob(f"*/memory/{INDEX}"))
    yield Path(RULES)


def matches(source: ForeignStore) -> bool:
    """A folder with MEMORY.md or CLAUDE.md, or below it; or one of these files."""
    if not source.path.is_dir():
        return source.path.name in (INDEX, RULES)
    return any(name.rpartition("/")[2] in (INDEX, RULES) for name in source.files(".md"))


def read(source: ForeignStore) -> Imported:
    """Every note, and what an index holds beside its list of notes."""
    notes, left_out = read_notes(source)
    ids = link_names(notes)
    entries: list[Record] = []
    for note in notes:
        entry = entry_of(note, ids)
        if note.stem == INDEX.removesuffix(".md"):
            entry["text"] = "\n".join(line for line in note.text.split("\n") if not _LINE.match(line)).strip()
            entry.pop("relations", None)
        else:
            metadata = note.front.get("metadata")
            kind = metadata.get("type") if isinstance(metadata, dict) else None
            entry |= {"type": str(kind)} if kind else {}
            entry |= {"context": note.text_of("description")} if note.front.get("description") else {}
        entries.append(entry)
    return Imported(entries=entries, recipe="{title}\n{text}", notes=left_out)


IMPORTER = Importer("claude", "Claude Code: a memory folder, CLAUDE.md", matches, read, homes)
