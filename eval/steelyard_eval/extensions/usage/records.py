"""Files of logs as JSON records, one at a time where they are lines; what is none is counted and passed over."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.base.files import MAX_NESTING, is_deep
from steelyard.base.inputs import lines, open_unpacked

LONGEST = 32 * 2**20
"""Bytes of a line; what is longer holds a picture or a whole file, and no list of results."""
WHOLE = 512 * 2**20
"""Bytes of a file that is one JSON document."""
MOST_FILES = 100_000
DEEPEST = 12
"""Folders inside one another that are looked into."""
Record = dict[str, object]


def files_of(place: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The file, or the files below a folder, sorted; links are not followed. DataError for too many."""
    if place.is_file():
        return [place]
    files: list[Path] = []
    for folder, folders, names in os.walk(place, followlinks=False):
        if len(Path(folder).relative_to(place).parts) >= DEEPEST:
            folders.clear()
        folders.sort()
        paths = (Path(folder, name) for name in sorted(names) if name.endswith(suffixes))
        files += (path for path in paths if path.is_file() and not path.is_symlink())
        if len(files) > MOST_FILES:
            raise DataError(f"{_named(place)} holds more than {MOST_FILES:,} logs; name a folder inside it")
    return files


def records_of(path: Path, faults: Counter[str]) -> Iterator[Record]:
    """The objects of a file of JSON lines, or of one document with a list of them; DataError when unreadable."""
    try:
        if _is_document(path):
            yield from _in_document(path, faults)
            return
        for _, raw in lines(path, LONGEST):
            if isinstance(record := _decoded(raw), dict):
                yield record
            else:
                faults["lines that are no JSON objects, or too long or deep"] += 1
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot read {_named(path)}: {reason}; make it readable, or leave it out") from None


def object_of(value: object) -> Record:
    """The object that a value is, or holds as text; empty where it is something else."""
    decoded = loaded(value)
    return decoded if isinstance(decoded, dict) else {}


def objects(value: object) -> list[Record]:
    """The objects in a list; none where it is something else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """The text in a value: itself, or of the blocks of a message one after the other."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(text_of, value)))
    if isinstance(value, dict):
        for key in ("text", "content", "parts", "message", "output", "answer"):
            if text := text_of(value.get(key)):
                return text
    return ""


def loaded(value: object) -> object:
    """The JSON value in a text, within bounds; anything else as it is."""
    if not isinstance(value, str) or len(value) > LONGEST or value.lstrip()[:1] not in ("{", "["):
        return value
    decoded = _decoded(value.encode(errors="replace"))
    return value if decoded is None else decoded


def _decoded(raw: bytes, most: int = LONGEST) -> object:
    if len(raw) > most:
        return None
    try:
        decoded: object = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if raw.count(b"[") + raw.count(b"{") > MAX_NESTING and is_deep(decoded) else decoded


def _is_document(path: Path) -> bool:
    """Whether the file is one JSON value, by its name and its first line."""
    if not path.name.removesuffix(".gz").endswith(".json"):
        return False
    return not isinstance(_decoded(next(lines(path, LONGEST), (0, b""))[1]), dict)


def _in_document(path: Path, faults: Counter[str]) -> Iterator[Record]:
    if path.stat().st_size > WHOLE:
        raise DataError(f"{_named(path)} is one document of more than {WHOLE // 2**20} MB; export JSON lines")
    with open_unpacked(path) as stream:
        document = _decoded(stream.read(), WHOLE)
    if document is None:
        faults["files that are no JSON, or nested too deep"] += 1
    yield from objects(document if isinstance(document, list) else [document])


def _named(path: Path) -> str:
    return shown(str(path), PATH_WIDTH)
