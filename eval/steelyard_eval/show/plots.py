"""All figures, for notebooks, print and reports: as wide as a column of print, legible on a phone and in grey.

The colours of `steelyard.mplstyle` suit colour-blind readers and differ in lightness; marks, lines and hatches
repeat what colours show. Rows have their names above their lines, so that a name is as long as the figure is wide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from statistics import median
from typing import TYPE_CHECKING, Any

from steelyard_eval.common.markup import clip, interval, legible, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = Mapping[str, Any]
Points = Sequence[tuple[float, float]]
WIDTH = 3.5
"""Inches: a column of the proceedings of SIGIR, a phone at 96 pixels an inch."""
AXIS = 2.6
"""Inches that the name of an axis may take, below its middle."""
MARGIN = 0.02
"""Differences within it do not matter; see `steelyard_eval.measures.statistics`."""
LINE, GOOD, BAD = "#0b4f8a", "#2f9e77", "#d98200"
INK, FAINT, SOFT, BAND, PAPER = "#4d4d4d", "#6e6e6e", "#8c8c8c", "#ededed", "#ffffff"
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++", "oo", "--")
FAR = 4
"""An estimate this many times further away than the median one lies beyond the axis."""
_ROW, _TEXT, _APART = 0.3, 7.5, 0.45
_MARKS = {"filled": ("o", LINE), "hollow": ("o", PAPER), "cross": ("X", BAD), "choice": ("D", LINE)}


@contextmanager
def drawing(
    height: float, left: float = 0.55, below: float = 0.44, above: float = 0.12
) -> Iterator[tuple[Figure, Axes]]:
    """A figure of this height with axes inside these margins, all in inches; nothing global is changed."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.add_axes(
            (left / WIDTH, below / height, 1 - (left + 0.1) / WIDTH, 1 - (below + above) / height)
        )
        yield figure, axes


@contextmanager
def styled() -> Iterator[None]:
    """Our style: for drawing, and for saving, which reads it again."""
    from matplotlib import rc_context

    with rc_context(_style()):
        yield


@cache
def _style() -> Any:  # noqa: ANN401 -- settings by name, for which matplotlib has a type of its own
    from matplotlib import rc_params_from_file

    file = str(resources.files("steelyard_eval.show").joinpath("steelyard.mplstyle"))
    return dict(rc_params_from_file(file, use_default_template=False))


def short(label: str, width: int = 48) -> str:
    """Cut a label to `width`, and escape dollar signs, which would start a formula."""
    return clip(label, width).replace("$", r"\$")


