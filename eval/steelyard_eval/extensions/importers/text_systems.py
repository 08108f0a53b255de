"""Memory systems in files of text: MoltNet's dump, Cortex-Mem's folder.

MoltNet (commit 25e711d): a plain dump, as pg_dump writes it, of which only the COPY blocks are read; no statement
in it is run. The newer entry of a relation is its source. Cortex-Mem (0bbcdb1): `.memory_index.json` has the dates
and counters of a scope's memories, `.session.json` those who take part. Footers that the program adds to a file
are no text. Vectors lie in Qdrant and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import numpy as np

from steelyard.base.errors import DataError, shown
from steelyard.base.files import STRICT_JSON
from steelyard.systems.cortex_mem.layers import id_of
from steelyard.systems.cortex_mem.uris import DIMENSIONS, LAYER_FILES, uri_of
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, Row, filled, grouped, picked
from steelyard_eval.extensions.importers.source import ForeignStore

TABLES = ("diaries", "diary_entries", "entry_relations")
MODEL = "e5-small-v2"
"""The model of the program's vectors; texts have the prefix "passage: ", which recorded queries lack here."""
ENTRY = "id title text=content tags type=entry_type category importance access_count created_at updated_at "
ENTRY += "last_accessed_at vault=diary_id project tenant visibility relations injection_threats creator_agent_id "
ENTRY += "creator_human_id content_hash content_signature signing_nonce"
_BEGIN = re.compile(r'COPY (?:"?\w+"?\.)?"?(\w+)"? \(([^()]*)\) FROM stdin;')
_END = "\\."
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NAMED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ITEM = re.compile(r'"((?:[^"\\]|\\.)*+)"?|([^,"{}]+)')
"""A quote that is never closed ends with the text: what stands in it is not read again from each of its places."""
MEMORIES, SESSION = ".memory_index.json", ".session.json"
CORTEX_MEMORY = (
    "memory_id=id memory_type_of_program=memory_type created_at updated_at last_accessed_at=last_accessed "
)
_ADDED = "**Added**: "
_FOOTERS = ((_ADDED, ""), ("<!-- source-hash: ", "-->"))
"""How a remark of the program begins and ends, in the last line of a file."""
_METADATA = "\n\n## Metadata\n\n```json\n"
"""What a message has after its content, where it has metadata."""
_MESSAGE = re.compile(
    r"# \W*(?P<role>\w+)\n+\*\*ID\*\*: `(?P<id>[^`]*)` *\n"
    r"\*\*Timestamp\*\*: (?P<time>[^\n]*?) UTC *\n+## Content\n\n"
)


def is_dump(source: ForeignStore) -> bool:
    """A plain dump in which the table of entries is copied."""
    name = source.path.name
    if not name.endswith(".sql") or not source.has(name):
        return False
    return any("COPY public.diary_entries (" in line for _, line in source.lines(name))


def read_moltnet(source: ForeignStore) -> Imported:
    """Entries of all diaries, with their relations and vectors."""
    tables: dict[str, list[Row]] = {name: [] for name in TABLES}
    try:
        for table, row in copied_rows(source.text(source.path.name, None).split("\n"), TABLES):
            tables[table].append(row)
        return _imported(tables)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{source} is damaged ({error}); dump the tables again") from None


def _imported(tables: Mapping[str, list[Row]]) -> Imported:
    imported = Imported(system="moltnet", recipe="{title}\n{text}\ntag:{tag}")
    diaries = {row["id"]: row for row in tables["diaries"]}
    relations = grouped(tables["entry_relations"], "source_id", "type=relation target=target_id status")
    imported.add(
        tables["diary_entries"],
        lambda row: _entry(row, diaries.get(row["diary_id"], {}), relations.get(row["id"], [])),
    )
    for row in tables["diary_entries"]:
        if vector := row["embedding"]:
            imported.vector(MODEL, row["id"], np.array(STRICT_JSON.decode(vector), dtype=np.float32))
    return imported


def _entry(row: Row, diary: Row, relations: list[Record]) -> Record:
    threats = row["injection_threats"]
    more = {
        "tags": [tag for tag in array_of(row["tags"]) if tag is not None],
        "category": "suspicious" if row["injection_risk"] == "t" else None,
        "importance": _number(row["importance"]),
        "access_count": _number(row["access_count"]),
        **picked(diary, "project=name tenant=team_id visibility"),
        "relations": relations,
        "injection_threats": STRICT_JSON.decode(threats) if threats else None,
    }
    return filled(picked(row, ENTRY) | more)


def _number(value: object) -> float | None:
    return None if value in (None, "") else float(str(value))


def copied_rows(lines: Iterable[str], tables: Iterable[str]) -> Iterator[tuple[str, Row]]:
    """Each row of these tables with the table's name; ValueError for a row with another number of columns."""
    wanted = frozenset(tables)
    table, columns = "", list[str]()
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\n")
        if not columns:
            begin = _BEGIN.fullmatch(line)
            if begin:
                table, columns = begin[1], [name.strip().strip('"') for name in begin[2].split(",")]
        elif line == _END:
            columns = []
        elif table in wanted:
            values = line.split("\t")
            if len(values) != len(columns):
                raise ValueError(f"line {number} has {len(values)} values for {len(columns)} columns of {table}")
            yield table, dict(zip(columns, map(_value, values), strict=True))


def _value(text: str) -> str | None:
    return None if text == r"\N" else _ESCAPE.sub(lambda match: _NAMED.get(match[1], match[1]), text)


def array_of(text: str | None) -> list[str | None]:
    """A one-dimensional array of texts; ValueError for text that is none."""
    if not text:
        return []
    inner = text.removeprefix("{").removesuffix("}")
    if len(inner) != len(text) - 2:
        raise ValueError(f"{text:.40} is no array")
    return [
        re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else None if match[2] == "NULL" else match[2]
        for match in _ITEM.finditer(inner)
    ]


CORTEX_MEMORY += "access_count confidence archived source_sessions"


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


def read_cortex_mem(source: ForeignStore) -> Imported:
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
            "participants": sessions.get(session, {}).get("participants"),
        }
    else:
        heading = text.lstrip().split("\n", 1)[0]
        title = heading.lstrip("#").strip() if heading.startswith("#") else ""
        entry |= {"text": text, "title": title, **index.get(uri, {})}
    entries[uri] = entry


def _metadata(text: str) -> object:
    """What a message has as JSON; the text itself where it is none."""
    try:
        return STRICT_JSON.decode(text) if text else None
    except (ValueError, RecursionError):
        return text


def _index(source: ForeignStore, root: str, skipped: list[str]) -> dict[str, Record]:
    records: dict[str, Record] = {}
    for name, document in _documents(source, root, MEMORIES, skipped):
        memories = document.get("memories")
        folder = PurePosixPath(name.removeprefix(root)).parent
        for row in memories.values() if isinstance(memories, dict) else ():
            if isinstance(row, dict) and isinstance(row.get("file"), str):
                record = picked({"access_count": 0, "archived": False, **row}, CORTEX_MEMORY)
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


IMPORTERS = (
    Importer("moltnet", "MoltNet: a plain dump of its database", is_dump, read_moltnet),
    Importer(
        "cortex_mem",
        "Cortex-Mem: the folder of a tenant, or of all",
        lambda source: source.path.is_dir() and bool(_roots(source)),
        read_cortex_mem,
        homes,
    ),
)
