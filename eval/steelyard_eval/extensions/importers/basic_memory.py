"""basic-memory: Markdown notes with observations and relations.

The notes are the truth, and the database beside them is an index with the dates of indexing, so notes are read.
The form is that of version 0.22: observations are ``- [category] content #tag (context)``, relations
``- type [[target]]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from steelyard.base.files import STRICT_JSON
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, filled
from steelyard_eval.extensions.importers.markdown import names, read_notes
from steelyard_eval.extensions.importers.notes import Names, Note, entry_of, lines_of, outside_code, relations_of
from steelyard_eval.extensions.importers.source import ForeignStore

CONFIG = "config.json"
_OBSERVATION = re.compile(r"\s*[-*+] \[([^\[\]]+)\] (.*)")
_RELATION = re.compile(r"\s*[-*+] (?P<type>[^\[\]]*)\[\[(?P<target>[^\[\]|#]+)")
_TAG = re.compile(r"(?<!\S)#(\S+)")


def homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The folders of its projects, as ~/.basic-memory/config.json names them; else ~/basic-memory."""
    file = Path(environ.get("BASIC_MEMORY_CONFIG_DIR") or Path.home() / ".basic-memory") / CONFIG
    if file.is_file():
        config = STRICT_JSON.decode(file.read_text(encoding="utf-8"))
        for project in config.get("projects", {}).values():
            yield Path(project["path"] if isinstance(project, dict) else project)
    yield Path(environ.get("BASIC_MEMORY_HOME") or Path.home() / "basic-memory")


def matches(source: ForeignStore) -> bool:
    """Notes whose front matter has a permalink."""
    first = next(names(source), None)
    return first is not None and "\npermalink: " in source.head(first)


def read(source: ForeignStore) -> Imported:
    """Every note with its whole text, and its observations and relations beside it."""
    notes, found = read_notes(source)
    known = Names(notes)
    found.entries = [_entry(note, known) for note in notes]
    return found


def _entry(note: Note, known: Names) -> Record:
    found = [match for line in lines_of(note.text) if (match := _RELATION.match(line))]
    typed = [(kind, match["target"]) for match in found if (kind := match["type"].strip(" \t*_:"))]
    return filled(
        entry_of(note, known)
        | {
            "uri": note.text_of("permalink") or note.name,
            "tags": note.texts_of("tags", "tag"),  # those of observations stay with them
            "observations": list(filter(None, map(_observation, outside_code(note.text)))),
            "relations": relations_of(note, known, typed),
        }
    )


def _observation(line: str) -> Record | None:
    """What ``- [category] content #tag (context)`` says; None for another line, a task to be ticked among them."""
    match = _OBSERVATION.match(line)
    if match is None or len(match[1].strip()) < 2:
        return None
    content, context = match[2].rstrip(), None
    before, mark, last = content.rpartition(" (")
    if mark and last.endswith(")") and not set("()") & set(last[:-1]):
        content, context = before, last[:-1]
    return {"category": match[1], "content": content, "tags": _TAG.findall(content), "context": context}


IMPORTER = Importer("basic_memory", "basic-memory: its folder of notes", matches, read, homes)
