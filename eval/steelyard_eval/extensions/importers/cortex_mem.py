"""Cortex-Mem: the folder of a tenant, with memories, sessions, resources and the layers of directories.

The layout is that of commit 0bbcdb1. `.memory_index.json` has the dates and counters of a scope's memories,
`.session.json` those who take part. Footers that the program adds to a file are no text. Vectors lie in Qdrant and
are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from steelyard.base.errors import DataError, shown
from steelyard.base.files import STRICT_JSON
from steelyard.systems.cortex_mem.uris import DIMENSIONS, LAYER_FILES, id_of, uri_of
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, filled, picked
from steelyard_eval.extensions.importers.source import ForeignStore

MEMORIES, SESSION = ".memory_index.json", ".session.json"
MEMORY = "memory_id=id memory_type_of_program=memory_type created_at updated_at last_accessed_at=last_accessed "
MEMORY += "access_count confidence archived source_sessions"
_ADDED = "**Added**: "
_FOOTERS = ((_ADDED, ""), ("<!-- source-hash: ", "-->"))
"""How a remark of the program begins and ends, in the last line of a file."""
_METADATA = "\n\n## Metadata\n\n```json\n"
"""What a message has after its content, where it has metadata."""
_MESSAGE = re.compile(
    r"# \W*(?P<role>\w+)\n+\*\*ID\*\*: `(?P<id>[^`]*)` *\n"
    r"\*\*Timestamp\*\*: (?P<time>[^\n]*?) UTC *\n+## Content\n\n"
)


def homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The tenants below CORTEX_DATA_DIR, else below the program's folder of data."""
    named = environ.get("CORTEX_DATA_DIR")
    for root in [Path(named)] if named else [Path("cortex-data"), Path.home() / ".cortex-data"]:
        yield from sorted((root / "tenants").glob("*"))
        yield root


def _roots(source: ForeignStore) -> list[str]:
    """The folders of tenants, each with a final /: those below `tenants`, or the source itself, which is empty."""
    if any((source.folder / name).is_dir() for name in DIMENSIONS):
        marked = (MEMORIES, SESSION, *LAYER_FILES)
        return [""] if any(name.rpartition("/")[2] in marked for name in source.files(".json", ".md")) else []
    below = source.folder / "tenants"
    return [f"tenants/{path.name}/" for path in sorted(below.iterdir())] if below.is_dir() else []


def read(source: ForeignStore) -> Imported:
    """Every memory, message and resource as an entry, and one for the layers of each directory."""
    imported = Imported(system="cortex_mem")
    skipped: list[str] = []
    for root in _roots(source):
        entries: dict[str, Record] = {}
        index = _index(source, root, skipped)
        sessions = {name.split("/")[-2]: document for name, document in _documents(source, root, SESSION, skipped)}
        for name in source.files(".md"):
            if name.startswith(root):
                try:
                    _add(entries, source, root, name, index, sessions)
                except DataError as error:
                    skipped.append(str(error))
        tenant = root.split("/")[1] if root else ""
        imported.entries += [filled(entry | {"tenant": tenant}) for entry in entries.values()]
    imported.note(len(skipped), "file", f"left out: {'; '.join(skipped)}")
    imported.notes.append("vectors lie in Qdrant and are not carried over; texts are embedded anew")
    return imported


def _without_footer(text: str) -> str:
    """The text without the remark that the program wrote at its end, if there is one."""
    body = text.rstrip()
    last = body.rfind("\n") + 1
    starts = [start for begin, end in _FOOTERS if (start := body.find(begin, last)) >= 0 and body.endswith(end)]
    if not starts:
        return text
    kept = body[: min(starts)].rstrip()
    return kept.removesuffix("---").rstrip() if body.startswith(_ADDED, min(starts)) else kept


def _add(
    entries: dict[str, Record],
    source: ForeignStore,
    root: str,
    name: str,
    index: Mapping[str, Record],
    sessions: Mapping[str, Record],
) -> None:
    """The file as an entry, or as a layer of its directory's; DataError when it is none of the program's."""
    place = PurePosixPath(name.removeprefix(root))
    layer = LAYER_FILES.get(place.name)
    if layer is None and place.name.startswith("."):
        raise DataError(f"{shown(str(place))} is hidden")
    text = _without_footer(_without_footer(source.text(name)))
    uri = uri_of(place.parent if layer else place)
    entry: Record = {"id": id_of(uri), "uri": uri, "category": place.parts[0]}
    if place.parts[0] == "session":
        entry["participants"] = _people(sessions.get(place.parts[1], {}).get("participants"))
    if layer:
        entries.setdefault(uri, entry)[layer] = text
        return
    if message := _MESSAGE.match(text):
        session = place.parts[1]
        content, _, metadata = text[message.end() :].partition(_METADATA)
        entry |= {
            "text": content.strip("\n"),
            "metadata": _metadata(metadata.partition("\n```")[0]),
            "speaker": message["role"].lower(),
            "created_at": f"{message['time'].replace(' ', 'T')}+00:00",
            "memory_id": message["id"],
            "project": session,
        }
    else:
        heading = text.lstrip().split("\n", 1)[0]
        title = heading.lstrip("#").strip() if heading.startswith("#") else ""
        entry |= {"text": text, "title": title, **index.get(uri, {})}
    entries[uri] = entry


def _people(value: object) -> object:
    """The participants of a session; None where its file names none."""
    return value if isinstance(value, list) and all(isinstance(one, str) for one in value) else None


def _metadata(text: str) -> object:
    """What a message has as JSON; the text itself where it is none."""
    try:
        return STRICT_JSON.decode(text) if text else None
    except (ValueError, RecursionError):
        return text


def _index(source: ForeignStore, root: str, skipped: list[str]) -> dict[str, Record]:
    """What the indexes of all scopes say of memories, by URI."""
    records: dict[str, Record] = {}
    for name, document in _documents(source, root, MEMORIES, skipped):
        memories = document.get("memories")
        folder = PurePosixPath(name.removeprefix(root)).parent
        for row in memories.values() if isinstance(memories, dict) else ():
            if isinstance(row, dict) and isinstance(row.get("file"), str):
                record = picked({"access_count": 0, "archived": False, **row}, MEMORY)
                times = ("created_at", "updated_at", "last_accessed_at")
                records[uri_of(folder / row["file"])] = record | {time: _seconds(record[time]) for time in times}
    return records


def _documents(
    source: ForeignStore, root: str, file: str, skipped: list[str]
) -> Iterator[tuple[str, dict[str, object]]]:
    """The JSON objects of all files of this name; one that cannot be read counts as skipped."""
    for name in source.files(file):
        if name.startswith(root) and name.rpartition("/")[2] == file:
            try:
                document = source.json(name)
            except DataError as error:
                skipped.append(str(error))
                continue
            if isinstance(document, dict):
                yield name, document


def _seconds(value: object) -> str | None:
    """A time without the nanoseconds that no ISO reader takes: six digits are kept."""
    return re.sub(r"(\.\d{6})\d+", r"\1", value) if isinstance(value, str) else None


IMPORTER = Importer(
    "cortex_mem",
    "Cortex-Mem: the folder of a tenant, or of all",
    lambda source: source.path.is_dir() and bool(_roots(source)),
    read,
    homes,
)
