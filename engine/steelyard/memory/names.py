"""Which other entries an entry names, and the same entry without some of these names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from steelyard.memory.entry import Entry

LINKS = frozenset(
    {"links", "backlinks", "related", "related_memories", "related_entries", "see_also", "supersedes", "replaces"}
    | {"parent", "parent_id", "parents", "children"}
)
"""The fields of `extra` in which programs keep ids of other entries."""
ENDS = ("id", "target", "to", "from", "source", "target_id", "source_id", "entry_id", "memory_id")
"""Where an object in such a field has the id."""


def named(entry: Entry) -> set[str]:
    """The ids of other entries that stand in the relations, in `superseded_by` and in the links of an entry."""
    links = (name for key, value in entry.extra.items() if key.lower() in LINKS for name in _ids(value))
    return {*(relation.target for relation in entry.relations), *links, entry.superseded_by} - {"", entry.id}


def naming(entry: Entry, inside: Collection[str]) -> Entry:
    """The entry without every name that is not inside; itself where there is none."""
    gone = named(entry).difference(inside)
    if not gone:
        return entry
    extra = {key: _without(value, gone) if key.lower() in LINKS else value for key, value in entry.extra.items()}
    return replace(
        entry,
        relations=tuple(relation for relation in entry.relations if relation.target not in gone),
        superseded_by="" if entry.superseded_by in gone else entry.superseded_by,
        extra=extra,
    )


def _ids(value: Any) -> Iterator[str]:  # noqa: ANN401 -- any JSON
    if isinstance(value, list | tuple):
        for part in value:
            yield from _ids(part)
    elif isinstance(value, dict):
        for key in ENDS:
            yield from _ids(value.get(key))
    elif isinstance(value, str | int) and not isinstance(value, bool) and "://" not in str(value):
        yield str(value)


def _without(value: Any, gone: set[str]) -> Any:  # noqa: ANN401 -- as above
    if isinstance(value, list | tuple):
        return [
            _without(part, gone) for part in value if gone.isdisjoint(() if isinstance(part, list) else _ids(part))
        ]
    return None if not gone.isdisjoint(_ids(value)) else value
