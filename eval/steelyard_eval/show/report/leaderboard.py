"""The leaderboard: each configuration with its metrics, its difference to the baseline, and its costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from steelyard_eval.common.answer import CHOSEN, chosen, place_of_choice
from steelyard_eval.common.documents.parts import MeanRecord
from steelyard_eval.common.documents.results import (
    ComparedRecord,
    ContenderRecord,
    ResultRecord,
    ResultsDocument,
    TimingRecord,
)
from steelyard_eval.common.markup import number, system_name
from steelyard_eval.show.report.blocks import Block, Cell, Figure, Paragraph, Row, amount, table
from steelyard_eval.views.drawing.cost_plot import CostPoint
from steelyard_eval.views.drawing.cost_plot import cost as cost_plot
from steelyard_eval.views.drawing.picture import picture
from steelyard_eval.views.drawing.spans import Span, spans

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

COLOURS = {"better": "good", "worse": "bad"}
CostKey = Literal["p50_ms", "embedding_calls"]
COSTS: dict[CostKey, str] = {"p50_ms": "p50 ms", "embedding_calls": "queries embedded"}
SHOWN = 8
"""Configurations on the first screens."""


def ranked(results: ResultsDocument) -> list[ResultRecord]:
    """The records of the primary metric, best first; equal means by label."""
    records = [record for record in results["results"] if record["metric"] == results["primary"]]
    return sorted(records, key=lambda record: (-record["mean"], record["label"]))


def metrics(results: ResultsDocument) -> tuple[str, ...]:
    """Metrics as they first appear, the primary one in front."""
    names = dict.fromkeys(record["metric"] for record in results["results"])
    return tuple(sorted(names, key=lambda name: name != results["primary"]))


def tests(results: ResultsDocument) -> dict[str, ComparedRecord]:
    """The comparisons with the baseline on the primary metric, by challenger."""
    wanted = (results["primary"], results.get("baseline"))
    return {c["challenger"]: c for c in results["comparisons"] if (c["metric"], c["baseline"]) == wanted}


def configurations(results: ResultsDocument) -> list[ContenderRecord]:
    """The configurations, best first, those without the primary metric last."""
    place = {record["label"]: i for i, record in enumerate(ranked(results))}
    return sorted(results["configurations"], key=lambda c: place.get(c["label"], len(place)))


def notable(results: ResultsDocument) -> list[ContenderRecord]:
    """What the first screen shows: the best configurations, and wherever they are the baseline and the choice."""
    named = {results.get("baseline"), chosen(results)}
    return [row for i, row in enumerate(configurations(results)) if i < SHOWN or row["label"] in named]


def leaderboard(results: ResultsDocument) -> tuple[Block, ...]:
    """The best configurations: the primary metric, the difference to the baseline, and what a search costs."""
    if not results["configurations"] or "agreement" in results:
        return ()
    baseline = results.get("baseline") or ""
    against = f", against {baseline}" if baseline else ""
    optimism = ""
    if any(row.get("tuned") for row in results.get("leaderboard", ())):
        optimism = (
            " Rows marked tuned were chosen on these very queries, so their values are optimistically biased"
        )
        optimism += "; the promise above is not." if results.get("promise_stated", True) else "."
    rest = len(results["configurations"]) - len(notable(results))
    more = f" {rest} more are in the table of all metrics." if rest else ""
    caption = (
        f"Best {results['primary']} first, with 95% intervals; differences and verdicts are on "
        f"{results['primary']}{against}.{optimism}{more} {place_of_choice(results)}".rstrip()
    )
    return table("Leaderboard", caption, _rows(results), _at_baseline(results, notable(results)))


def _at_baseline(results: ResultsDocument, shown: Sequence[ContenderRecord]) -> int | None:
    return next((i for i, row in enumerate(shown) if row["label"] == results.get("baseline")), None)


def _rows(results: ResultsDocument) -> Iterator[Row]:
    values = {(record["label"], record["metric"]): record for record in results["results"]}
    timing = {record["label"]: record for record in results.get("timing", ())}
    gains = {record["label"]: record.get("gain") for record in results.get("leaderboard", ())}
    tested, places = tests(results), {row["label"]: i for i, row in enumerate(configurations(results), 1)}
    choice = chosen(results) if results.get("verdict") == "ship" else ""
    for row in notable(results):
        label = row["label"]
        about = ", ".join(
            filter(None, (row.get("family"), system_name(row.get("system"), row.get("profile"), label)))
        )
        took = timing.get(label, {})
        yield {
            "configuration": Cell(
                f"{places[label]}. {label}",
                CHOSEN if label == chosen(results) else about,
                order=places[label],
            ),
            results["primary"]: _value(values.get((label, results["primary"]))),
            "difference": _change(tested.get(label), gains.get(label)),
            "verdict": _verdict(row, tested.get(label), label == results.get("baseline"), label == choice),
            **_costs(took, "p50 ms", "queries embedded"),
        }


def all_metrics(results: ResultsDocument) -> tuple[Block, ...]:
    """Every configuration with every metric and all that was measured of its cost."""
    names = metrics(results)
    values = {(record["label"], record["metric"]): record for record in results["results"]}
    timing = {record["label"]: record for record in results.get("timing", ())}
    rows = (
        {
            "configuration": Cell(f"{place}. {row['label']}", row.get("family") or "", order=place),
            **{name: _value(values.get((row["label"], name))) for name in names},
            **_costs(timing.get(row["label"], {})),
            "unbeaten": "*" if timing.get(row["label"], {}).get("pareto") else "",
        }
        for place, row in enumerate(configurations(results) if names else (), 1)
    )
    caption = "Means with 95% intervals over the same queries."
    return table("All metrics", caption, rows, _at_baseline(results, configurations(results)))


def means_figure(results: ResultsDocument, metric: str) -> MatplotlibFigure:
    """Means with their intervals, best first; the line is at the baseline."""
    records = sorted(
        (r for r in results["results"] if r["metric"] == metric), key=lambda r: (-r["mean"], r["label"])
    )
    baseline, choice = results.get("baseline"), chosen(results)
    rows = [
        Span(
            record["label"],
            record["mean"],
            record.get("low"),
            record.get("high"),
            number(record["mean"]),
            "choice" if record["label"] == choice else "hollow" if record["label"] == baseline else "filled",
        )
        for record in records
    ]
    mark = next((row.value for row in rows if row.label == baseline), None)
    return spans(rows, f"{metric}, mean and 95% interval", mark, str(baseline or ""))


def _value(record: ResultRecord | None) -> Cell:
    return amount(None) if record is None else amount(record["mean"], ends=record)


def _change(tested: ComparedRecord | None, gain: MeanRecord | None) -> Cell:
    """The difference to the baseline: of the test, else of the leaderboard."""
    if tested is not None:
        return amount(tested["delta"], signed=True, ends=tested)
    return amount(None if gain is None else gain["mean"], signed=True, ends=gain)


def _verdict(one: ContenderRecord, tested: ComparedRecord | None, is_baseline: bool, is_choice: bool) -> Cell:
    if is_baseline:
        return Cell("baseline")
    if tested is None and one.get("kind") == "tuned":
        above = "the answer above is out of fold" if is_choice else "not tested"
        return Cell(f"{'chosen' if is_choice else 'tuned'} on these queries; {above}")
    if tested is None:
        return Cell("not compared")
    return Cell(tested["verdict"], tested.get("why") or "", colour=COLOURS.get(tested["verdict"], ""))


def _costs(timing: TimingRecord, *columns: str) -> dict[str, Cell]:
    """What was measured of a search's cost, by column; without names of columns all of it."""
    cells = {
        "p50 ms": amount(timing.get("p50_ms"), 2),
        "p95 ms": amount(timing.get("p95_ms"), 2),
        "queries embedded": amount(timing.get("embedding_calls"), 0),
    }
    return {name: cell for name, cell in cells.items() if not columns or name in columns}


