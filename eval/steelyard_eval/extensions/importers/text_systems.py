"""Memory systems in files of text: MoltNet's tables, Cortex-Mem's folder.

MoltNet (commit 25e711d): a plain dump, of which only the COPY blocks are read and no statement is run, a JSON
export, or a folder of CSV files. The newer entry of a relation is its source. Cortex-Mem (0bbcdb1):
`.memory_index.json` has the dates and counters of a scope's memories, `.session.json` those who take part. Footers
that the program adds to a file are no text. Vectors lie in Qdrant and are not read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from steelyard.base.errors import DataError, quote
from steelyard.base.extensions import extension
from steelyard.base.files import STRICT_JSON
from steelyard.systems.cortex_mem import DIMENSIONS, LAYER_FILES
from steelyard_eval.extensions.importers import base
from steelyard_eval.extensions.importers.notes import heading_of
from steelyard_eval.extensions.importers.source import ForeignStore
from steelyard_eval.extensions.importers.table import rows_of, vector_of

TABLES = {table: names.split() for table, names in base.FORMS["moltnet_files"].items()}
"""MoltNet's tables, and the names that CSV files of them have."""
MARKS = {".sql": "COPY public.diary_entries (", ".json": '"diary_entries"'}
MODEL = "e5-small-v2"
"""The model of the program's vectors; texts have the prefix "passage: ", which recorded queries lack here."""
_BEGIN = re.compile(r'COPY (?:"?\w+"?\.)?"?(\w+)"? \(([^()]*)\) FROM stdin;')
_END = "\\."
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NAMED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ITEM = re.compile(r'"((?:[^"\\]|\\.)*+)"?|([^,"{}]+)')
"""A quote that is never closed ends with the text: what stands in it is not read again from each of its places."""
MEMORIES, SESSION = ".memory_index.json", ".session.json"
TIMES = ("created_at", "updated_at", "last_accessed_at")
_ADDED = "**Added**: "
_FOOTERS = ((_ADDED, ""), ("<!-- source-hash: ", "-->"))
"""How a remark of the program begins and ends, in the last line of a file."""
_METADATA = "\n\n## Metadata\n\n```json\n"
"""What a message has after its content, where it has metadata."""
_MESSAGE = re.compile(
    r"# \W*(?P<role>\w+)\n+\*\*ID\*\*: `(?P<id>[^`]*)` *\n"
    r"\*\*Timestamp\*\*: (?P<time>[^\n]*?) UTC *\n+## Content\n\n"
)


def is_moltnet(source: ForeignStore) -> bool:
    """A dump or an export with the table of entries, or a folder with a CSV file of it."""
    if source.path.is_dir():
        files = filter(source.has, TABLES["diary_entries"])
        return any("diary_id" in source.head(name).partition("\n")[0] for name in files)
    name, mark = source.path.name, MARKS.get(source.path.suffix)
    return mark is not None and source.has(name) and mark in source.text(name, None)


@base.importer(is_moltnet)
def moltnet(source: ForeignStore) -> base.Imported:
    """MoltNet: a plain dump, a JSON export, CSV files of its tables. All diaries, with relations and vectors."""
    tables: dict[str, list[base.Row]] = {table: [] for table in TABLES}
    name = source.path.name
    if source.path.is_dir():
        for table, names in TABLES.items():
            tables[table] += (row for file in names if source.has(file) for row in rows_of(source, file))
    elif name.endswith(".json"):  # an empty table is null
        tables |= {table: rows for table, rows in source.json(name).items() if rows}
    else:
        for table, row in copied_rows(source.text(name, None).split("\n"), TABLES):
            tables[table].append(row)
    imported = base.Imported(system="moltnet", recipe="{title}\n{text}\ntag:{tag}")
    imported.show({table: rows[0].keys() for table, rows in tables.items() if rows})
    diaries = {row["id"]: row for row in tables["diaries"]}
    relations = base.grouped(tables["entry_relations"], "source_id", "moltnet_relation")
    imported.add(
        tables["diary_entries"],
        lambda row: _entry(row, diaries.get(row.get("diary_id"), {}), relations.get(row["id"], [])),
    )
    for row in tables["diary_entries"]:
        imported.vector(MODEL, str(row.get("id")), vector_of(row.get("embedding")))
    return imported


def _entry(row: base.Row, diary: base.Row, relations: list[base.Record]) -> base.Record:
    tags, threats = row.get("tags"), row.get("injection_threats")
    more = {
        "tags": [tag for tag in (array_of(tags) if isinstance(tags, str) else tags or []) if tag is not None],
        "category": "suspicious" if row.get("injection_risk") in (True, "t", "true") else None,
        "importance": _number(row.get("importance")),
        "access_count": _number(row.get("access_count")),
        **base.picked(diary, "moltnet_diary"),
        "relations": relations,
        "injection_threats": STRICT_JSON.decode(threats) if isinstance(threats, str) else threats,
    }
    return base.filled(base.picked(row, "moltnet") | more)