@cache
def inches(text: str, size: float = _TEXT) -> float:
    """How wide a text is in our font, the widest of those that a page may fall back to."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    known = "".join(
        character if ord(character) < 0x2500 else "WW" for character in text
    )  # wide ones have no glyph
    wide, _, _ = text_to_path.get_text_width_height_descent(known, FontProperties(size=size), ismath=False)
    return float(wide) / 72


def fitted(text: str, room: float) -> str:
    """A text cut to as many inches, an ellipsis at the cut."""
    shown = legible(text)
    while len(shown) > 1 and inches(shown) > room:
        shown = clip(shown, len(shown) - 1) if not shown.endswith("…") else shown[:-2] + "…"
    return shown.replace("$", r"\$")


@dataclass(frozen=True)
class Span:
    """A row: its name, a value with the ends of its interval, and the words at its right.

    `brief` stands for the words where there is no room for them. `look` is filled, hollow, cross or choice (a
    diamond and a bold name).
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

    Parameters
    ----------
    mark, named : an upright line, such as at zero or at the baseline, and its name.
    band : the half width of the shaded band around the mark.
    dashed : a second upright line.
    """
    known = [value for value in (mark, dashed) if value is not None]
    known += [mark - band, mark + band] if mark is not None and band is not None else []
    low, high = _limits(rows, known, mark)
    room = max(inches(legible(row.label)) + inches(legible(row.words)) for row in rows) < WIDTH - _APART
    above = 0.22 if named else 0.05
    with drawing(_ROW * len(rows) + 0.44 + above, 0.1, above=above) as (figure, axes):
        if mark is not None and band is not None:
            axes.axvspan(mark - band, mark + band, color=BAND, linewidth=0)
        if mark is not None:
            axes.axvline(mark, color=INK, linewidth=0.9)
        if dashed is not None:
            axes.axvline(dashed, color=INK, linewidth=0.9, linestyle="--")
        for at, row in enumerate(rows):
            _row(axes, at, row if room else replace(row, words=row.brief or row.words), low, high)
        axes.set_xlim(low, high)
        axes.set_ylim(len(rows) - 0.35, -0.75)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        if named and mark is not None:
            side = "left" if mark < (low + high) / 2 else "right"
            axes.annotate(
                fitted(named, WIDTH / 2), (mark, 1), (2 if side == "left" else -2, 2),
                xycoords=("data", "axes fraction"), textcoords="offset points", ha=side, color=INK, fontsize=_TEXT,
                parse_math=False,
            )  # fmt: skip
        _thin_ticks(axes)
        beyond = any(not low <= row.value <= high for row in rows)
        axes.set_xlabel(fitted(axis + (" (arrow: beyond the axis)" if beyond else ""), AXIS))
    return figure


def _limits(rows: Sequence[Span], known: Sequence[float], mark: float | None) -> tuple[float, float]:
    """The ends of the axis: all intervals, but for rows so far away that nobody could read the others."""
    middle = median(row.value for row in rows) if mark is None else mark
    typical = median(abs(row.value - middle) for row in rows)
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
    """The name and the words of a row, its interval below them, and arrows where it leaves the axis."""
    ends = [row.value if end is None else end for end in (row.low, row.high)]
    axes.plot(
        [min(max(end, low), high) for end in ends], [at, at], color=FAINT, linewidth=1.6, solid_capstyle="butt"
    )
    for end, arrow in ((low, "<"), (high, ">")):
        if min(ends) < end if arrow == "<" else max(ends) > end:
            outside = row.value < low if arrow == "<" else row.value > high
            axes.plot([end], [at], arrow, color=LINE if outside else FAINT, markersize=5, clip_on=False)
    if low <= row.value <= high:
        mark, fill = _MARKS[row.look]
        axes.plot([row.value], [at], mark, color=LINE, markerfacecolor=fill)
    words = fitted(row.words, 0.65 * WIDTH).replace(r"\$", "$")
    name = fitted(row.label, WIDTH - _APART + 0.1 - inches(words) - (0.2 if row.look == "choice" else 0))
    places: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    places |= {"fontsize": _TEXT, "va": "bottom", "annotation_clip": False, "parse_math": False}
    places["bbox"] = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6}  # so that no line runs through a word
    bold = "bold" if row.look == "choice" else "normal"
    axes.annotate(name.replace(r"\$", "$"), (0, at), (0, 4), ha="left", fontweight=bold, **places)
    if words:
        axes.annotate(words, (1, at), (0, 4), ha="right", color=INK, **places)


def _thin_ticks(axes: Axes, most: int = 5, *, whole: bool = False) -> None:
    """Few enough ticks that their labels stand apart, and none so near an end that its label leaves the figure."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.get_xlim()
    room = 0.03 * (high - low)
    found = MaxNLocator(most, steps=[1, 2, 5, 10], integer=whole).tick_values(low, high)
    axes.set_xticks([at for at in found if low + room <= at <= high - room or at == low == 0])
    axes.set_xlim(low, high)


def difference(row: Record, label: str, look: str, value: float, verdict: str = "") -> Span:
    """The row of a difference, with what was decided in words."""
    low, high = row.get("low"), row.get("high")
    brief = f"{number(value, signed=True)} {verdict}".strip()
    words = " ".join(filter(None, (number(value, signed=True), interval(low, high), verdict)))
    return Span(label, value, low, high, words, look, brief)


