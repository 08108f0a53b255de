"""What is odd in a data set without being wrong: one counted line for each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from steelyard.entry import Entry
from steelyard.errors import shown
from steelyard.query import Query
from steelyard_eval.datasets.tables import Item, Table

Grades = Mapping[str, Mapping[str, int]]
_NAMES_SHOWN = 10


def notices(entries: Table[Entry], queries: Table[Query], qrels: Grades) -> Iterator[str]:
    """Yield the notices on corpus, queries and judgments, in a fixed order."""
    yield from _unknown_fields(entries, "entries", "kept in Entry.extra")
    yield from _unknown_fields(queries, "queries", "left in the file")
    yield from _counted(_unknown_targets(entries), "relations point to entries that are not in the set")
    empty = [e for e in entries.items if not e.text]
    titled = sum(bool(e.title) for e in empty)
    yield from _counted(titled, "entries have a title and no text")
    yield from _counted(len(empty) - titled, "entries have neither title nor text")
    yield from _counted(sum(q.id not in qrels for q in queries.items), "queries have no judgment")
    out = _out_of_scope(entries, queries, qrels)
    yield from _counted(out, "relevant judgments are of entries outside their query's filter")
    yield from _counted(_split_groups(queries.items), "groups have queries in more than one split")


def _counted(count: int, what: str) -> list[str]:
    return [f"{count} {what}"] if count else []


def _unknown_fields(table: Table[Item], what: str, where: str) -> Iterator[str]:
    if table.unknown:
        names = sorted(table.unknown)
        more = ", ..." if len(names) > _NAMES_SHOWN else ""
        listed = ", ".join(shown(name, 40) for name in names[:_NAMES_SHOWN])
        yield f"{table.with_unknown} {what} have fields the format does not name, {where}: {listed}{more}"


def _unknown_targets(entries: Table[Entry]) -> int:
    targets = [r.target for e in entries.items for r in e.relations]
    targets += [e.superseded_by for e in entries.items if e.superseded_by]
    return sum(target not in entries.lines for target in targets)


def _out_of_scope(entries: Table[Entry], queries: Table[Query], qrels: Grades) -> int:
    by_id = {entry.id: entry for entry in entries.items}
    return sum(
        grade > 0 and entry in by_id and bool(query.filters.failed(by_id[entry]))
        for query in queries.items
        if query.filters
        for entry, grade in qrels.get(query.id, {}).items()
    )


def _split_groups(queries: Sequence[Query]) -> int:
    splits: dict[str, set[str]] = {}
    for query in queries:
        if query.group:
            splits.setdefault(query.group, set()).add(query.split)
    return sum(len(found) > 1 for found in splits.values())
