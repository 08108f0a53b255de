"""Queries: where configurations disagree, and both rankings of those that the change moves most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard_eval.common.configurations import short_name
from steelyard_eval.common.documents.parts import ListRecord, QueryRecord, RankingsRecord
from steelyard_eval.common.documents.results import ResultsDocument
from steelyard_eval.common.markup import MISSING, clip, number
from steelyard_eval.explain.moves import cause, changed, leads
from steelyard_eval.show.report.blocks import Block, Cell, ListPlace, Pair, Pairs, Paragraph, Row, amount, table
from steelyard_eval.show.report.leaderboard import configurations
from steelyard_eval.show.report.sides import Sides

SHOWN = 10
COLUMNS = 6
"""Configurations beside each other; more would be a wall of numbers."""
_TEXT_COLUMNS = 240
_HIT_COLUMNS = 110


def disagreements(results: ResultsDocument) -> tuple[Block, ...]:
    """The queries with the widest range of values, widest first, equal ones by id."""
    if not results["configurations"] or not results.get("per_query"):
        return ()
    labels = _labels(results)
    wide = []
    for query in results["per_query"]:
        values = [value for label in labels if (value := query["values"].get(label)) is not None]
        if values and max(values) > min(values):
            wide.append((min(values) - max(values), query["id"], query))
    if not wide:
        return (Paragraph("All configurations have the same value on every query."),)
    top = [query for _, _, query in sorted(wide, key=lambda row: row[:2])[:SHOWN]]
    best = (
        f"the baseline and the best {len(labels) - 1} others; "
        if len(labels) < len(results["configurations"])
        else ""
    )
    caption = (
        f"{results['primary']} by query, widest range first; {best}the best value of each query is marked with *."
    )
    return table("Queries", caption, (_row(query, labels) for query in top))


def _labels(results: ResultsDocument) -> list[str]:
    """The labels of the columns, in the order of the leaderboard: the baseline and the best others."""
    labels = [contender["label"] for contender in configurations(results)]
    base = results.get("baseline")
    others = [label for label in labels if label != base][: COLUMNS - (base in labels)]
    return [label for label in labels if label == base or label in others]


def _row(query: QueryRecord, labels: Sequence[str]) -> Row:
    values = [query["values"].get(label) for label in labels]
    best = max(value for value in values if value is not None)
    about = ", ".join(clip(part, 60) for part in (query["id"], query.get("category")) if part)
    cells = [amount(value, text=number(value) + ("*" if value == best else "")) for value in values]
    text = Cell(clip(query.get("text") or MISSING, _TEXT_COLUMNS), about)
    return [("query", text), *zip(labels, cells, strict=True)]


def pairs(results: ResultsDocument, two: Sides | None) -> tuple[Block, ...]:
    """Both rankings of the queries whose value changes most; nothing where the document has no lists."""
    rankings = results.get("rankings") or {}
    lists = {contender["label"]: contender["queries"] for contender in rankings.get("lists", ())}
    if two is None or two.left not in lists or two.right not in lists:
        return ()
    changed = sorted(two.rows(results), key=lambda row: (-abs(row[2] - row[1]), row[0]["id"]))
    moved = tuple(_pair(rankings, lists, two, *row) for row in changed[:SHOWN] if row[1] != row[2])
    return (Pairs((two.left, two.right), moved),) if moved else ()


def _pair(
    rankings: RankingsRecord,
    lists: Mapping[str, Mapping[str, ListRecord]],
    two: Sides,
    query: QueryRecord,
    left: float,
    right: float,
) -> Pair:
    records = [lists[label].get(query["id"], {"entries": []}) for label in (two.left, two.right)]
    before, after = (list(record["entries"]) for record in records)
    by = movers(*records)
    return Pair(
        text=clip(query.get("text") or MISSING, _TEXT_COLUMNS),
        about=", ".join(clip(part, 60) for part in (query["id"], query.get("category")) if part),
        change=f"{number(left)} to {number(right)}",
        left=tuple(_hit(rankings, query["id"], records[0], i, after, ("to", "left")) for i in range(len(before))),
        right=tuple(
            _hit(rankings, query["id"], records[1], i, before, ("was", "new"), by) for i in range(len(after))
        ),
    )


def movers(left: ListRecord, right: ListRecord) -> dict[str, str]:
    """The signal that moved each entry of both lists most, as `steelyard explain` finds it, by entry."""
    both = [id_ for id_ in right["entries"] if id_ in left["entries"]]
    if not both or not (left.get("parts") and right.get("parts")):
        return {}
    ranks = {id_: (left["entries"].index(id_), right["entries"].index(id_)) for id_ in both}
    before, after = ({id_: _parts(side, ranks[id_][at]) for id_ in both} for at, side in enumerate((left, right)))
    causes = {id_: cause(*ranks[id_], changed(*own)) for id_, own in leads(before, after, ranks).items()}
    return {id_: name for id_, name in causes.items() if name is not None}


def _parts(record: ListRecord, place: int) -> dict[str, float]:
    """What each signal adds at one place; a prior counts as one signal whatever its options."""
    parts: dict[str, float] = {}
    for label, values in record["parts"].items():
        name = short_name(label)
        parts[name] = parts.get(name, 0.0) + values[place]
    return parts


def _hit(
    rankings: RankingsRecord,
    query: str,
    own: ListRecord,
    at: int,
    other: Sequence[str],
    words: tuple[str, str],
    by: Mapping[str, str] | None = None,
) -> ListPlace:
    id_ = own["entries"][at]
    grade = rankings["grades"].get(query, {}).get(id_)
    parts = [(name, values[at]) for name, values in sorted(own.get("parts", {}).items()) if values[at]]
    return ListPlace(
        text=clip(rankings["entries"].get(id_) or id_, _HIT_COLUMNS),
        grade="" if grade is None else str(grade),
        move=move(at, other, id_, *words) + (f" by {clip(by[id_], 60)}" if by and id_ in by else ""),
        parts=", ".join(f"{name} {value:.3g}" for name, value in parts),
    )


def move(at: int, other: Sequence[str], id_: str, way: str, gone: str) -> str:
    """Where an entry is in the other list, in words: `way` and the rank, or `gone`."""
    if id_ not in other:
        return gone
    return "same place" if other.index(id_) == at else f"{way} #{other.index(id_) + 1}"