def places(series: Mapping[str, Sequence[float]], axis: str, values: str, low: float | None = 0.0) -> Figure:
    """Plot values at the places 1, 2, 3 ..., a line for each series; `low` is the least value of the axis."""
    with drawing(1.9) as (figure, axes):
        for (name, own), style in zip(series.items(), ("o-", "s--", "^:", "D-."), strict=False):
            fill: dict[str, Any] = {"markerfacecolor": PAPER} if style == "s--" else {}
            axes.plot(range(1, len(own) + 1), own, style, label=fitted(name, 2.0), **fill)
        axes.set_xlabel(fitted(axis, AXIS))
        axes.set_ylabel(fitted(values, 1.6))
        axes.set_ylim(bottom=low)
        _thin_ticks(axes, 8, whole=True)
        if len(series) > 1:
            axes.legend()
    return figure


def trend(lines: Mapping[str, Sequence[Span | None]], values: str) -> Figure:
    """Plot values with their intervals over time, oldest first; the words of a row, its time, stand below it."""
    with drawing(2.3, below=0.75) as (figure, axes):
        for (name, rows), style in zip(lines.items(), ("D-", "o--"), strict=False):
            known = [(x, row) for x, row in enumerate(rows) if row is not None]
            for x, row in known if name == next(iter(lines)) else ():
                if row.low is not None and row.high is not None:
                    axes.plot([x, x], [row.low, row.high], color=SOFT, linewidth=1.2)
            fill = PAPER if style == "o--" else None
            at, heights = [x for x, _ in known], [row.value for _, row in known]
            axes.plot(
                at, heights, style, label=name, markerfacecolor=fill or LINE, color=LINE if fill is None else BAD
            )
        count = max(map(len, lines.values()))
        times = [next(row.words for row in own if row) for own in zip(*lines.values(), strict=True)]
        shown = range(count)[::-1][:: max(1, math.ceil(count / 3))]
        axes.set_xticks(shown, [fitted(times[x], 0.8) for x in shown])
        axes.set_xlim(-0.18 * count, 1.18 * count - 1)
        axes.set_ylabel(fitted(values, 1.6))
        axes.legend(
            loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=_under(axes, 0.25), ncols=2, borderaxespad=0
        )
    return figure


def floors(rows: Sequence[Record], chosen: float | None) -> Figure:
    """Plot what each floor loses and shows; `rows` have floor, lost, answered, words, and perhaps false."""
    names = {"lost": "relevant entries lost", "answered": "questions answered", "words": "words shown"}
    names |= {"false": "questions without an answer answered"} if rows and "false" in rows[0] else {}
    with drawing(3.0, below=1.15) as (figure, axes):
        for (name, label), style in zip(names.items(), ("-", "--", ":", "-."), strict=False):
            axes.plot([row["floor"] for row in rows], [row[name] for row in rows], style, label=label)
        if chosen is not None:
            axes.axvline(chosen, color=SOFT, linewidth=1)
        axes.set_xlabel(fitted("floor", AXIS))
        axes.set_ylabel("share")
        _legend_below(axes)
    return figure


def query_differences(differences: Sequence[float], axis: str) -> Figure:
    """Plot one bar for each query, from the largest gain to the largest loss; losses are hatched."""
    ordered = sorted(differences, reverse=True)
    wins, losses = sum(value > 0 for value in ordered), sum(value < 0 for value in ordered)
    with drawing(2.2, above=0.25) as (figure, axes):
        at = range(len(ordered))
        gains, drops = [max(value, 0) for value in ordered], [min(value, 0) for value in ordered]
        axes.bar(at, gains, width=1.0, color=GOOD, label=f"{wins} better")
        axes.bar(at, drops, width=1.0, color=BAD, hatch="///", edgecolor=PAPER, label=f"{losses} worse")
        axes.axhline(0, color=INK, linewidth=0.9)
        axes.set_xticks([])
        axes.set_xlabel(fitted(f"queries, largest gain first ({len(ordered) - wins - losses} equal)", AXIS))
        axes.set_ylabel("difference")
        axes.set_title(fitted(axis, WIDTH - 0.3), loc="left")
        axes.legend()
    return figure


