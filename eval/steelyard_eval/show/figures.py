"""Which figures a result can draw, by name; `plots.py` draws them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard_eval.show import plots
from steelyard_eval.show.report.differences import FEW, by_category, tested_change
from steelyard_eval.show.report.leaderboard import ranked
from steelyard_eval.show.report.sides import Sides, sides

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = Mapping[str, Any]
Figures = dict[str, Callable[[], "Figure"]]


def compared(record: Record, what: str, metric: str | None = None) -> Figure:
    """A figure of a comparison."""
    figures = _of_queries(record) | _of_contenders(record, metric or record["primary"]) | _of_silence(record)
    return _drawn(figures, what)


def _of_silence(record: Record) -> Figures:
    """Risk against coverage of the first contender that has a floor."""
    own = [row for row in record.get("silence", ()) if row.get("curve")]
    return {"silence": partial(plots.floors, own[0]["curve"], None)} if own else {}


def recommended(record: Record, what: str) -> Figure:
    """A figure of a recommendation."""
    if not record["leaderboard"]:
        raise ConfigError("without labels there is nothing to plot; judge some queries first")
    chosen = record["chosen"] or {"curve": [], "axis": None, "plateau": []}
    figures = (
        _of_queries(record) | _of_contenders(record, record["primary"]) | _of_curve(chosen, record["primary"])
    )
    return _drawn(figures, what)


def tuned(record: Record, what: str) -> Figure:
    """A figure of a tuning."""
    metric, parts = record["objective"], record.get("ablation") or {}
    figures = dict(_of_curve(record, metric))
    if record.get("per_query"):
        figures |= _of_queries({**record, "results": [], "primary": metric, "baseline": None})
    if parts:
        figures["signals"] = partial(plots.ablation, parts["signals"], metric)
        figures["labels"] = partial(plots.learning, parts["labels"], metric)
    return _drawn(figures, what)


def learned(record: Record, what: str) -> Figure:
    """A figure of what was learned from feedback."""
    seen, places = record["examination"], range(1, len(record["acts"]["relevant"]) + 1)
    examined = [place ** -seen["exponent"] for place in places]
    figures: Figures = {
        "acts": partial(plots.rates, record["acts"]),
        "examination": partial(plots.examination, examined, seen["source"]),
    }
    return _drawn(figures, what)


def floored(record: Record) -> Figure:
    """The figure of a floor: what each one loses and shows."""
    return plots.floors(record["curve"], record["floor"])


def _drawn(figures: Figures, what: str) -> Figure:
    if what not in figures:
        raise ConfigError(
            f"there is no figure {shown(what)} of this{nearest(what, figures)}; {', '.join(figures)}"
        )
    return figures[what]()


def _of_contenders(record: Record, metric: str) -> Figures:
    means = [row for row in record["results"] if row["metric"] == metric]
    timing = {row["label"]: row for row in record.get("timing", ())}
    costs = [{**timing.get(row["label"], {}), **row} for row in ranked(record)]
    key = "p50_ms" if any(row.get("p50_ms") is not None for row in costs) else "embedding_calls"
    tests = [{**row, "label": row["challenger"]} for row in record["comparisons"]]
    known = {row["label"] for row in tests}
    gains = [
        {"label": row["label"], "delta": row["gain"]["mean"], **row["gain"]}
        for row in record.get("leaderboard", ())
        if row["gain"] and row["label"] not in known
    ]
    return {
        "means": partial(plots.intervals, means, metric),
        "differences": partial(plots.forest, [*tests, *gains], f"{record['primary']} less {record['baseline']}"),
        "cost": partial(plots.cost, costs, record["primary"], key),
    }


def _of_queries(record: Record) -> Figures:
    two = sides(record)
    if two is None:
        return {}
    axis = f"{record['primary']}, {two.right} less {two.left}"
    gaps = [right - left for _, left, right in two.rows(record)]
    return {
        "queries": partial(plots.query_differences, gaps, axis),
        "categories": partial(_categories, record, two, axis),
    }


def _categories(record: Record, two: Sides, axis: str) -> Figure:
    rows = []
    for name, own in by_category(record, two).items():
        if len(own) >= FEW:
            change, _ = tested_change(own)
            ends = {"delta": change.mean, "low": change.low, "high": change.high}
            rows.append({"label": f"{name} ({len(own)})", **ends})
    return plots.forest(rows, axis)


def _of_curve(record: Record, metric: str) -> Figures:
    drawn = partial(plots.curve, record["curve"], metric, record["axis"], record["plateau"])
    return {"curve": drawn}