def cost(results: ResultsDocument) -> tuple[Block, ...]:
    """Quality against latency, or where nothing was timed against the queries that were embedded."""
    points, key = cost_points(results)
    if len({point.cost for point in points}) < 2:
        return ()
    note = (
        f"{results['primary']} upwards, {key} to the right. The line joins the configurations that no other beats "
        "in both. Diamond: the choice; hollow: the baseline."
    )
    fronts = [point.label for point in points if point.front]
    title = f"{results['primary']} against {key}; the table of all metrics has what is drawn"
    figure = Figure(picture(cost_plot(points, results["primary"], key), title), note)
    return (figure, Paragraph(f"Unbeaten, on the line: {'; '.join(fronts)}.", "soft"))


def cost_points(results: ResultsDocument) -> tuple[list[CostPoint], str]:
    """What the figure of quality against cost is made of, and the name of the cost."""
    timing = {record["label"]: record for record in results.get("timing", ())}
    key: CostKey = "p50_ms" if _known(timing, "p50_ms") else "embedding_calls"
    pairs = [
        (place, record, value)
        for place, record in enumerate(ranked(results), 1)
        if (value := timing.get(record["label"], {}).get(key)) is not None
    ]
    return [
        CostPoint(
            record["label"],
            value,
            record["mean"],
            not any(_beats((other, cost), (record, value)) for _, other, cost in pairs),
            record["label"] == results.get("baseline"),
            record["label"] == chosen(results),
            place,
        )
        for place, record, value in pairs
    ], COSTS[key]


def _known(timing: Mapping[str, TimingRecord], key: CostKey) -> bool:
    return len({record[key] for record in timing.values() if record.get(key) is not None}) > 1


def _beats(other: tuple[ResultRecord, float], own: tuple[ResultRecord, float]) -> bool:
    """Whether another is at least as good in both, and better in one."""
    (a, cost_a), (b, cost_b) = other, own
    return a["mean"] >= b["mean"] and cost_a <= cost_b and (a["mean"] > b["mean"] or cost_a < cost_b)
