"""The one form in which every kind of log is read: sessions of an agent, as events in their order.

Texts stay in memory: `impressions` writes none of them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.base.files import MAX_NESTING, is_deep
from steelyard.base.inputs import lines, open_unpacked
from steelyard.memory.entry import Entry
from steelyard_eval.extensions.endpoints.answer_form import Mentioned

AGENT, PERSON, MEMORY = "agent", "person", "memory"
"""Who said something: the agent its answer, a person a question; what is saved into the memory cites nothing."""
FILES = ("related_files", "files_modified", "files", "applies_to")
"""What programs call the files that an entry is about."""
LONGEST = 32 * 2**20  # Bytes of a line; what is longer holds a picture or a whole file, and no list of results
WHOLE = 512 * 2**20  # Bytes of a file that is one JSON document
MOST_FILES = 100_000
Record = dict[str, object]


@dataclass(frozen=True, slots=True)
class Searched:
    """A search with its list. `key` names it in its log; `hits` are ids, None where its answer cannot be read.

    `engine` is what answered: a system of ours, or any other name. `narrowed` maps fields of entries to the
    values that were asked for; None where the log does not say. `limit` is how many results were asked for.
    """

    key: str
    time: float | None
    query: str
    hits: tuple[str, ...] | None
    engine: str = ""
    narrowed: Mapping[str, object] | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Acted:
    """An act on entries, or on files, by their names: `opened`, `modified`, or what somebody `reported`.

    A report may be of one `search` alone; without a name it is on the whole list.
    """

    names: tuple[str, ...]
    action: str
    reported: bool = False
    search: str = ""


@dataclass(frozen=True, slots=True)
class Wrote:
    """Files that were edited, and what was written into them."""

    paths: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A text, and who said it."""

    who: str
    text: str


Event = Searched | Acted | Wrote | Spoken


@dataclass(frozen=True, slots=True)
class UseSession:
    """The events of one session, in their order; `client` tells sessions apart."""

    client: str
    events: Iterable[Event]
    simulated: bool = False


class Corpus(dict[str, Entry]):
    """The entries by id, which are found by whatever `names` one of them alone."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__((entry.id, entry) for entry in entries)
        self.names = Mentioned(entries)

    def texts(self, id_: str) -> list[str]:
        """What an entry says."""
        entry = self[id_]
        return [entry.text, entry.why, entry.impact, entry.details, entry.context, entry.l1]

    def files(self, id_: str) -> list[str]:
        """The files that an entry is about."""
        named = [self[id_].extra.get(name) for name in FILES]
        paths = [path for value in named if isinstance(value, list) for path in value if isinstance(path, str)]
        return [path for path in paths if "/" in path or "." in path]


def files_of(place: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The file, or the files below a folder, sorted; links are not followed. DataError for too many."""
    if place.is_file():
        return [place]
    files: list[Path] = []
    for folder, folders, names in os.walk(place, followlinks=False):
        folders.sort()
        paths = (Path(folder, name) for name in sorted(names) if name.endswith(suffixes))
        files += (path for path in paths if path.is_file() and not path.is_symlink())
        if len(files) > MOST_FILES:
            raise DataError(f"{_named(place)} holds more than {MOST_FILES:,} logs; name a folder inside it")
    return files


def records_of(path: Path, faults: Counter[str]) -> Iterator[Record]:
    """The objects of a file of JSON lines, or of one document with a list of them; DataError when unreadable."""
    try:
        named, first = path.name.removesuffix(".gz").endswith(".json"), next(lines(path, LONGEST), (0, b""))[1]
        if named and not isinstance(_decoded(first), dict):  # one JSON value
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


def dict_of(value: object) -> Record:
    """The object that a value is, or holds as text; empty where it is something else."""
    decoded = loaded(value)
    return decoded if isinstance(decoded, dict) else {}


def objects(value: object) -> list[Record]:
    """The objects in a list; none where it is something else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


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
