"""Which figures a result can draw, by name; the reports have the same ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard_eval.common.documents.gate import GateDocument
from steelyard_eval.common.documents.learn import LearnDocument
from steelyard_eval.common.documents.results import ChosenRecord, ResultsDocument
from steelyard_eval.common.markup import number
from steelyard_eval.measures.paired import MARGIN
from steelyard_eval.show.report.differences import category_figure, difference_figure, difference_rows
from steelyard_eval.show.report.gate_section import change_figure
from steelyard_eval.show.report.leaderboard import cost_points, means_figure
from steelyard_eval.show.report.learning_section import act_figure, follow_figure
from steelyard_eval.show.report.sides import sides
from steelyard_eval.views.drawing import plots
from steelyard_eval.views.drawing.cost_plot import cost as cost_plot
from steelyard_eval.views.drawing.spans import Span, spans

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Figures = dict[str, Callable[[], "Figure"]]
ANSWERED = 6
"""Rows beside the promise in the figure that answers a recommendation."""


def compared(record: ResultsDocument, what: str, metric: str | None = None) -> Figure:
    """A figure of a comparison."""
    figures = _of_queries(record) | _of_contenders(record, metric or record["primary"])
    return _drawn(figures, what)


def recommended(record: ResultsDocument, what: str) -> Figure:
    """A figure of a recommendation."""
    if not record["leaderboard"]:
        raise ConfigError("without labels there is nothing to plot; judge some queries first")
    figures: Figures = {"answer": partial(_answer, record)}
    figures |= _of_queries(record) | _of_contenders(record, record["primary"])
    return _drawn(figures | _of_curve(record["chosen"] or {}, record["primary"]), what)


def _answer(record: ResultsDocument) -> Figure:
    """What changing is worth: the promise on unseen queries, above what the best families gain on these."""
    promise, rows = record["promise"], difference_rows(record)[:ANSWERED]
    if promise and record["chosen"] and record.get("promise_stated", True):
        words = f"{number(promise['value'], signed=True)} expected"
        rows = [
            Span(
                "the choice, on new queries",
                promise["value"],
                promise.get("low"),
                promise.get("high"),
                words,
                "choice",
            ),
            *(replace(row, look="hollow") for row in rows),
        ]
    return spans(rows, f"gain in {record['primary']}", 0.0, f"today: {record['baseline']}", MARGIN)


def learned(record: LearnDocument, what: str) -> Figure:
    """A figure of what was learned from feedback."""
    seen, count = record["examination"], len(record["acts"]["relevant"])
    examined = [place ** -seen["exponent"] for place in range(1, count + 1)]
    axis = ("place", "examined, relative to the first")
    figures: Figures = {
        "acts": partial(act_figure, record),
        "examination": partial(plots.places, {str(seen["source"]): examined}, *axis),
    }
    if record["follows"]:
        figures["follows"] = partial(follow_figure, record)
    return _drawn(figures, what)


def gated(record: GateDocument) -> Figure:
    """The figure of a gate: how every contender changed."""
    return change_figure(record)


def _drawn(figures: Figures, what: str) -> Figure:
    if what not in figures:
        raise ConfigError(
            f"there is no figure {shown(what)} of this{nearest(what, figures)}; {', '.join(figures)}"
        )
    return figures[what]()


def _of_contenders(record: ResultsDocument, metric: str) -> Figures:
    points, key = cost_points(record)
    return {
        "means": partial(means_figure, record, metric),
        "differences": partial(difference_figure, record),
        "cost": partial(cost_plot, points, record["primary"], key),
    }


def _of_queries(record: ResultsDocument) -> Figures:
    two = sides(record)
    if two is None:
        return {}
    axis = f"{record['primary']}, {two.right} less {two.left}"
    gaps = [right - left for _, left, right in two.rows(record)]
    return {
        "queries": partial(plots.query_differences, gaps, axis),
        "categories": partial(category_figure, record, two),
    }


def _of_curve(record: ChosenRecord, metric: str) -> Figures:
    drawn = partial(plots.curve, record.get("curve", ()), metric, record.get("axis"), record.get("plateau"))
    return {"curve": drawn}
