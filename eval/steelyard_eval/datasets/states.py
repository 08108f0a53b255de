"""What a data set held: a short hash of every entry and query and all grades, to say later what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

from steelyard.base.errors import visible
from steelyard.base.files import compact
from steelyard_eval.datasets.dataset import Dataset

State = Mapping[str, object]
NAMED = 3
"""Changed ids that are named."""
DIGITS = 8
"""Hexadecimal digits of the hash of one entry or query: enough against accidents, and nothing is decided by it."""


def hashed(value: object) -> str:
    """The SHA-256 of a JSON value."""
    return sha256(compact(value).encode("utf-8", "surrogatepass")).hexdigest()


def states(dataset: Dataset, most: int) -> dict[str, State]:
    """The state of entries, queries and labels; a part with more than `most` items is empty. Entries and queries
    are id -> hash, labels are query -> entry -> grade.
    """
    judgments = sum(map(len, dataset.qrels.values()))
    return {
        "entries": {entry.id: hashed(entry.to_json())[:DIGITS] for entry in dataset.entries}
        if len(dataset.entries) <= most
        else {},
        "queries": {query.id: hashed([query.text, repr(query.filters)])[:DIGITS] for query in dataset.queries}
        if len(dataset.queries) <= most
        else {},
        "labels": {query: dict(grades) for query, grades in dataset.qrels.items()} if judgments <= most else {},
    }


def moved(before: State, now: State, *, named: int = 0) -> str:
    """How many items were added, removed and changed, with the first ids of each; empty where none was.

    >>> moved({"q1": {"a": 1, "b": 0}}, {"q1": {"a": 2, "b": 0, "c": 1}}, named=1)
    "1 added ('q1 c'), 1 changed ('q1 a')"
    """
    old, new = dict(_flat(before)), dict(_flat(now))
    parts = {
        "added": sorted(new.keys() - old.keys()),
        "removed": sorted(old.keys() - new.keys()),
        "changed": sorted(key for key in old.keys() & new.keys() if old[key] != new[key]),
    }
    return ", ".join(f"{len(ids)} {how}{_ids(ids, named)}" for how, ids in parts.items() if ids)


def _flat(state: State) -> Iterator[tuple[str, object]]:
    for key, value in state.items():
        if isinstance(value, Mapping):
            yield from ((f"{key} {entry}", grade) for entry, grade in value.items())
        else:
            yield key, value


def _ids(found: list[str], named: int) -> str:
    if not named:
        return ""
    more = ", ..." if len(found) > named else ""
    return f" ({', '.join(repr(visible(id_)[:60]) for id_ in found[:named])}{more})"
