"""Single queries: those on which contenders differ most, and both lists where a change moves most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard_eval.common.markup import MISSING, clip, number
from steelyard_eval.result.sentences import heading
from steelyard_eval.result.structs import Listed, QueryRow, Result
from steelyard_eval.views.figures import two_sides
from steelyard_eval.views.report.parts import Block, ListPlace, Pair, Pairs, TableBlock, Texts
from steelyard_eval.views.sheets import Sheet, SheetColumn, facts_of, ranked

SHOWN = 10
COLUMNS = 6
"""Contenders beside each other; more would be a wall of numbers."""
TEXT, HIT, NAME = 240, 110, 60
"""Characters of a query, an entry, an id."""


def widest(result: Result) -> Iterator[Block]:
    """The queries with the widest range of values, widest first, equal ones by id."""
    if not result.rows or not result.queries:
        return
    base = result.provenance.baseline
    labels = [row.label for row in ranked(result)]
    others = [label for label in labels if label != base][: COLUMNS - (base in labels)]
    kept = [label for label in labels if label == base or label in others]
    wide = []
    for query in result.queries:
        values = [value for label in kept if (value := query.values.get(label)) is not None]
        if values and max(values) > min(values):
            wide.append((min(values) - max(values), query.id, query))
    if not wide:
        yield Texts((heading("all_alike"),))
        return
    top = [query for _, _, query in sorted(wide, key=lambda row: row[:2])[:SHOWN]]
    known = {**facts_of(result), "others": len(kept) - 1 if len(kept) < len(labels) else None}
    heads = (SheetColumn(heading("query"), key="query"), *(SheetColumn(label, right=True) for label in kept))
    rows = tuple(_row(query, kept) for query in top)
    yield TableBlock(Sheet("wide", heading("title_wide"), heads, rows, heading("legend_wide", known)))


def _row(query: QueryRow, labels: Sequence[str]) -> tuple[str, ...]:
    values = [query.values.get(label) for label in labels]
    best = max(value for value in values if value is not None)
    cells = [number(value) + ("*" if value == best else "") for value in values]
    return (f"{clip(query.text or MISSING, TEXT)} ({_about(query)})", *cells)


def _about(query: QueryRow) -> str:
    return ", ".join(clip(part, NAME) for part in (query.id, query.category) if part)


def pairs(result: Result) -> Iterator[Block]:
    """Both rankings of the queries whose value changes most; nothing where there are no lists."""
    two = two_sides(result)
    if two is None:
        return
    changed = [
        (query, before, after)
        for query in result.queries
        if (before := query.values.get(two[0])) is not None
        and (after := query.values.get(two[1])) is not None
        and before != after
        and query.lists.keys() >= {*two}
    ]
    changed.sort(key=lambda row: (-abs(row[2] - row[1]), row[0].id))
    if changed:
        yield Pairs(two, tuple(_pair(result, two, *row) for row in changed[:SHOWN]))


def _pair(result: Result, two: tuple[str, str], query: QueryRow, before: float, after: float) -> Pair:
    left, right = (query.lists[label] for label in two)
    return Pair(
        text=clip(query.text or MISSING, TEXT),
        about=_about(query),
        change=f"{number(before)} \u2192 {number(after)}",
        left=tuple(_place(result, query, left, at, right, "left") for at in range(len(left.entries))),
        right=tuple(_place(result, query, right, at, left, "right") for at in range(len(right.entries))),
    )


def _place(result: Result, query: QueryRow, own: Listed, at: int, other: Listed, side: str) -> ListPlace:
    id_ = own.entries[at]
    grade = query.grades.get(id_)
    parts = [(name, values[at]) for name, values in sorted(own.parts.items()) if values[at]]
    return ListPlace(
        text=clip(result.entries.get(id_) or id_, HIT),
        grade="" if grade is None else str(grade),
        move=_move(at, other.entries, id_, side),
        parts=", ".join(f"{name} {value:.3g}" for name, value in parts),
    )


def _move(at: int, other: Sequence[str], id_: str, side: str) -> str:
    """Where an entry is in the other list, in words."""
    if id_ not in other:
        return heading("move_new" if side == "right" else "move_left")
    rank = other.index(id_)
    return heading("move_same" if rank == at else "move_was" if side == "right" else "move_to", {"rank": rank + 1})
