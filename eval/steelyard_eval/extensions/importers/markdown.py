"""Any folder of Markdown files, an Obsidian vault among them, or one file: every note an entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steelyard.base.errors import DataError, shown
from steelyard_eval.extensions.importers.base import Imported, Importer
from steelyard_eval.extensions.importers.notes import SUFFIXES, Names, Note, entry_of, read_note, sections
from steelyard_eval.extensions.importers.source import ForeignStore

ODD = {
    "yaml": ("has", "have", "front matter that is no YAML; what could not be read is kept as text"),
    "numbers": ("has", "have", "numbers in front matter that no program computes with; they are kept as text"),
    "encoding": ("is", "are", "not UTF-8 and read as windows-1252 or UTF-16; save as UTF-8"),
}
"""What is said of notes by what is odd in them, see `Note`."""
UNREAD = (".canvas", ".excalidraw", ".mdx", ".org", ".rst", ".txt")
"""Files beside notes whose texts are not read."""


def names(source: ForeignStore, suffixes: tuple[str, ...] = SUFFIXES) -> Iterator[str]:
    """Names of the notes, without those in hidden folders."""
    if not source.path.is_dir():
        return iter([source.path.name] if source.path.name.endswith(suffixes) else [])
    return (name for name in source.files(*suffixes) if not any(part.startswith(".") for part in name.split("/")))


def read_notes(source: ForeignStore) -> tuple[list[Note], Imported]:
    """Every note; and what could not be read, with the names of all files that it is in."""
    notes, unread, found = list[Note](), list[str](), Imported()
    for name in names(source):
        try:
            notes.append(read_note(source, name))
        except DataError as error:
            unread.append(str(error))
    found.note(len(unread), "note", f"left out: {'; '.join(unread)}")
    for kind, (one, many, what) in ODD.items():
        odd = [note.name for note in notes if kind in note.odd]
        found.note(len(odd), f"note {one}", f"{what}: {_listed(odd)}", f"notes {many}")
    others = list(names(source, UNREAD)) if source.path.is_dir() else []
    found.note(len(others), "file that is", f"no Markdown left out: {_listed(others)}", "files that are")
    return notes, found


def _listed(names: Iterable[str]) -> str:
    """All names, escaped."""
    return ", ".join(map(shown, names))


def read(source: ForeignStore) -> Imported:
    """Notes with their tags, dates and links; with `headings` every section is an entry."""
    notes, found = read_notes(source)
    known = Names(notes)
    parts = [part for note in notes for part in (sections(note) if source.options.headings else [note])]
    found.entries = [entry_of(part, known) for part in parts]
    return found


IMPORTER = Importer(
    "markdown",
    "Markdown notes: a folder, an Obsidian vault, one file",
    lambda source: next(names(source), None) is not None,
    read,
)
