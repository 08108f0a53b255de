"""The MCP memory server's `memory.jsonl`: entities with observations, and relations between them.

The file has no ids and no dates. An entity's name is its id; a relation to an entity that was deleted stays. Older
servers call the file memory.json, and forks of the server have a line of their own before the others, other names
for the ends of a relation, observations with dates, or one JSON object with lists of entities and relations. A
line that is broken, as a process that was killed leaves it, costs what cannot be read of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.base.errors import DataError
from steelyard.base.files import STRICT_JSON, compact, is_deep
from steelyard_eval.common.markup import counted
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, filled, identifier
from steelyard_eval.extensions.importers.columns import searched
from steelyard_eval.extensions.importers.source import ForeignStore

FILES = ("memory.jsonl", "memory.json")
MARKERS = frozenset(("_aim",))
"""Types of lines by which a fork knows its own files."""
NAMES: dict[str, tuple[str, ...]] = {
    "type": ("entityType", "entity_type"),
    "created_at": ("createdAt", "created_at"),
    "updated_at": ("updatedAt", "updated_at", "lastUpdated"),
}
"""Field -> what servers call it."""
FROM, TO, KIND = (
    ("from", "from_entity", "source"),
    ("to", "to_entity", "target"),
    ("relationType", "relation_type"),
)
_NEXT = re.compile(r"\S")
TRIES = 8
"""How often the rest of a broken line is looked at for another object."""
TEXTS = ("content", "contents", "text", "observation", "value")
"""Keys of an observation that is an object: the first that is a text is what was observed."""


def homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The file that MEMORY_FILE_PATH names, else one of the server's names here."""
    yield from [Path(environ["MEMORY_FILE_PATH"])] if environ.get("MEMORY_FILE_PATH") else map(Path, FILES)


def _file(source: ForeignStore) -> str:
    if not source.path.is_dir():
        return source.path.name
    return next((name for name in FILES if source.has(name)), FILES[0])


def matches(source: ForeignStore) -> bool:
    """A file of JSON Lines with an entity or a relation among the first, or one object with lists of both."""
    name = _file(source)
    if not name.endswith((".jsonl", ".json")) or not source.has(name):
        return False
    head = "".join(source.head(name).split())
    if any(f'"type":"{marker}"' in head for marker in MARKERS):
        return True
    known = any(f'"{key}":' in head for key in ("observations", *NAMES["type"], *KIND))
    return known and any(begin in head for begin in ('"type":"entity"', '"type":"relation"', '{"entities":['))


def read(source: ForeignStore) -> Imported:
    """Every entity as an entry: its observations are the text, its relations the relations."""
    imported, graph = Imported(), _Graph()
    broken: dict[int, None] = {}
    for number, record in _records(source, broken):
        if not graph.add(record):
            broken[number] = None
    imported.entries = graph.entries()
    if not imported.entries and broken:
        raise DataError(f"{source} has neither entities nor relations that can be read; restore it")
    if broken:
        lines = counted(len(broken), "line holds", "lines hold")
        listed = ", ".join(map(str, sorted(broken)))
        imported.notes.append(f"{lines} what is no entity and no relation, which is left out: line {listed}")
    rest = "there more than once; their observations are put together"
    imported.note(len(graph.again), "entity is", rest, "entities are")
    lost = sum(len(found) for name, found in graph.relations.items() if name not in graph.entities)
    imported.note(lost, "relation", "left out, which begin at an entity that is not there")
    return imported


def _records(source: ForeignStore, broken: dict[int, None]) -> Iterator[tuple[int, object]]:
    """The records of a file, each with the number of its line; `broken` gets lines with something else."""
    file = _file(source)
    lines = list(source.lines(file))
    if lines and not _values(lines[0][1].strip())[1]:  # perhaps one value on many lines
        try:
            yield from ((1, record) for record in _parts(source.json(file)))
            return
        except DataError:
            pass
    for number, line in lines:
        values, whole = _values(line.strip())
        if not whole:
            broken[number] = None
        yield from ((number, record) for value in values for record in _parts(value))