def curve(points: Sequence[Record], objective: str, axis: Record | None = None, plateau: object = None) -> Figure:
    """Plot the objective along one weight; `points` have the weight and the value.

    `axis` is that of the document: the signal whose weight it is, and where the current and the chosen weight are.
    """
    axis = axis or {}
    with drawing(2.4, below=0.95) as (figure, axes):
        match plateau:
            case [int() | float() as low, int() | float() as high]:
                axes.axvspan(low, high, color=BAND, label="plateau of the chosen weight")
        found = thinned(sorted((point["weight"], point["value"]) for point in points))
        axes.plot([at for at, _ in found], [value for _, value in found], drawstyle="steps-mid", color=LINE)
        if axis.get("current") is not None:
            axes.axvline(axis["current"], color=INK, linestyle="--", label=f"current, {axis['current']:.3g}")
        if axis.get("chosen") is not None:
            axes.axvline(axis["chosen"], color=BAD, label=f"chosen, {axis['chosen']:.3g}")
        others = ", ".join(axis.get("others") or ())
        rest = f" (the rest: {short(others, 50)})" if others else ""
        axes.set_xlabel(fitted(f"weight of {short(axis.get('signal') or 'the first signal', 30)}{rest}", AXIS))
        axes.set_ylabel(fitted(objective, 1.6))
        _thin_ticks(axes)
        if axes.get_legend_handles_labels()[0]:
            _legend_below(axes)
    return figure


CURVE_POINTS = 120
"""More than pixels can show is only bytes."""


def thinned(points: Points) -> Points:
    """At most about `CURVE_POINTS` points of a curve; its ends and its highest point stay."""
    if not points:
        return points
    every = math.ceil(len(points) / CURVE_POINTS)
    return sorted({*points[::every], points[-1], max(points, key=lambda point: point[1])})


def learning(rows: Sequence[Record], objective: str) -> Figure:
    """Plot what more labels are worth; `rows` have queries, in_sample, held_out, low and high."""
    with drawing(2.3) as (figure, axes):
        queries = [row["queries"] for row in rows]
        axes.fill_between(queries, [row["low"] for row in rows], [row["high"] for row in rows], color=BAND)
        inside, outside = ([row[name] for row in rows] for name in ("in_sample", "held_out"))
        axes.plot(queries, inside, "s--", color=BAD, label="on the queries that were chosen on")
        axes.plot(queries, outside, "o-", color=LINE, label="on other queries")
        axes.set_xlabel(fitted("labelled queries", AXIS))
        axes.set_ylabel(fitted(objective, 1.6))
        axes.legend()
    return figure


def ablation(rows: Sequence[Record], objective: str) -> Figure:
    """Plot what each signal is worth, on the queries tuned on and on those held out (with interval)."""
    ranked = sorted(rows, key=lambda row: row["in_sample"])
    with drawing(0.4 * len(ranked) + 1.1, 1.45, 0.85) as (figure, axes):
        axes.axvline(0, color=INK, linewidth=0.9)
        for at, row in enumerate(ranked):
            held = row.get("held_out")
            if held:
                axes.plot([held["low"], held["high"]], [at - 0.12] * 2, color=SOFT, linewidth=2)
                axes.plot(held["value"], at - 0.12, "o", color=LINE, label="held out" if not at else None)
            axes.plot(row["in_sample"], at + 0.12, "s", color=BAD, label="tuned on" if not at else None)
        _labelled(axes, [str(row["signal"]) for row in ranked])
        axes.set_xlabel(fitted(f"{objective} with less without it", 2.0))
        _thin_ticks(axes)
        _legend_below(axes)
    return figure


@dataclass(frozen=True)
class CostPoint:
    """A configuration in the figure of quality against cost; `name` is its number in the leaderboard."""

    name: str
    cost: float
    value: float
    front: bool
    baseline: bool = False
    chosen: bool = False


