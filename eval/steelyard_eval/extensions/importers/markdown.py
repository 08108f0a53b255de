"""Folders of Markdown files, an Obsidian vault among them, or one file: every note an entry.

Claude Code's memory of a project (2.1.219) is a folder of notes with an index, MEMORY.md; or CLAUDE.md and rules.
What only the index says, a line on a note among it, is an entry, too. Notes of basic-memory (0.22) have
observations, ``- [category] content #tag (context)``, and relations, ``- type [[target]]``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

from steelyard.base.errors import DataError, quote
from steelyard.base.files import STRICT_JSON
from steelyard_eval.extensions.importers.base import WORDS, Imported, Record, filled, importer
from steelyard_eval.extensions.importers.notes import SUFFIXES, Names, Note, entry_of, read_note, relations_of
from steelyard_eval.extensions.importers.source import ForeignStore

UNREAD = (".canvas", ".excalidraw", ".mdx", ".org", ".rst", ".txt")  # Files beside notes whose texts are not read
INDEX, RULES = "MEMORY.md", "CLAUDE.md"
LOOKED_AT = 4096  # Characters of a note in which a line of an index is looked for
MARKS = " \t:.-\N{EN DASH}\N{EM DASH}"  # What stands between a link in an index and what is said of it
_LINE = re.compile(r"\s*[-*] \[[^\]]*\]\((?P<file>[^)]*)\)(?P<hook>.*)")
CONFIG = "config.json"
_OBSERVATION = re.compile(r"\s*[-*+] \[([^\[\]]+)\] (.*)")
_RELATION = re.compile(r"\s*[-*+] (?P<type>[^\[\]]*)\[\[(?P<target>[^\[\]|#]+)")
_TAG = re.compile(r"(?<!\S)#(\S+)")


def names(source: ForeignStore, suffixes: tuple[str, ...] = SUFFIXES) -> Iterator[str]:
    """Names of the notes, without those in hidden folders."""
    if not source.path.is_dir():
        return iter([source.path.name] if source.path.name.endswith(suffixes) else [])
    return (name for name in source.files(*suffixes) if not any(part.startswith(".") for part in name.split("/")))


def read_notes(
    source: ForeignStore, entry: Callable[[Note, Names], Record] = entry_of
) -> tuple[list[Note], Names, Imported]:
    """Every note, what they are called, and their entries; what could not be read, with the names of its files."""
    notes, unread, found = list[Note](), list[str](), Imported()
    for name in names(source):
        try:
            notes.append(read_note(source, name))
        except DataError as error:
            unread.append(str(error))
    found.note(len(unread), "note", f"left out: {'; '.join(unread)}")
    for kind, (one, many, what) in WORDS["odd_notes"].items():
        odd = [note.name for note in notes if kind in note.odd]
        found.note(len(odd), f"note {one}", f"{what}: {', '.join(map(quote, odd))}", f"notes {many}")
    others = [quote(name) for name in names(source, UNREAD)] if source.path.is_dir() else []
    found.note(len(others), "file that is", f"no Markdown left out: {', '.join(others)}", "files that are")
    known = Names(notes)
    found.entries = [entry(note, known) for note in notes]
    return notes, known, found


def claude_homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The memory of the project here, then of all projects, below CLAUDE_CONFIG_DIR, else ~/.claude."""
    root = Path(environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"
    yield root / re.sub(r"[^A-Za-z0-9]", "-", str(Path.cwd())) / "memory"
    yield from sorted(path.parent for path in root.glob(f"*/memory/{INDEX}"))
    yield Path(RULES)


def matches_claude(source: ForeignStore) -> bool:
    """A folder with MEMORY.md or CLAUDE.md, or below it; or one of these files."""
    if not source.path.is_dir():
        return source.path.name in (INDEX, RULES)
    return any(name.rpartition("/")[2] in (INDEX, RULES) for name in source.files(".md"))


@importer(matches_claude, claude_homes)
def claude(source: ForeignStore) -> Imported:
    """Claude Code: a memory folder, CLAUDE.md. Every note, and what an index holds beside its list of notes."""
    notes, known, found = read_notes(source)
    by_id = {entry["id"]: entry for entry in found.entries}
    for note, entry in zip(notes, found.entries, strict=True):
        metadata = note.front.get("metadata")
        if kind := metadata.get("type") if isinstance(metadata, dict) else None:
            entry["type"] = str(kind)
        if note.stem == INDEX.removesuffix(".md"):
            lines = (line for line in note.text.split("\n") if not _is_listed(line, note, known, by_id))
            entry["text"] = "\n".join(lines).strip()
            entry.pop("relations", None)
    return found


def _is_listed(line: str, note: Note, known: Names, entries: Mapping[object, Record]) -> bool:
    """Whether a line of an index is a link to a note, and says nothing of it that the note does not say."""
    match = _LINE.match(line)
    entry = entries.get(known.id_of(unquote(match["file"]), note)) if match else None
    if match is None or entry is None:
        return False
    said = " ".join(str(entry.get(field, ""))[:LOOKED_AT] for field in ("title", "context", "text"))
    return match["hook"].strip(MARKS) in said


def basic_homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The folders of its projects, as ~/.basic-memory/config.json names them; else ~/basic-memory."""
    file = Path(environ.get("BASIC_MEMORY_CONFIG_DIR") or Path.home() / ".basic-memory") / CONFIG
    if file.is_file():
        config = STRICT_JSON.decode(file.read_text(encoding="utf-8"))
        for project in config.get("projects", {}).values():
            yield Path(project["path"] if isinstance(project, dict) else project)
    yield Path(environ.get("BASIC_MEMORY_HOME") or Path.home() / "basic-memory")


def _basic_entry(note: Note, known: Names) -> Record:
    found = [match for line in note.prose.split("\n") if (match := _RELATION.match(line))]
    typed = [(kind, match["target"]) for match in found if (kind := match["type"].strip(" \t*_:"))]
    return filled(
        entry_of(note, known)
        | {
            "uri": note.text_of("permalink") or note.name,
            "tags": note.texts_of("tags", "tag"),  # those of observations stay with them
            "observations": list(filter(None, map(_observation, note.lines))),
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


@importer(
    lambda source: any("\npermalink: " in source.head(name) for name in islice(names(source), 1)), basic_homes
)
def basic_memory(source: ForeignStore) -> Imported:
    """basic-memory: its folder of notes. Every note with its observations and typed relations."""
    return read_notes(source, _basic_entry)[2]


@importer(lambda source: next(names(source), None) is not None)
def markdown(source: ForeignStore) -> Imported:
    """Markdown notes: a folder, an Obsidian vault, one file. Every note."""
    return read_notes(source)[2]
