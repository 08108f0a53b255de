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
from steelyard_eval.importers.base import Imported, Importer, Record, identifier
from steelyard_eval.importers.markdown import names, read_notes
from steelyard_eval.importers.notes import Note, entry_of, link_names
from steelyard_eval.importers.source import ForeignStore

CONFIG = "config.json"
_OBSERVATION = re.compile(r"- \[([^\[\]]+)\] (.*)")
_RELATION = re.compile(r"^- (?P<type>[^\[\]]+?) \[\[(?P<target>[^\[\]|]+)(?:\|[^\[\]]*)?\]\]")
_SECTION = re.compile(r"^## (?:Observations|Relations)[ \t]*$", re.MULTILINE)
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
    return first is not None and any("\npermalink: " in source.text(name)[:4096] for name in [first])


def read(source: ForeignStore) -> Imported:
    """Every note with its text, observations and relations."""
    notes, left_out = read_notes(source)
    ids = link_names(notes)
    return Imported(entries=[_entry(note, ids) for note in notes], recipe="{title}\n{text}", notes=left_out)


def _entry(note: Note, ids: Mapping[str, str]) -> Record:
    entry = entry_of(note, ids)
    text = _SECTION.split(str(entry.get("text", "")), maxsplit=1)[0].strip()
    lines = note.text.split("\n")
    relations = [match for line in lines if (match := _RELATION.match(line))]
    observations = [seen for line in lines if (seen := _observation(line))]
    entry |= {"text": text, "tags": _tags(note), "uri": str(note.front.get("permalink", note.name))}
    entry["observations"] = observations
    entry["details"] = "\n".join(f"{seen['category']}: {seen['content']}" for seen in observations)
    entry["relations"] = [
        {"type": match["type"], "target": ids.get(match["target"], identifier(match["target"]))}
        for match in relations
    ]
    return {name: value for name, value in entry.items() if value not in ("", [])}


def _observation(line: str) -> Record | None:
    """What ``- [category] content #tag (context)`` says; None for another line."""
    match = _OBSERVATION.match(line)
    if match is None:
        return None
    content, context = match[2].rstrip(), None
    before, mark, last = content.rpartition(" (")
    if mark and last.endswith(")") and not set("()") & set(last[:-1]):
        content, context = before, last[:-1]
    return {"category": match[1], "content": content, "tags": _TAG.findall(content), "context": context}


def _tags(note: Note) -> list[str]:
    """The tags of the front matter; those of observations stay with them."""
    tags = note.front.get("tags") or []
    return [str(tag) for tag in tags] if isinstance(tags, list) else [str(tags)]


IMPORTER = Importer("basic_memory", "basic-memory: its folder of notes", matches, read, homes)
