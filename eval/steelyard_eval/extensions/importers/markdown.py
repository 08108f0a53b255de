"""Any folder of Markdown files, an Obsidian vault among them, or one file: every note an entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steelyard.base.errors import DataError, shown
from steelyard_eval.common.markup import counted
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


def matches(source: ForeignStore) -> bool:
    """A Markdown file, or a folder with one in it."""
    if not source.path.is_dir():
        return source.path.name.endswith(SUFFIXES)
    return next(names(source), None) is not None


def names(source: ForeignStore, suffixes: tuple[str, ...] = SUFFIXES) -> Iterator[str]:
    """Names of the notes, without those in hidden folders."""
    if not source.path.is_dir():
        return iter([source.path.name] if source.path.name.endswith(suffixes) else [])
    return (name for name in source.files(*suffixes) if not any(part.startswith(".") for part in name.split("/")))


def read_notes(source: ForeignStore) -> tuple[list[Note], list[str]]:
    """Every note; and what could not be read, with the names of all files that it is in."""
    notes: list[Note] = []
    unread: list[str] = []
    for name in names(source):
        try:
            notes.append(read_note(source, name))
        except DataError as error:
            unread.append(str(error))
    told = [f"{counted(len(unread), 'note')} left out: {'; '.join(unread)}"] if unread else []
    for kind, (one, many, what) in ODD.items():
        if odd := [note.name for note in notes if kind in note.odd]:
            told.append(f"{counted(len(odd), f'note {one}', f'notes {many}')} {what}: {listed(odd)}")
    if others := list(names(source, UNREAD)) if source.path.is_dir() else []:
        told.append(
            f"{counted(len(others), 'file that is', 'files that are')} no Markdown left out: {listed(others)}"
        )
    return notes, told


def listed(names: Iterable[str]) -> str:
    """All names, escaped."""
    return ", ".join(map(shown, names))


def read(source: ForeignStore) -> Imported:
    """Notes with their tags, dates and links; with `headings` every section is an entry."""
    notes, told = read_notes(source)
    known = Names(notes)
    parts = [part for note in notes for part in (sections(note) if source.options.headings else [note])]
    return Imported(entries=[entry_of(part, known) for part in parts], notes=told)


IMPORTER = Importer("markdown", "Markdown notes: a folder, an Obsidian vault, one file", matches, read)
