"""Folders of memory files: ``session/.../10_00.md`` beside ``.abstract.md`` and ``.overview.md`` (Cortex-Mem).

A folder below the root is a directory of memories, its URI ``cortex://`` and the path. Its two layer files make
one entry, every other ``.md`` file one more. What has no URI is left out, with a notice. The participants of a
session stand in its ``.session.json``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from steelyard.base.errors import DataError, shown
from steelyard.base.fields import read_texts
from steelyard.base.files import STRICT_JSON
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.stores.sqlite import Vault
from steelyard.systems.cortex_mem.uris import DIMENSIONS, LAYER_FILES, SCHEME, directory, id_of, uri_of
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets.corpus_and_queries import JsonLines
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.manifest import Manifest
from steelyard_eval.datasets.parts import DatasetParts
from steelyard_eval.datasets.places import is_data_set

SESSION_FILE = ".session.json"
"""What the program keeps of a session beside its messages."""
SHOWN = 3
"""How many of the files that are left out are named."""


def is_memory(folder: Path) -> bool:
    """Whether a folder holds memory files, and no data set."""
    return not is_data_set(folder) and any((folder / name).is_dir() for name in DIMENSIONS)


def read_memory(reader: FolderReader) -> DatasetParts:
    """The parts of a folder of memory files, which has no queries."""
    entries: dict[str, Entry] = {}
    skipped: list[str] = []
    for path in sorted(_files(reader.folder), key=lambda path: path.as_posix().encode()):
        name = PurePosixPath(path.relative_to(reader.folder).as_posix())
        try:
            _add(entries, reader, name)
        except DataError as error:
            skipped.append(str(error))
    _add_participants(entries, reader, skipped)
    out = f"{counted(len(skipped), 'file is', 'files are')} left out: {'; '.join(skipped[:SHOWN])}"
    notices = [out] if skipped else []
    manifest = Manifest(
        name=reader.folder.resolve().name, description="memory files", recipe="{title}\n{text}", report_split=""
    )
    items = tuple(entries[id_] for id_ in sorted(entries, key=str.encode))
    lines = dict.fromkeys(entries, 1)
    queries: JsonLines[Query] = JsonLines("", (), {}, 0, frozenset(), 0)
    return DatasetParts(manifest, JsonLines("", items, lines, len(items), frozenset(), 0), queries, {}, notices)


def unchanged(vault: Vault, entries: Iterable[Entry]) -> list[Entry]:
    """The entries as the vault has them where their files say the same, whatever their times.

    A file that says something else keeps the date of its creation, and has the time of its change.
    """
    entries = list(entries)
    known = {entry.id: entry for entry in vault.get([entry.id for entry in entries])}
    return [_compared(entry, known.get(entry.id)) for entry in entries]


def _compared(entry: Entry, old: Entry | None) -> Entry:
    if old is None:
        return entry
    if replace(entry, created_at=old.created_at, updated_at=old.updated_at) == old:
        return old
    return replace(entry, created_at=old.created_at)


def _files(folder: Path) -> Iterator[Path]:
    """Every ``.md`` file below the folder. Links are not followed, nor read: they may lead out of it."""
    for place, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        yield from (Path(place) / name for name in names if name.endswith(".md"))


def _add_participants(entries: dict[str, Entry], reader: FolderReader, skipped: list[str]) -> None:
    """Give the entries of each session its participants."""
    known: dict[str, tuple[str, ...]] = {}
    for id_, entry in entries.items():
        dimension, name, *inside = entry.uri.removeprefix(SCHEME).split("/", 2)
        if dimension == "session" and (inside or name):
            if name not in known:
                known[name] = _participants(reader, f"{dimension}/{name}/{SESSION_FILE}", skipped)
            entries[id_] = replace(entry, participants=known[name])


def _participants(reader: FolderReader, name: str, skipped: list[str]) -> tuple[str, ...]:
    """The participants that a session's file names; none, and a notice, where it cannot be read."""
    path = reader.folder / name
    if path.is_symlink() or path.parent.is_symlink() or not path.is_file():
        return ()
    try:
        record = STRICT_JSON.decode((reader.content(name) or b"").decode("utf-8"))
        return read_texts(record["participants"])
    except (ValueError, TypeError, KeyError, RecursionError):
        skipped.append(f'{shown(name)} names no "participants"')
        return ()


def _add(entries: dict[str, Entry], reader: FolderReader, name: PurePosixPath) -> None:
    """The file as an entry, or as a layer of its directory's; DataError when it is no memory."""
    path = reader.folder / name
    if path.is_symlink():
        raise DataError(f"{shown(str(name))} is a link")
    if not path.is_file():
        raise DataError(f"{shown(str(name))} is no regular file")
    layer = LAYER_FILES.get(name.name)
    if layer is None and name.name.startswith("."):
        raise DataError(f"{shown(str(name))} is hidden")
    uri = uri_of(name.parent if layer else name)
    try:
        text = (reader.content(str(name)) or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{shown(str(name))} is not UTF-8") from None
    changed = float(int(path.stat().st_mtime))
    entry = entries.get(id_of(uri)) or replace(directory(uri), category=name.parts[0])
    entry = replace(entry, created_at=min(entry.created_at or changed, changed))
    entry = replace(entry, updated_at=max(entry.updated_at or changed, changed))
    fields: dict[str, Any] = {layer or "text": text}
    entries[entry.id] = replace(entry, **fields)
