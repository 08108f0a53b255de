"""Paired differences: each challenger against its baseline, over all queries and by category."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.base.errors import ConfigError
from steelyard.memory.query import Query
from steelyard_eval.common.answer import chosen
from steelyard_eval.common.documents.parts import QueryRecord
from steelyard_eval.common.documents.results import ComparedRecord, ResultsDocument
from steelyard_eval.common.markup import MISSING, number, p_value
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.decide.provenance import ends_of
from steelyard_eval.measures.corrected import benjamini_hochberg
from steelyard_eval.measures.paired import (
    ALPHA,
    MARGIN,
    Interval,
    difference_interval,
    paired,
)
from steelyard_eval.show.report.blocks import Block, Cell, Figure, Row, amount, table
from steelyard_eval.show.report.leaderboard import COLOURS, notable
from steelyard_eval.show.report.sides import Sides
from steelyard_eval.views.drawing.picture import picture
from steelyard_eval.views.drawing.spans import Span, difference, spans

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

FEW = 5
"""Queries of a category below which an interval is not worth drawing."""


def differences(results: ResultsDocument) -> tuple[Block, ...]:
    """The forest of the differences to the baseline of what the leaderboard shows."""
    shown = {contender["label"] for contender in notable(results)}
    rows = [row for row in difference_rows(results) if row.label in shown]
    if not rows:
        return ()
    base = results.get("baseline") or "the baseline"
    note = (
        f"Right of the line is better than {base}. Filled: better or worse by the corrected test; "
        "hollow: not decided, or chosen on these queries and therefore not tested; diamond: the choice. Within "
        f"the band (\u00b1{MARGIN}) differences do not matter."
    )
    title = "Differences to the baseline with 95% intervals; the leaderboard has the same numbers"
    return (Figure(picture(_forest(results, rows), title), note),)


def difference_figure(results: ResultsDocument) -> MatplotlibFigure:
    """The differences of all challengers to the baseline."""
    return _forest(results, difference_rows(results))


def _forest(results: ResultsDocument, rows: Sequence[Span]) -> MatplotlibFigure:
    return spans(rows, f"difference in {results['primary']}", 0.0, str(results.get("baseline") or ""), MARGIN)


def comparisons(results: ResultsDocument) -> tuple[Block, ...]:
    """The table of the tests."""
    caption = "Differences, challenger minus baseline, over the same queries."
    return table("Comparisons", caption, map(_row, results["comparisons"]))


def difference_rows(results: ResultsDocument) -> list[Span]:
    """Every tested challenger and what was tuned here, by size."""
    choice = chosen(results)
    tested = {c["challenger"]: c for c in results["comparisons"] if c["metric"] == results["primary"]}
    tuned = {
        row["label"]: gain
        for row in results.get("leaderboard", ())
        if (gain := row.get("gain")) and row["label"] not in tested
    }
    rows = [
        difference(c, label, "filled" if c["verdict"] in COLOURS else "hollow", c["delta"], c["verdict"])
        for label, c in tested.items()
    ]
    rows += [difference(gain, label, "hollow", gain["mean"]) for label, gain in tuned.items()]
    marked = [replace(row, look="choice") if row.label == choice else row for row in rows]
    return sorted(marked, key=lambda row: (-row.value, row.label))


def _row(record: ComparedRecord) -> Row:
    counts = " / ".join(number(n, 0) for n in (record.get("wins"), record.get("ties"), record.get("losses")))
    return {
        "challenger": record["challenger"],
        "baseline": record["baseline"],
        "metric": record["metric"],
        "difference": amount(record["delta"], signed=True, ends=record),
        "p": _p(record.get("p")),
        "corrected p": _p(record.get("p_holm")),
        "wins / ties / losses": amount(None, text=counts),
        "detectable": amount(record.get("mde")),
        "verdict": Cell(record["verdict"], record.get("why") or "", colour=COLOURS.get(record["verdict"], "")),
    }


def _p(value: float | None) -> Cell:
    return amount(value, text=p_value(value))


def categories(results: ResultsDocument, two: Sides | None) -> tuple[Block, ...]:
    """The difference between the two sides in every category of queries; nothing with fewer than two."""
    groups = by_category(results, two) if two else {}
    if len(groups) < 2 or two is None:
        return ()
    rows = []
    drawn = {name: queries for name, queries in groups.items() if len(queries) >= FEW}
    tested = {name: tested_change(queries) for name, queries in drawn.items()}
    changes = {name: change for name, (change, _) in tested.items()}
    corrected = (
        dict(zip(tested, benjamini_hochberg([p for _, p in tested.values()]), strict=True)) if tested else {}
    )
    for name, queries in groups.items():
        left, right = (sum(values) / len(queries) for values in zip(*((a, b) for _, a, b in queries), strict=True))
        change = changes.get(name)
        rows.append(_category(name, len(queries), left, right, change, corrected.get(name)))
    caption = (
        f"Mean {results['primary']} of {two.left} (before) and {two.right} (after). Exploratory: corrected over "
        "the categories for the false discovery rate only."
    )
    block = table("Categories", caption, rows)
    if not changes:
        return block
    note = f"{two.right} minus {two.left}. In brackets: the number of queries; fewer than {FEW} are not drawn."
    title = "Differences by category with 95% intervals"
    return (Figure(picture(category_figure(results, two), title), note), *block)


def category_figure(results: ResultsDocument, two: Sides) -> MatplotlibFigure:
    """The difference in every category that has enough queries, the largest first; filled: p below 0.05."""
    drawn = {name: queries for name, queries in by_category(results, two).items() if len(queries) >= FEW}
    if not drawn:
        raise ConfigError(f"no category has {FEW} queries, so there is nothing to plot")
    tested = {name: tested_change(queries) for name, queries in drawn.items()}
    corrected = benjamini_hochberg([p for _, p in tested.values()])
    rows = [
        difference(
            ends_of(change),
            f"{name} ({len(drawn[name])})",
            "filled" if p < ALPHA else "hollow",
            change.mean,
        )
        for (name, (change, _)), p in zip(tested.items(), corrected, strict=True)
    ]
    return spans(rows, f"difference in {results['primary']}", 0.0, two.left, MARGIN)


def by_category(results: ResultsDocument, two: Sides) -> dict[str, list[tuple[QueryRecord, float, float]]]:
    """Queries with both values by category, the largest category first."""
    groups: dict[str, list[tuple[QueryRecord, float, float]]] = defaultdict(list)
    for query, left, right in two.rows(results):
        groups[query.get("category") or MISSING].append((query, left, right))
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def tested_change(own: Sequence[tuple[QueryRecord, float, float]]) -> tuple[Interval, float]:
    """The mean difference with its interval, and the sign-flip p."""
    units = unit_numbers(
        [
            Query(query.get("text") or query["id"], query["id"], group=query.get("group") or "")
            for query, _, _ in own
        ]
    )
    left, right = [a for _, a, _ in own], [b for _, _, b in own]
    gaps = [b - a for a, b in zip(left, right, strict=True)]
    return difference_interval(gaps, units.tolist()), paired({"": right}, left, units.tolist())[""].p


def _category(name: str, queries: int, left: float, right: float, change: Interval | None, p: float | None) -> Row:
    sure = p is not None and p < ALPHA
    colour = ("good" if right > left else "bad") if sure else ""
    ends = None if change is None else ends_of(change)
    return {
        "category": name,
        "queries": amount(queries, 0),
        "before": amount(left),
        "after": amount(right),
        "difference": amount(right - left, signed=True, ends=ends, colour=colour),
        "p by category": _p(None if p is None else float(p)),
    }
