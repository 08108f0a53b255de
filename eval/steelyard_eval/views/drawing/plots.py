"""Figures of results, for notebooks, print and reports, beside those of rows with intervals (`spans.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from steelyard_eval.views.drawing.canvas import (
    AXIS,
    BAD,
    BAND,
    GOOD,
    INK,
    LINE,
    PAPER,
    WIDTH,
    drawing,
    fitted,
    short,
    thin_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = Sequence[tuple[float, float]]
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++", "oo", "--")


def places(series: Mapping[str, Sequence[float]], axis: str, values: str, low: float | None = 0.0) -> Figure:
    """Plot values at the places 1, 2, 3 ..., a line for each series; `low` is the least value of the axis."""
    with drawing(1.9) as (figure, axes):
        for (name, heights), style in zip(series.items(), ("o-", "s--", "^:", "D-."), strict=False):
            fill: dict[str, Any] = {"markerfacecolor": PAPER} if style == "s--" else {}
            axes.plot(range(1, len(heights) + 1), heights, style, label=fitted(name, 2.0), **fill)
        axes.set_xlabel(fitted(axis, AXIS))
        axes.set_ylabel(fitted(values, 1.6))
        axes.set_ylim(bottom=low)
        thin_ticks(axes, 8, whole=True)
        if len(series) > 1:
            axes.legend()
    return figure


def query_differences(differences: Sequence[float], axis: str) -> Figure:
    """Plot one bar for each query, from the largest gain to the largest loss; losses are hatched."""
    ordered = sorted(differences, reverse=True)
    wins, losses = sum(value > 0 for value in ordered), sum(value < 0 for value in ordered)
    with drawing(2.2, above=0.25) as (figure, axes):
        xs = range(len(ordered))
        gains, drops = [max(value, 0) for value in ordered], [min(value, 0) for value in ordered]
        axes.bar(xs, gains, width=1.0, color=GOOD, label=f"{wins} better")
        axes.bar(xs, drops, width=1.0, color=BAD, hatch="///", edgecolor=PAPER, label=f"{losses} worse")
        axes.axhline(0, color=INK, linewidth=0.9)
        axes.set_xticks([])
        axes.set_xlabel(fitted(f"queries, largest gain first ({len(ordered) - wins - losses} equal)", AXIS))
        axes.set_ylabel("difference")
        axes.set_title(fitted(axis, WIDTH - 0.3), loc="left")
        axes.legend()
    return figure


def curve(
    points: Sequence[Mapping[str, Any]],
    objective: str,
    axis: Mapping[str, Any] | None = None,
    plateau: object = None,
) -> Figure:
    """Plot the objective along one weight; `points` have the weight and the value, and the ends of their step.

    `axis` is that of the document: the signal whose weight it is, and where the current and the chosen weight are.
    """
    axis = axis or {}
    with drawing(2.4, below=0.95) as (figure, axes):
        match plateau:
            case [int() | float() as low, int() | float() as high]:
                axes.axvspan(low, high, color=BAND, label="plateau of the chosen weight")
        steps = sorted(points, key=itemgetter("weight"))
        ends = [x for step in steps for x in (step["low"], step["high"])]
        axes.plot(ends, [step["value"] for step in steps for _ in range(2)], color=LINE)
        if (current := axis.get("current")) is not None:
            axes.axvline(current, color=INK, linestyle="--", label=f"current, {current:.3g}")
        if (chosen := axis.get("chosen")) is not None:
            axes.axvline(chosen, color=BAD, label=f"chosen, {chosen:.3g}")
        others = ", ".join(axis.get("others") or ())
        rest = f" (the rest: {short(others, 50)})" if others else ""
        axes.set_xlabel(fitted(f"weight of {short(axis.get('signal') or 'the first signal', 30)}{rest}", AXIS))
        axes.set_ylabel(fitted(objective, 1.6))
        thin_ticks(axes)
        if axes.get_legend_handles_labels()[0]:
            _legend_below(axes)
    return figure


def contributions(rows: Sequence[tuple[str, Mapping[str, float]]], title: str) -> Figure:
    """Plot a bar for each entry, best on top, with a part for what each signal adds to its score."""
    names = dict.fromkeys(name for _, parts in rows for name in parts)
    below = 0.55 + 0.16 * len(names)
    with drawing(0.26 * len(rows) + 0.3 + below, 1.45, below, 0.25) as (figure, axes):
        left = [0.0] * len(rows)
        for i, name in enumerate(names):
            widths = [parts.get(name, 0.0) for _, parts in rows]
            hatch = HATCHES[i % len(HATCHES)]
            axes.barh(range(len(rows)), widths, left=left, label=short(name), hatch=hatch, edgecolor=PAPER)
            left = [before + width for before, width in zip(left, widths, strict=True)]
        _labelled(axes, [label for label, _ in rows])
        axes.invert_yaxis()
        axes.set_xlabel(fitted("score", AXIS))
        figure.suptitle(fitted(title, WIDTH - 0.1), x=0.02, y=0.98, ha="left", va="top", fontsize=8)
        thin_ticks(axes)
        if any(parts for _, parts in rows):
            _legend_below(axes)
    return figure


def _legend_below(axes: Axes) -> None:
    """The legend under the name of the axis, its rows below one another."""
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=_under(axes), borderaxespad=0)


def _under(axes: Axes, inches: float = 0.42) -> Any:  # noqa: ANN401 -- one of matplotlib's transforms
    """The axes' own places, moved below the ticks and the name of the axis."""
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure()
    return axes.transAxes + ScaledTranslation(0, -inches, figure.dpi_scale_trans)  # type: ignore[union-attr]  # they have one


def _labelled(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), [fitted(label, 1.3) for label in labels])
    axes.grid(visible=False, axis="y")
