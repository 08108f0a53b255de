"""The MCP memory server's `memory.jsonl`: entities with observations, and relations between them.

The file has no ids and no dates. An entity's name is its id; a relation to an entity that was deleted stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from steelyard.base.errors import DataError
from steelyard_eval.importers.base import Imported, Importer, Record, filled, identifier
from steelyard_eval.importers.source import ForeignStore, decoded

FILE = "memory.jsonl"


def homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The file that MEMORY_FILE_PATH names, else memory.jsonl here."""
    yield Path(environ.get("MEMORY_FILE_PATH") or FILE)


def _file(source: ForeignStore) -> str:
    return FILE if source.path.is_dir() else source.path.name


def matches(source: ForeignStore) -> bool:
    """A JSON Lines file whose first line is an entity or a relation."""
    name = _file(source)
    if not name.endswith(".jsonl") or not source.has(name):
        return False
    _, first = next(source.lines(name), (0, ""))
    return any(f'"type":"{kind}"' in first.replace(" ", "") for kind in ("entity", "relation"))


def read(source: ForeignStore) -> Imported:
    """Every entity as an entry: its observations are the text, its relations the relations."""
    name = _file(source)
    entities: dict[str, Record] = {}
    relations: dict[str, list[Record]] = {}
    for number, line in source.lines(name):
        record = decoded(line, f"{source}: line {number}")
        try:
            _add(record, entities, relations)
        except (KeyError, TypeError, AttributeError):
            raise DataError(f"{source}: line {number} is neither an entity nor a relation; correct it") from None
    entries = [filled(entry | {"relations": relations.get(id_, [])}) for id_, entry in entities.items()]
    return Imported(entries=entries)


def _add(record: Any, entities: dict[str, Record], relations: dict[str, list[Record]]) -> None:  # noqa: ANN401 -- any JSON
    if record["type"] == "entity":
        id_ = identifier(record["name"])
        entities[id_] = {
            "id": id_,
            "title": record["name"],
            "text": "\n".join(record["observations"]),
            "type": record["entityType"],
            "observations": record["observations"],
        }
    elif record["type"] == "relation":
        relation = {"type": record["relationType"], "target": identifier(record["to"])}
        relations.setdefault(identifier(record["from"]), []).append(relation)


IMPORTER = Importer("mcp_memory", "MCP memory server: memory.jsonl", matches, read, homes)
