"""The leaderboard: each configuration with its metrics, its difference to the baseline, and its costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard_eval.common.markup import MISSING, interval, number, system_name
from steelyard_eval.show.report.blocks import Block, Cell, Figure, Paragraph, TableBlock, TableColumn, TableRow
from steelyard_eval.show.report.charts import CostPoint, cost_chart, interval_chart

Record = Mapping[str, Any]
COLOURS = {"better": "good", "worse": "bad"}


def ranked(results: Record) -> list[Record]:
    """The records of the primary metric, best first; equal means by label."""
    found = [record for record in results["results"] if record["metric"] == results["primary"]]
    return sorted(found, key=lambda record: (-record["mean"], record["label"]))


def metrics(results: Record) -> tuple[str, ...]:
    """Metrics as they first appear, the primary one in front."""
    names = dict.fromkeys(record["metric"] for record in results["results"])
    return tuple(sorted(names, key=lambda name: name != results["primary"]))


def tests(results: Record) -> dict[str, Record]:
    """The comparisons with the baseline on the primary metric, by challenger."""
    wanted = (results["primary"], results.get("baseline"))
    return {c["challenger"]: c for c in results["comparisons"] if (c["metric"], c["baseline"]) == wanted}


def configurations(results: Record) -> list[Record]:
    """The configurations, best first, those without the primary metric last."""
    place = {record["label"]: at for at, record in enumerate(ranked(results))}
    return sorted(results["configurations"], key=lambda c: place.get(c["label"], len(place)))


def leaderboard(results: Record) -> tuple[Block, ...]:
    """The table of all configurations and the chart of their means."""
    if not results["configurations"]:
        return ()
    names, baseline = metrics(results), results.get("baseline") or ""
    columns = (
        TableColumn("configuration", number=False),
        TableColumn("family", number=False),
        *(TableColumn(name) for name in names),
        TableColumn("difference"),
        TableColumn("verdict", number=False),
        *(TableColumn(name) for name in ("p50 ms", "p95 ms", "embedding calls")),
        TableColumn("front", number=False),
    )
    against = f", against {baseline}" if baseline else ""
    optimism = (
        " Rows marked tuned were chosen on these very queries, so their values are optimistically biased; the "
        "promise above is not."
        if any(row.get("tuned") for row in results.get("leaderboard", ()))
        else ""
    )
    caption = (
        f"Best {results['primary']} first, with 95% intervals; differences and verdicts are on "
        f"{results['primary']}{against}.{optimism}"
    )
    table = TableBlock("Leaderboard", caption, columns, tuple(_rows(results, names)))
    chart = interval_chart(ranked(results), results["primary"], baseline)
    note = "Dot: mean; line: 95% interval." + (
        f" Hollow dot and dashed line: the baseline, {baseline}." if baseline else ""
    )
    note += " Whether two differ is decided by the paired differences below, not by whether intervals overlap."
    return (table, *([Figure(chart, note)] if chart else []))


def _rows(results: Record, names: Sequence[str]) -> list[TableRow]:
    values = {(record["label"], record["metric"]): record for record in results["results"]}
    timing = {record["label"]: record for record in results.get("timing", ())}
    gains = {row["label"]: row.get("gain") for row in results.get("leaderboard", ())}
    tested = tests(results)
    rows = []
    for at, one in enumerate(configurations(results), 1):
        label = one["label"]
        is_baseline = label == results.get("baseline")
        head = Cell(f"{at}. {label}", system_name(one, apart_from=label), order=at)
        cells = [_value(values.get((label, name))) for name in names]
        rest = [_change(tested.get(label), gains.get(label)), _verdict(one, tested.get(label), is_baseline)]
        costs = _costs(timing.get(label, {}))
        rows.append(TableRow((head, Cell(one.get("family") or MISSING), *cells, *rest, *costs), is_baseline))
    return rows


def _value(record: Record | None) -> Cell:
    if record is None:
        return Cell(MISSING)
    ends = interval(record.get("low"), record.get("high"))
    return Cell(number(record["mean"]), ends, order=record["mean"])


def _change(tested: Record | None, gain: Record | None) -> Cell:
    """The difference to the baseline: of the test, else of the leaderboard."""
    if tested is None and not gain:
        return Cell(MISSING)
    value, ends = (tested["delta"], tested) if tested else (gain["mean"], gain) if gain else (0.0, {})
    return Cell(number(value, signed=True), interval(ends.get("low"), ends.get("high")), order=value)


def _verdict(one: Record, tested: Record | None, is_baseline: bool) -> Cell:
    if is_baseline:
        return Cell("baseline")
    if tested is None:
        return Cell("tuned here, not tested" if one.get("kind") == "tuned" else "not compared")
    return Cell(tested["verdict"], colour=COLOURS.get(tested["verdict"], ""))


def _costs(timing: Record) -> tuple[Cell, ...]:
    return (
        Cell(number(timing.get("p50_ms"), 2), order=timing.get("p50_ms")),
        Cell(number(timing.get("p95_ms"), 2), order=timing.get("p95_ms")),
        Cell(number(timing.get("embedding_calls"), 0), order=timing.get("embedding_calls")),
        Cell("front" if timing.get("pareto") else ""),
    )


def cost(results: Record) -> tuple[Block, ...]:
    """Quality against latency, or where nothing was timed against the queries that were embedded."""
    numbers = {one["label"]: str(at) for at, one in enumerate(configurations(results), 1)}
    timing = {record["label"]: record for record in results.get("timing", ())}
    key, name = ("p50_ms", "p50 ms") if _known(timing, "p50_ms") else ("embedding_calls", "embedding calls")
    found = [
        (record, timing[record["label"]][key])
        for record in ranked(results)
        if timing.get(record["label"], {}).get(key) is not None
    ]
    if len({value for _, value in found}) < 2:
        return ()
    points = [
        CostPoint(
            numbers[record["label"]],
            record["label"],
            value,
            record["mean"],
            not any(_beats(other, (record, value)) for other in found),
            record["label"] == results.get("baseline"),
        )
        for record, value in found
    ]
    chart = cost_chart(points, results["primary"], name)
    note = (
        f"{results['primary']} upwards, {name} to the right; the numbers are those of the leaderboard. The line "
        "joins the configurations that no other beats in both."
    )
    fronts = [f"{point.name}. {point.label}" for point in points if point.front]
    listed = Paragraph(f"On the line: {'; '.join(fronts)}.", "soft")
    return (Figure(chart, note), listed) if chart else ()


def _known(timing: Mapping[str, Record], key: str) -> bool:
    return len({record[key] for record in timing.values() if record.get(key) is not None}) > 1


def _beats(other: tuple[Record, float], own: tuple[Record, float]) -> bool:
    """Whether another is at least as good in both, and better in one."""
    (a, cost_a), (b, cost_b) = other, own
    return a["mean"] >= b["mean"] and cost_a <= cost_b and (a["mean"] > b["mean"] or cost_a < cost_b)
