"""Memories of agents: LangGraph's store, mem0's folders, the MCP memory server's file.

LangGraph (langgraph-checkpoint-sqlite 3): a value is any JSON object, so its text is looked for by name; the file
keeps vectors of deleted items. mem0 (2.2.1): a local Qdrant folder holds pickles, which are read as plain values;
of a memory that only the history has, the last event counts, and who it belongs to is not kept there. The MCP
memory server has entities with observations, and relations; no ids and no dates. Forks have a line of their own
before the others, other names for the ends of a relation, observations with dates, or one JSON object with lists
of both.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steelyard.base.errors import DataError
from steelyard.base.files import STRICT_JSON, compact, is_deep
from steelyard_eval.extensions.importers import base
from steelyard_eval.extensions.importers.pickled import plain
from steelyard_eval.extensions.importers.source import ForeignStore
from steelyard_eval.extensions.importers.table import entry_fields, fitted, searched, vector_of

MODEL, MEM0_MODEL = "langgraph", "mem0"
HISTORY, META, STORAGE = "history.db", "meta.json", "storage.sqlite"
FILES = ("memory.jsonl", "memory.json")
MARKERS = frozenset(("_aim",))  # Types of lines by which a fork knows its own files
NAMES: dict[str, list[str]] = base.WORDS["entity"]
RELATION: dict[str, list[str]] = base.WORDS["relation"]
KNOWN = frozenset(("type", "name", "observations", *(name for names in NAMES.values() for name in names)))
_NEXT = re.compile(r"\S")
TRIES = 8  # How often the rest of a broken line is looked at for another object


def _graph(source: ForeignStore) -> str:
    """The SQLite file of a store, or the base.first one in a folder; empty where there is none."""
    folder = source.path.is_dir()
    names = (name for name in source.files(".db", ".sqlite", ".sqlite3") if "/" not in name) if folder else ()
    return next((name for name in names or [source.path.name] if source.holds(name, store=["prefix"])), "")


@base.importer(lambda source: bool(_graph(source)))
def langgraph(source: ForeignStore) -> base.Imported:
    """LangGraph: the SQLite file of a store, or its folder. Every item, with the vector of its whole value."""
    imported = base.Imported(recipe="")
    with source.database(_graph(source) or source.path.name) as db:
        imported.add(db.rows("store", "prefix"), _item)
        known = {entry["id"] for entry in imported.entries}
        rows = list(db.rows("store_vectors", "prefix"))
        imported.note(sum(_item_id(row) not in known for row in rows), "vector", "of deleted items left out")
        for row in rows:
            if (id_ := _item_id(row)) in known and row["field_name"] == "$" and row["embedding"] is not None:
                imported.vector(MODEL, id_, db.floats(row["embedding"]))
        imported.notes += db.notes()
    return imported


def _item_id(row: dict[str, Any]) -> str:
    return base.identifier(f"{row['prefix']}/{row['key']}")


def _item(row: dict[str, Any]) -> base.Record:
    raw, prefix = row["value"], row["prefix"]
    value = STRICT_JSON.decode(raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw))
    value = value if isinstance(value, dict) else {"text": str(value)}
    entry = searched(entry_fields(value))
    return base.filled(
        {
            "id": _item_id(row),
            **{name: part for name, part in entry.items() if name not in ("id", "uri")},
            "uri": f"{prefix}/{row['key']}",
            "project": prefix.rpartition(".")[2],
            "namespace": prefix.split("."),
            "item_key": row["key"],
            **{name: f"{row[name] or ''}".replace(" ", "T") for name in ("created_at", "updated_at")},
            "ttl_minutes": row["ttl_minutes"],
            "value": value,
        }
    )


def _is_mem0(source: ForeignStore) -> bool:
    if source.has(HISTORY):
        return source.holds(HISTORY, history=["memory_id"])
    return source.has(META) and any(source.files(STORAGE))  # in /tmp by default


@base.importer(_is_mem0, lambda environ: [Path(environ.get("MEM0_DIR") or Path.home() / ".mem0")])
def mem0(source: ForeignStore) -> base.Imported:
    """mem0: history.db and a local Qdrant folder. What Qdrant has now, then what the history alone has."""
    imported = base.Imported(recipe="{text}")
    for name in source.files(STORAGE):
        with source.database(name) as db:
            imported.add(db.rows("points", "id"), lambda row: _point(imported, plain(row["point"])))
    points = imported.entries
    imported.entries = [point for point in points if point]
    imported.note(len(points) - len(imported.entries), "point", "without a text left out")
    if source.has(HISTORY):
        known = {entry["id"] for entry in imported.entries}
        last: dict[str, base.Record] = {}
        with source.database(HISTORY) as db:
            for row in db.rows("history"):
                if row["event"] == "DELETE":
                    last.pop(row["memory_id"], None)
                elif row["memory_id"] not in known:
                    last[row["memory_id"]] = base.filled(base.picked(row, "mem0"))
        imported.entries += last.values()
        rest = f"taken from {HISTORY}, which has no user and no metadata"
        imported.note(len(last), "memory is", rest, "memories are")
    return imported


def _point(imported: base.Imported, point: Any) -> base.Record:  # noqa: ANN401 -- whatever the file holds
    id_, payload, vector = point["id"], point["payload"], point.get("vector")
    if "data" not in payload:  # such as what mem0's telemetry keeps, in a collection of its own
        return {}
    if not isinstance(payload["data"], str) or not isinstance(id_, str | int) or isinstance(id_, bool):
        raise ValueError("no memory")
    rest = {name: value for name, value in payload.items() if name not in base.WORDS["mem0_own"]}
    fields = {name: fitted(name, rest.pop(name)) for name in base.WORDS["mem0_fields"] if rest.get(name)}
    imported.vector(MEM0_MODEL, str(id_), vector_of(vector.get("") if isinstance(vector, dict) else vector))
    return base.filled({"id": str(id_), "text": payload["data"], **fields, **rest})


def _file(source: ForeignStore) -> str:
    if not source.path.is_dir():
        return source.path.name
    return next((name for name in FILES if source.has(name)), FILES[0])


def matches(source: ForeignStore) -> bool:
    """A file of JSON Lines with an entity or a relation among the base.first, or one object with lists of both."""
    name = _file(source)
    if not name.endswith((".jsonl", ".json")) or not source.has(name):
        return False
    head = "".join(source.head(name).split())
    if any(f'"type":"{marker}"' in head for marker in MARKERS):
        return True
    known = any(f'"{key}":' in head for key in ("observations", *NAMES["type"], *RELATION["type"]))
    return known and any(begin in head for begin in ('"type":"entity"', '"type":"relation"', '{"entities":['))


@base.importer(
    matches, lambda environ: map(Path, [environ["MEMORY_FILE_PATH"]] if environ.get("MEMORY_FILE_PATH") else FILES)
)
def mcp_memory(source: ForeignStore) -> base.Imported:
    """MCP memory server: memory.jsonl. An entry for each entity; lines of one name are put together."""
    imported, broken, again = base.Imported(recipe=""), set[int](), set[str]()
    entities: dict[str, base.Record] = {}
    observed: dict[str, dict[str, object]] = {}
    relations: dict[str, list[base.Record]] = {}
    for number, record in _records(source, broken):
        kind, name = record.get("type"), record.get("name")
        begin, end = base.first(record, *RELATION["from"]), base.first(record, *RELATION["to"])
        if isinstance(name, str) and kind in (None, "entity"):
            again |= {name} & entities.keys()
            fields = {field: base.first(record, *names) for field, names in NAMES.items()}
            others = {key: value for key, value in record.items() if key not in KNOWN}
            entity = base.filled({"id": base.identifier(name), "title": name, **others, **fields})
            entities[name] = entity | entities.get(name, {})
            seen = record.get("observations")
            for one in seen if isinstance(seen, list) else [] if seen is None else [seen]:
                broken |= set() if _text(one) else {number}
                observed.setdefault(name, {}).setdefault(_text(one) or compact(one), one)
        elif isinstance(begin, str) and isinstance(end, str) and kind in (None, "relation"):
            relation: base.Record = {
                "type": str(base.first(record, *RELATION["type"]) or "relates_to"),
                "target": base.identifier(end),
            }
            relations.setdefault(begin, []).append(relation)
        elif kind not in MARKERS:
            broken.add(number)
    if not entities and broken:
        raise DataError(f"{source} has neither entities nor relations that can be read; restore it")
    for name, entity in entities.items():
        own = observed.get(name, {})
        entry = searched({**entity, "text": "\n".join(filter(None, map(_text, own.values())))})
        more = {"observations": list(own.values()), "relations": relations.get(name, [])}
        imported.entries.append(base.filled({**entry, **more}))
    rest = f"what is no entity and no relation, which is left out: line {', '.join(map(str, sorted(broken)))}"
    imported.note(len(broken), "line holds", rest, "lines hold")
    rest = "there more than once; their observations are put together"
    imported.note(len(again), "entity is", rest, "entities are")
    lost = sum(len(found) for name, found in relations.items() if name not in entities)
    imported.note(lost, "relation", "left out, which begin at an entity that is not there")
    return imported


def _records(source: ForeignStore, broken: set[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file that is one JSON document, or has some in each line, with their lines."""
    name = _file(source)
    try:
        values = [(1, source.json(name))]
    except DataError:
        values = [
            (number, value)
            for number, line in source.lines(name)
            for value in _in_line(line.strip(), number, broken)
        ]
    for number, value in values:
        if isinstance(value, dict) and isinstance(value.get("entities"), list):
            value = [*value["entities"], *(value.get("relations") or [])]
        for record in value if isinstance(value, list) else [value]:
            if isinstance(record, dict):
                yield number, record
            else:
                broken.add(number)


def _in_line(line: str, number: int, broken: set[int]) -> Iterator[object]:
    """The JSON values that stand one behind the other in a line; one with anything else in it is broken."""
    at, tries = 0, 0
    while 0 <= at < len(line):
        try:
            value, at = STRICT_JSON.raw_decode(line, at)
            if is_deep(value):
                raise ValueError
            yield value
            at = found.start() if (found := _NEXT.search(line, at)) else len(line)
        except (ValueError, RecursionError):
            tries += 1
            broken.add(number)
            at = line.find('{"', at + 1) if tries < TRIES else -1


def _text(observation: object) -> str:
    said = base.first(observation, *base.WORDS["observation"]) if isinstance(observation, dict) else observation
    return said if isinstance(said, str) else ""