def _number(value: object) -> float | None:
    return None if value in (None, "") else float(str(value))


def copied_rows(lines: Iterable[str], tables: Iterable[str]) -> Iterator[tuple[str, base.Row]]:
    """Each row of these tables with the table's name; ValueError for a row with another number of columns."""
    wanted = frozenset(tables)
    table, columns = "", list[str]()
    for number, line in enumerate(lines, 1):
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


def array_of(text: str) -> list[str | None]:
    """A one-dimensional array of texts; ValueError for text that is none."""
    inner = text.removeprefix("{").removesuffix("}")
    if len(inner) != len(text) - 2:
        raise ValueError(f"{text:.40} is no array")
    return [
        re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else None if match[2] == "NULL" else match[2]
        for match in _ITEM.finditer(inner)
    ]


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


@base.importer(lambda source: source.path.is_dir() and bool(_roots(source)), homes)
def cortex_mem(source: ForeignStore) -> base.Imported:
    """Cortex-Mem: the folder of a tenant, or of all. Memories, messages, resources, layers of directories."""
    imported, skipped = base.Imported(system="cortex_mem"), list[str]()
    for root in _roots(source):
        entries: dict[str, base.Record] = {}
        facts: dict[str, base.Record] = {}
        people: dict[str, object] = {}
        names = (name for name in source.files(MEMORIES, SESSION, ".md") if name.startswith(root))
        for name in sorted(names, key=lambda name: name.endswith(".md")):  # facts before what they are of
            place = PurePosixPath(name.removeprefix(root))
            try:
                if place.name == MEMORIES:
                    facts |= _facts(place.parent, source.json(name))
                elif place.name == SESSION:
                    session = source.json(name)
                    named = session.get("participants") if isinstance(session, dict) else None
                    if isinstance(named, list) and all(isinstance(one, str) for one in named):
                        people[place.parent.name] = named
                elif place.suffix == ".md":
                    _add(entries, place, source.text(name), facts, people)
            except DataError as error:
                skipped.append(str(error))
        tenant = root.split("/")[1] if root else ""
        imported.entries += [base.filled(entry | {"tenant": tenant}) for entry in entries.values()]
    imported.note(len(skipped), "file", f"left out: {'; '.join(skipped)}")
    imported.show({MEMORIES: ()} if next(source.files(MEMORIES), None) else {})
    rest = "to carry vectors over, import as a table what its /collections/NAME/points/scroll answers"
    imported.notes.append(f"vectors lie in Qdrant, which is not asked: texts are embedded anew; {rest}")
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
    entries: dict[str, base.Record],
    place: PurePosixPath,
    raw: str,
    facts: Mapping[str, base.Record],
    people: Mapping[str, object],
) -> None:
    """The file as an entry, or as a layer of its directory's; DataError when it is none of the program's."""
    layer = LAYER_FILES.get(place.name)
    if layer is None and place.name.startswith("."):
        raise DataError(f"{quote(str(place))} is hidden")
    text = _without_footer(_without_footer(raw))
    uris = extension("cortex_client")
    uri = uris.uri_of(place.parent if layer else place)
    entry: base.Record = {"id": uris.id_of(uri), "uri": uri, "category": place.parts[0]}
    if place.parts[0] == "session":
        entry["participants"] = people.get(place.parts[1])
    if layer:
        entries.setdefault(uri, entry)[layer] = text
        return
    if message := _MESSAGE.match(text):
        content, _, more = text[message.end() :].partition(_METADATA)
        metadata: object = more.partition("\n```")[0]
        with suppress(ValueError, RecursionError):  # else the text itself
            metadata = STRICT_JSON.decode(str(metadata))
        entry |= {
            "text": content.strip("\n"),
            "metadata": metadata,
            "speaker": message["role"].lower(),
            "created_at": f"{message['time'].replace(' ', 'T')}+00:00",
            "memory_id": message["id"],
            "project": place.parts[1],
        }
    else:
        entry |= {"text": text, "title": heading_of(text.lstrip().split("\n", 1)[0]), **facts.get(uri, {})}
    entries[uri] = entry


def _facts(folder: PurePosixPath, document: object) -> dict[str, base.Record]:
    """What an index says of the memories below a folder, by their URIs."""
    memories = document.get("memories") if isinstance(document, dict) else None
    facts: dict[str, base.Record] = {}
    for row in memories.values() if isinstance(memories, dict) else ():
        if isinstance(row, dict) and isinstance(row.get("file"), str):
            record = base.picked({"access_count": 0, "archived": False, **row}, "cortex_mem")
            # no ISO reader takes nanoseconds: six digits are kept
            times = {time: re.sub(r"(\.\d{6})\d+", r"\1", str(record[time] or "")) for time in TIMES}
            facts[extension("cortex_client").uri_of(folder / row["file"])] = record | times
    return facts