def _values(line: str) -> tuple[list[object], bool]:
    """The JSON values that stand one behind the other in a line, and whether there is nothing else in it."""
    values, at, tries = list[object](), 0, 0
    while 0 <= at < len(line):
        try:
            value, at = STRICT_JSON.raw_decode(line, at)
            if is_deep(value):
                raise ValueError
        except (ValueError, RecursionError):
            tries += 1
            at = line.find('{"', at + 1) if tries < TRIES else -1
            continue
        values.append(value)
        at = found.start() if (found := _NEXT.search(line, at)) else len(line)
    return values, not tries


def _parts(value: object) -> Iterator[object]:
    """The records in a value: itself, or those of a list, or of the lists of a whole graph."""
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict) and isinstance(value.get("entities"), list):
        for kind, plural in (("entity", "entities"), ("relation", "relations")):
            records = value.get(plural) or []
            yield from ({"type": kind, **r} if isinstance(r, dict) else r for r in records)
    else:
        yield value


@dataclass
class _Entity:
    """The fields of all lines of one name, the first line's first; its observations by what they say."""

    record: Record = field(default_factory=dict)
    observations: dict[str, object] = field(default_factory=dict)


class _Graph:
    """Entities by name, and the relations that begin at each."""

    def __init__(self) -> None:
        self.entities: dict[str, _Entity] = {}
        self.relations: dict[str, list[Record]] = {}
        self.again: set[str] = set()

    def add(self, record: object) -> bool:
        """Take a record; whether all of it is an entity, a relation or the marker of a fork."""
        if not isinstance(record, dict):
            return False
        if record.get("type") in MARKERS:
            return True
        ends = [_first(record, names) for names in (FROM, TO)]
        if isinstance(record.get("name"), str) and record.get("type", "entity") == "entity":
            return self._entity(record)
        if all(isinstance(end, str) and end for end in ends) and record.get("type", "relation") == "relation":
            relation: Record = {
                "type": str(_first(record, KIND) or "relates_to"),
                "target": identifier(str(ends[1])),
            }
            self.relations.setdefault(str(ends[0]), []).append(relation)
            return True
        return False

    def _entity(self, record: Record) -> bool:
        name, seen = str(record["name"]), record.get("observations")
        observations = seen if isinstance(seen, list) else [] if seen is None else [seen]
        fields = {name: _first(record, names) for name, names in NAMES.items()}
        known = {"type", "name", "observations", *(name for names in NAMES.values() for name in names)}
        rest = {key: value for key, value in record.items() if key not in known}
        if name in self.entities:
            self.again.add(name)
        entity = self.entities.setdefault(name, _Entity())
        entity.record = filled({"id": identifier(name), "title": name, **rest, **fields}) | entity.record
        whole = True
        for observation in observations:
            text = _text(observation)
            whole = whole and bool(text)
            entity.observations.setdefault(text or compact(observation), observation)
        return whole

    def entries(self) -> list[Record]:
        """The entities as entries, in the order in which they first came."""
        return [
            filled(
                {
                    **searched(
                        {
                            **entity.record,
                            "text": "\n".join(filter(None, map(_text, entity.observations.values()))),
                        }
                    ),
                    "observations": list(entity.observations.values()),
                    "relations": self.relations.get(name, []),
                }
            )
            for name, entity in self.entities.items()
        ]


def _first(record: Mapping[str, object], names: Iterable[str]) -> object:
    return next((record[name] for name in names if record.get(name) not in (None, "")), None)


def _text(observation: object) -> str:
    """What was observed; empty where that is no text."""
    said = _first(observation, TEXTS) if isinstance(observation, dict) else observation
    return said if isinstance(said, str) else ""


IMPORTER = Importer("mcp_memory", "MCP memory server: memory.jsonl", matches, read, homes)