def cost(points: Sequence[CostPoint], metric: str, key: str) -> Figure:
    """Plot quality against cost, with the front of those that nothing beats in both.

    Costs begin at zero, or at a power of ten where they span more than a factor of 20.
    """
    with drawing(2.6) as (figure, axes):
        front = sorted((point for point in points if point.front), key=lambda point: (point.cost, point.value))
        axes.plot([p.cost for p in front], [p.value for p in front], "--", color=SOFT, linewidth=1, zorder=1)
        for point in points:
            mark, fill = _MARKS["choice" if point.chosen else "hollow" if point.baseline else "filled"]
            loud = point.front or point.baseline or point.chosen
            axes.plot(
                point.cost, point.value, mark, color=LINE if loud else SOFT, markerfacecolor=fill if loud else SOFT
            )
        costs, values = [point.cost for point in points], [point.value for point in points]
        least, most = min(costs), max(costs)
        if least > 0 and most > 20 * least:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.set_xlim(10.0 ** math.floor(math.log10(least)), most * 1.3)
        else:
            axes.set_xlim(0, most * 1.08)
            _thin_ticks(axes)
        low, high = min(values), max(values)
        room = 0.12 * (high - low) or 0.01
        axes.set_ylim(0 if low < (high - low) / 2 else low - room, high + room)
        axes.set_xlabel(fitted(key, AXIS))
        axes.set_ylabel(fitted(metric, 1.6))
        figure.draw_without_rendering()
        told = [point for point in points if point.front or point.baseline or point.chosen]
        _number(axes, [*told, *(point for point in points if point not in told)])
    return figure


def _number(axes: Axes, points: Sequence[CostPoint]) -> None:
    """The number of each point beside it, where it covers nothing else; the first ones have the choice."""
    scale = 72 / axes.figure.dpi
    at = [tuple(scale * float(one) for one in axes.transData.transform((p.cost, p.value))) for p in points]
    frame = axes.get_window_extent()
    taken = [(x - 3.5, y - 3.5, x + 3.5, y + 3.5) for x, y in at]
    for point, (x, y) in zip(points, at, strict=True):
        wide = 72 * inches(point.name, 7) + 1
        for dx, dy in ((4, 3), (-4 - wide, 3), (4, -10), (-4 - wide, -10)):
            box = (x + dx, y + dy, x + dx + wide, y + dy + 8)
            inside = box[0] > scale * frame.x0 and box[2] < scale * frame.x1 and box[1] > scale * frame.y0
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                bold = "bold" if point.chosen else "normal"
                axes.annotate(
                    point.name, (point.cost, point.value), (dx, dy), textcoords="offset points", fontsize=7,
                    color=INK, fontweight=bold, parse_math=False,
                )  # fmt: skip
                break


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def contributions(rows: Sequence[tuple[str, Mapping[str, float]]], title: str) -> Figure:
    """Plot a bar for each entry, best on top, with a part for what each signal adds to its score."""
    names = dict.fromkeys(name for _, own in rows for name in own)
    below = 0.55 + 0.16 * len(names)
    with drawing(0.26 * len(rows) + 0.3 + below, 1.45, below, 0.25) as (figure, axes):
        left = [0.0] * len(rows)
        for at, name in enumerate(names):
            widths = [own.get(name, 0.0) for _, own in rows]
            hatch = HATCHES[at % len(HATCHES)]
            axes.barh(range(len(rows)), widths, left=left, label=short(name), hatch=hatch, edgecolor=PAPER)
            left = [before + width for before, width in zip(left, widths, strict=True)]
        _labelled(axes, [label for label, _ in rows])
        axes.invert_yaxis()
        axes.set_xlabel(fitted("score", AXIS))
        figure.suptitle(fitted(title, WIDTH - 0.1), x=0.02, y=0.98, ha="left", va="top", fontsize=8)
        _thin_ticks(axes)
        if any(own for _, own in rows):
            _legend_below(axes)
    return figure


def counts(numbers: Sequence[int], label: str) -> Figure:
    """Plot how often each whole number occurs."""
    from collections import Counter

    found = sorted(Counter(numbers).items())
    with drawing(2.0) as (figure, axes):
        axes.bar([number for number, _ in found], [count for _, count in found], color=LINE)
        _thin_ticks(axes, whole=True)
        axes.set_xlabel(fitted(label, AXIS))
        axes.set_ylabel("queries")
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
