"""Entries, which a vault stores, and hits, which a search returns.

Fields have the names of the data-set format; the preset of each system maps its own names onto them.
Times are seconds since 1970-01-01 UTC; a time without a zone is UTC.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from steelyard.base.errors import DataError, Fault, quote
from steelyard.base.fields import READERS, RULES, TIME_FIELDS, Reader, read_number, read_text

if TYPE_CHECKING:
    from steelyard.base.arrays import Floats


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed edge from one entry to another; `strength` is on the scale of its data set, or None."""

    type: str
    target: str
    strength: float | None = None
    status: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One document of the corpus. Only `id` is required; an empty string means "not given"."""

    id: str
    title: str = ""
    text: str = ""
    context: str = ""
    why: str = ""
    impact: str = ""
    details: str = ""
    l0: str = ""
    l1: str = ""
    type: str = ""
    category: str = ""
    domain: str = ""
    severity: str = ""
    tags: tuple[str, ...] = ()
    importance: float | None = None
    project: str = ""
    source: str = ""
    vault: str = ""
    tenant: str = ""
    kind: str = ""
    uri: str = ""
    speaker: str = ""
    spec_level: str = ""
    document_type: str = ""
    memory_type: str = ""
    context_type: str = ""
    importance_tier: str = ""
    visibility: str = ""
    embedding_status: str = ""
    superseded_by: str = ""
    participants: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    stability: float | None = None
    difficulty: float | None = None
    review_count: float | None = None
    access_count: float | None = None
    correction_count: float | None = None
    half_life_days: float | None = None
    created_at: float | None = None
    updated_at: float | None = None
    last_accessed_at: float | None = None
    last_review: float | None = None
    valid_from: float | None = None
    valid_until: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are not empty, as plain values."""
        record = dataclasses.asdict(self)
        return {name: value for name, value in record.items() if value not in ("", None, (), {}, [])}


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a search, with its rank from 1.

    The score is None for an entry that fills up a context and was not scored. `signals` are those that the
    strategy used, by name; 0 for a retriever that did not return the entry.
    """

    rank: int
    score: float | None
    entry: Entry
    signals: Mapping[str, float] = field(default_factory=dict)


def _relations(value: object) -> tuple[Relation, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("not a list")
    return tuple(map(_relation, value))


def _relation(item: object) -> Relation:
    if not isinstance(item, Mapping):
        raise ValueError("not a relation")
    type_, target, status = map(read_text, (item.get("type"), item.get("target"), item.get("status") or ""))
    strength = item.get("strength")
    return Relation(type_, target, None if strength is None else read_number(strength), status)


FIELDS: dict[str, Reader] = {
    f.name: READERS.get(f.name, _relations) for f in dataclasses.fields(Entry) if f.name != "extra"
}
"""Every field of an entry, with the function that reads its JSON value."""
EVERY_FIELD = (*FIELDS, "extra")
"""What an entry has: the fields above, and what was unknown."""

_RULES: dict[Reader, tuple[str, str]] = RULES | {
    _relations: ("must be a list of relations", 'Write [{"type": "...", "target": "..."}], strength a number')
}


def read_fields(
    record: Mapping[str, Any], parsers: Mapping[str, Reader], required: Sequence[str], file: str, line: int
) -> tuple[dict[str, Any], list[Fault]]:
    """Read the known fields of a JSON object, of which null counts as absent: the values, and all that is wrong.

    `parsers` say how each field is read, others are ignored; file and line are for the faults.
    """
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, raw in record.items():
        parser = parsers.get(name)
        if parser is None or raw is None:
            continue
        try:
            values[name] = parser(raw)
        except (ValueError, OverflowError):
            rule, remedy = _RULES[parser]
            faults.append(Fault(file, line, name, quote(raw), rule, remedy))
    missing = (name for name in required if record.get(name) is None)
    faults += [Fault(file, line, name, "", "is missing", f'Add "{name}"') for name in missing]
    identifier = values.get("id")
    if identifier is not None and (not identifier or any(map(str.isspace, identifier))):
        rule = "must be non-empty and without white space, because TREC files separate by it"
        faults.append(Fault(file, line, "id", quote(identifier), rule, "Choose another id"))
    return values, faults


def check_entry(entry: Entry) -> None:
    """DataError naming every value that no data set could hold: an id with white space, NaN, a number as a tag."""
    plain = (str, tuple, type(None))
    record = {name: value for name in FIELDS if type(value := getattr(entry, name)) not in plain or value}
    record["id"] = entry.id
    if entry.relations and all(isinstance(relation, Relation) for relation in entry.relations):
        record["relations"] = [dataclasses.asdict(relation) for relation in entry.relations]
    values, faults = read_fields(record, FIELDS, ("id",), "entry", 0)
    remedy = "Read it with steelyard.base.fields.parse_time"
    texts = [name for name in TIME_FIELDS & values.keys() if isinstance(record[name], str)]
    faults += [Fault("entry", 0, name, quote(record[name]), "must be seconds", remedy) for name in texts]
    try:
        if entry.extra:
            json.dumps(dict(entry.extra), allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        faults.append(Fault("entry", 0, "extra", quote(str(error)), "must be JSON", "Leave out what is not JSON"))
    if faults:
        raise DataError(f"entry {quote(entry.id)}: " + "; ".join(map(str, faults)))


def read_entry(record: Mapping[str, Any], file: str = "entry", line: int = 0) -> tuple[Entry | None, list[Fault]]:
    """Build an entry from a JSON object, with unknown fields in `extra`; None, with faults, when it is wrong."""
    values, faults = read_fields(record, FIELDS, ("id",), file, line)
    if faults:
        return None, faults
    extra = {name: value for name, value in record.items() if name not in FIELDS}
    return Entry(**values, extra=extra), []


LINKS = frozenset(
    {"links", "backlinks", "related", "related_memories", "related_entries", "see_also", "supersedes", "replaces"}
    | {"parent", "parent_id", "parents", "children"}
)
"""The fields of `extra` in which programs keep ids of other entries."""
ENDS = ("id", "target", "to", "from", "source", "target_id", "source_id", "entry_id", "memory_id")
"""Where an object in such a field has the id."""


def linked_ids(entry: Entry) -> set[str]:
    """The ids of other entries that stand in the relations, in `superseded_by` and in the links of an entry."""
    links = (name for key, value in entry.extra.items() if key.lower() in LINKS for name in _ids(value))
    return {*(relation.target for relation in entry.relations), *links, entry.superseded_by} - {"", entry.id}


def naming(entry: Entry, inside: Collection[str]) -> Entry:
    """The entry without every name that is not inside; itself where there is none."""
    gone = linked_ids(entry).difference(inside)
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
        left = (part for part in value if isinstance(part, list) or gone.isdisjoint(_ids(part)))
        return [_without(part, gone) for part in left]
    return None if not gone.isdisjoint(_ids(value)) else value


DAY = 86_400.0
"""Seconds."""


def fsrs(days: Floats, stability: Floats) -> Floats:
    """Retrievability of a memory, in 0..1; 0 for a stability that is not positive or a negative time.

    The forgetting curve of FSRS (Ye, Su and Cao, 2022).

    >>> import numpy as np
    >>> fsrs(np.array([9.0]), np.array([9.0]))
    array([0.9])
    """
    import numpy as np  # whoever reads entries alone loads none

    sound = (stability > 0) & (days >= 0)
    base = 1.0 + 19.0 / 81.0 * np.where(sound, days, 0.0) / np.where(sound, stability, 1.0)
    return np.where(sound, np.clip(base**-0.5, 0.0, 1.0), 0.0)
