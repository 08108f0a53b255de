"""Claude Code's memory of a project: a folder of notes with an index, MEMORY.md; or CLAUDE.md and rules.

Observed at version 2.1.219. Front matter has a name, a description and a type. What only the index says, a line on
a note among it, is an entry, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from steelyard_eval.extensions.importers.base import Imported, Importer, Record
from steelyard_eval.extensions.importers.markdown import read_notes
from steelyard_eval.extensions.importers.notes import Names, Note, entry_of
from steelyard_eval.extensions.importers.source import ForeignStore

INDEX, RULES = "MEMORY.md", "CLAUDE.md"
LOOKED_AT = 4096
"""Characters of a note in which a line of an index is looked for."""
MARKS = " \t:.-\N{EN DASH}\N{EM DASH}"
"""What stands between a link in an index and what is said of it."""
_LINE = re.compile(r"\s*[-*] \[[^\]]*\]\((?P<file>[^)]*)\)(?P<hook>.*)")


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
    notes, found = read_notes(source)
    known = Names(notes)
    entries = [_entry(note, known) for note in notes]
    by_id = {entry["id"]: entry for entry in entries}
    for note, entry in zip(notes, entries, strict=True):
        if note.stem == INDEX.removesuffix(".md"):
            lines = (line for line in note.text.split("\n") if not _is_listed(line, note, known, by_id))
            entry["text"] = "\n".join(lines).strip()
            entry.pop("relations", None)
    found.entries = entries
    return found


def _entry(note: Note, known: Names) -> Record:
    metadata = note.front.get("metadata")
    kind = metadata.get("type") if isinstance(metadata, dict) else None
    return entry_of(note, known) | ({"type": str(kind)} if kind else {})


def _is_listed(line: str, note: Note, known: Names, entries: Mapping[object, Record]) -> bool:
    """Whether a line of an index is a link to a note, and says nothing of it that the note does not say."""
    match = _LINE.match(line)
    entry = entries.get(known.id_of(unquote(match["file"]), note)) if match else None
    if match is None or entry is None:
        return False
    said = " ".join(str(entry.get(field, ""))[:LOOKED_AT] for field in ("title", "context", "text"))
    return match["hook"].strip(MARKS) in said


IMPORTER = Importer("claude", "Claude Code: a memory folder, CLAUDE.md", matches, read, homes)
