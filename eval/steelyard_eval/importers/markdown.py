"""Any folder of Markdown files, an Obsidian vault among them, or one file: every note an entry."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.base.errors import DataError
from steelyard_eval.common.markup import counted
from steelyard_eval.importers.base import Imported, Importer
from steelyard_eval.importers.notes import Note, entry_of, link_names, read_note, sections
from steelyard_eval.importers.source import ForeignStore

SHOWN = 3


def matches(source: ForeignStore) -> bool:
    """A Markdown file, or a folder with one in it."""
    if not source.path.is_dir():
        return source.path.name.endswith(".md")
    return next(names(source), None) is not None


def names(source: ForeignStore) -> Iterator[str]:
    """Names of the notes, without those in hidden folders."""
    if not source.path.is_dir():
        return iter([source.path.name] if source.path.name.endswith(".md") else [])
    return (name for name in source.files(".md") if not any(part.startswith(".") for part in name.split("/")))


def read_notes(source: ForeignStore) -> tuple[list[Note], list[str]]:
    """Every note, and a line on those that cannot be read."""
    notes: list[Note] = []
    unread: list[str] = []
    for name in names(source):
        try:
            notes.append(read_note(source, name))
        except DataError as error:
            unread.append(str(error))
    what = f"{counted(len(unread), 'note')} left out: {'; '.join(unread[:SHOWN])}"
    return notes, [what] if unread else []


def read(source: ForeignStore) -> Imported:
    """Notes with their tags, dates and links; with `headings` every section is an entry."""
    notes, left_out = read_notes(source)
    ids = link_names(notes)
    parts = [part for note in notes for part in (sections(note) if source.options.headings else [note])]
    return Imported(entries=[entry_of(part, ids) for part in parts], recipe="{title}\n{text}", notes=left_out)


IMPORTER = Importer("markdown", "Markdown notes: a folder, an Obsidian vault, one file", matches, read)
