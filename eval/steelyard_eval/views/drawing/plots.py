"""Figures of results, for notebooks, print and reports.

Rows of values have their names above their lines, so that a name is as long as the figure is wide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from statistics import median
from typing import Any

from steelyard.base.errors import visible
from steelyard_eval.common.tabular import Axes, Figure
from steelyard_eval.views.drawing.canvas import (
    AXIS,
    BAD,
    BAND,
    FAINT,
    GOOD,
    INK,
    LINE,
    MARKS,
    PAPER,
    SMALL,
    WIDTH,
    drawing,
    fitted,
    inches,
    short,
    thin_ticks,
)

FAR = 4  # an estimate this many times further away than the median one lies beyond the axis
ROW_WORDS_INCHES = 2.3
_ROW, _APART = 0.3, 0.45


@dataclass(frozen=True)
class Span:
    """A row: its name, a value with the ends of its interval, and the words at its right.

    `brief` stands for the words where there is no room for them; it begins with a number. `look` is filled,
    hollow, cross or choice (a diamond and a bold name).
    """

    label: str
    value: float
    low: float | None
    high: float | None
    words: str = ""
    look: str = "filled"
    brief: str = ""


def spans(
    rows: Sequence[Span],
    axis: str,
    mark: float | None = None,
    named: str = "",
    band: float | None = None,
    dashed: float | None = None,
) -> Figure:
    """Plot rows of values with their intervals, the first on top.

    `mark` and `dashed` are upright lines, such as at zero or at the baseline; the first may be `named`, and have a
    shaded `band` around it, of that half width.
    """
    known = [value for value in (mark, dashed) if value is not None]
    known += [mark - band, mark + band] if mark is not None and band is not None else []
    low, high = _limits(rows, known, mark)
    above = 0.22 if named else 0.05
    with drawing(_ROW * len(rows) + 0.44 + above, 0.1, above=above) as (figure, axes):
        if mark is not None and band is not None:
            axes.axvspan(mark - band, mark + band, color=BAND, linewidth=0)
        if mark is not None:
            axes.axvline(mark, color=INK, linewidth=0.9)
        if dashed is not None:
            axes.axvline(dashed, color=INK, linewidth=0.9, linestyle="--")
        for y, row in enumerate(rows):
            _row(axes, y, replace(row, words=_words(row)), low, high)
        axes.set_xlim(low, high)
        axes.set_ylim(len(rows) - 0.35, -0.75)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        if named and mark is not None:
            side = "left" if mark < (low + high) / 2 else "right"
            axes.annotate(
                fitted(named, WIDTH / 2), (mark, 1), (2 if side == "left" else -2, 2),
                xycoords=("data", "axes fraction"), textcoords="offset points", ha=side, color=INK, fontsize=SMALL,
                parse_math=False,
            )  # fmt: skip
        thin_ticks(axes)
        beyond = any(not low <= row.value <= high for row in rows)
        axes.set_xlabel(fitted(axis + (" (arrow: beyond the axis)" if beyond else ""), AXIS))
    return figure


def _words(row: Span) -> str:
    """The words that leave room for the whole name: all, the brief ones, else their number."""
    name = inches(visible(row.label))
    wide = ((words, inches(visible(words))) for words in (row.words, row.brief) if words)
    fits = (words for words, width in wide if width < ROW_WORDS_INCHES and name + width < WIDTH - _APART)
    return next(fits, row.brief.split(" ")[0] or row.words)


def _limits(rows: Sequence[Span], known: Sequence[float], mark: float | None) -> tuple[float, float]:
    """The ends of the axis: all intervals, but for rows so far away that nobody could read the others."""
    middle = median(row.value for row in rows) if mark is None else mark
    gaps = [gap for row in rows if (gap := abs(row.value - middle))]
    typical = median(gaps or [0.0])  # rows that differ by nothing say nothing of the scale
    near = [row for row in rows if abs(row.value - middle) <= FAR * typical] or list(rows)
    low, high = _ends(near, known)
    widest = _ends(rows, known)
    if widest[1] - widest[0] <= 1.5 * (high - low):
        low, high = widest
    room = 0.04 * (high - low) or 0.01 * max(abs(high), 1.0)
    return low - room, high + room


def _ends(rows: Sequence[Span], known: Sequence[float]) -> tuple[float, float]:
    values = [end for row in rows for end in (row.value, row.low, row.high) if end is not None] + [*known]
    return min(values), max(values)


def _row(axes: Axes, at: int, row: Span, low: float, high: float) -> None:
    ends = [row.value if end is None else end for end in (row.low, row.high)]
    axes.plot(
        [min(max(end, low), high) for end in ends], [at, at], color=FAINT, linewidth=1.6, solid_capstyle="butt"
    )
    for end, arrow in ((low, "<"), (high, ">")):
        if min(ends) < end if arrow == "<" else max(ends) > end:
            outside = row.value < low if arrow == "<" else row.value > high
            axes.plot([end], [at], arrow, color=LINE if outside else FAINT, markersize=5, clip_on=False)
    if low <= row.value <= high:
        mark, fill = MARKS[row.look]
        axes.plot([row.value], [at], mark, color=LINE, markerfacecolor=fill)
    words = fitted(row.words, ROW_WORDS_INCHES).replace(r"\$", "$")
    name = fitted(row.label, WIDTH - _APART + 0.1 - inches(words) - (0.2 if row.look == "choice" else 0))
    places: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    places |= {"fontsize": SMALL, "va": "bottom", "annotation_clip": False, "parse_math": False}
    places["bbox"] = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6}  # so that no line runs through a word
    bold = "bold" if row.look == "choice" else "normal"
    axes.annotate(name.replace(r"\$", "$"), (0, at), (0, 4), ha="left", fontweight=bold, **places)
    if words:
        axes.annotate(words, (1, at), (0, 4), ha="right", color=INK, **places)


Points = Sequence[tuple[float, float]]
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++", "oo", "--")


def places(series: Mapping[str, Sequence[float]], axis: str, values: str) -> Figure:
    """Plot values at the places 1, 2, 3 ..., a line for each series, over an axis from 0."""
    with drawing(1.9) as (figure, axes):
        for (name, heights), style in zip(series.items(), ("o-", "s--", "^:", "D-."), strict=False):
            fill: dict[str, Any] = {"markerfacecolor": PAPER} if style == "s--" else {}
            axes.plot(range(1, len(heights) + 1), heights, style, label=fitted(name, 2.0), **fill)
        axes.set_xlabel(fitted(axis, AXIS))
        axes.set_ylabel(fitted(values, 1.6))
        axes.set_ylim(bottom=0.0)
        thin_ticks(axes, 8, integer=True)
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
        axes.set_yticks(range(len(rows)), [fitted(label, 1.3) for label, _ in rows])
        axes.grid(visible=False, axis="y")
        axes.invert_yaxis()
        axes.set_xlabel(fitted("score", AXIS))
        figure.suptitle(fitted(title, WIDTH - 0.1), x=0.02, y=0.98, ha="left", va="top", fontsize=8)
        thin_ticks(axes)
        if any(parts for _, parts in rows):
            _legend_below(axes)
    return figure


def _legend_below(axes: Axes) -> None:
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure()
    under = axes.transAxes + ScaledTranslation(0, -0.42, figure.dpi_scale_trans)  # type: ignore[union-attr]  # they have one
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=under, borderaxespad=0)
