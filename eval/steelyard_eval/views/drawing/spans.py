"""Rows of values with their intervals, which show differences and means of contenders, categories and labels.

Rows have their names above their lines, so that a name is as long as the figure is wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from steelyard_eval.common.markup import legible
from steelyard_eval.views.drawing.canvas import (
    AXIS,
    BAND,
    FAINT,
    INK,
    LINE,
    MARKS,
    PAPER,
    SMALL,
    WIDTH,
    drawing,
    fitted,
    inches,
    thin_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAR = 4
"""An estimate this many times further away than the median one lies beyond the axis."""
WORDS = 2.3
"""Inches that the words of a row may take."""
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

    Parameters
    ----------
    mark, named : an upright line, such as at zero or at the baseline, and its name.
    band : the half width of the shaded band around the mark.
    dashed : a second upright line.
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
    name = inches(legible(row.label))
    wide = ((words, inches(legible(words))) for words in (row.words, row.brief) if words)
    fits = (words for words, width in wide if width < WORDS and name + width < WIDTH - _APART)
    return next(fits, row.brief.split(" ")[0] or row.words)


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
        mark, fill = MARKS[row.look]
        axes.plot([row.value], [at], mark, color=LINE, markerfacecolor=fill)
    words = fitted(row.words, WORDS).replace(r"\$", "$")
    name = fitted(row.label, WIDTH - _APART + 0.1 - inches(words) - (0.2 if row.look == "choice" else 0))
    places: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    places |= {"fontsize": SMALL, "va": "bottom", "annotation_clip": False, "parse_math": False}
    places["bbox"] = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6}  # so that no line runs through a word
    bold = "bold" if row.look == "choice" else "normal"
    axes.annotate(name.replace(r"\$", "$"), (0, at), (0, 4), ha="left", fontweight=bold, **places)
    if words:
        axes.annotate(words, (1, at), (0, 4), ha="right", color=INK, **places)
