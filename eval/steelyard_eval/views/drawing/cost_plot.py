"""Quality against cost: a point for each configuration, with names beside those that are spoken of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard_eval.views.drawing.canvas import AXIS, drawing, fitted, inches, thin_ticks
from steelyard_eval.views.drawing.colours import INK, LINE, MARKS, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = Sequence[tuple[float, float]]
NAME = 7
"""Points: the size of a name."""
BESIDE = tuple((side * dx, dy) for dx, dy in ((4, 3), (4, -10), (6, -3), (0, 6), (0, -14)) for side in (1, -1))
FURTHER = tuple(
    (side * dx, foot)
    for reach in ((10, 30), (60,))
    for dy in range(12, 60, 8)
    for dx in reach
    for foot in (dy, -dy - 8)
    for side in (1, -1)
)
"""Where a name may stand, in points from its mark: its near end, or its middle for 0, and its foot."""
FEW = 8
"""So many points are all named, where there is room."""


@dataclass(frozen=True)
class CostPoint:
    """A configuration at its place of the leaderboard; `front`: nothing beats it in both quality and cost."""

    label: str
    cost: float
    value: float
    front: bool
    baseline: bool = False
    chosen: bool = False
    place: int = 0

    @property
    def spoken_of(self) -> bool:
        """Whether its name matters more than others."""
        return self.front or self.baseline or self.chosen

    @property
    def name(self) -> str:
        """What stands beside it; its place comes before a name that is cut, as two such could be the same."""
        role = " (chosen)" if self.chosen else " (baseline)" if self.baseline else ""
        name = fitted(self.label, 1.2)
        if self.place and name.endswith("…"):
            name = f"{self.place}. {fitted(self.label, 0.95)}"
        return name + role


def cost(points: Sequence[CostPoint], metric: str, key: str) -> Figure:
    """Plot quality against cost, with the front of those that nothing beats in both.

    Costs begin at zero, or at a power of ten where they span more than a factor of 20.
    """
    with drawing(2.6) as (figure, axes):
        front = sorted((point for point in points if point.front), key=lambda point: (point.cost, point.value))
        axes.plot([p.cost for p in front], [p.value for p in front], "--", color=SOFT, linewidth=1, zorder=1)
        for point in points:
            mark, fill = MARKS["choice" if point.chosen else "hollow" if point.baseline else "filled"]
            colours: dict[str, Any] = (
                {"color": LINE, "markerfacecolor": fill} if point.spoken_of else {"color": SOFT}
            )
            axes.plot(point.cost, point.value, mark, zorder=3 if point.spoken_of else 2, **colours)
        costs, values = [point.cost for point in points], [point.value for point in points]
        least, most = min(costs), max(costs)
        if least > 0 and most > 20 * least:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.set_xlim(10.0 ** math.floor(math.log10(least)), most * 1.3)
        else:
            axes.set_xlim(0, most * 1.08 or 1)
            thin_ticks(axes)
        low, high = min(values), max(values)
        room = 0.12 * (high - low) or 0.01
        axes.set_ylim(0 if low < (high - low) / 2 else low - room, high + 1.6 * room)
        axes.set_xlabel(fitted(key, AXIS))
        axes.set_ylabel(fitted(metric, 1.6))
        figure.draw_without_rendering()
        _name(axes, sorted(points, key=lambda p: (not p.chosen, not p.baseline, not p.front)), front)
    return figure


def _name(axes: Axes, points: Sequence[CostPoint], front: Sequence[CostPoint]) -> None:
    """The names of points beside them, where they cover nothing else; the first ones have the choice of places.

    A name that stands further away has a line that leads to it.
    """
    from matplotlib.path import Path
    from matplotlib.transforms import Bbox

    scale = 72 / axes.figure.dpi

    def in_points(some: Sequence[CostPoint]) -> Points:
        return [(scale * x, scale * y) for x, y in axes.transData.transform([(p.cost, p.value) for p in some])]

    frame = Bbox(scale * axes.get_window_extent().get_points())
    marks = in_points(points)
    lines, taken = [Path(in_points(front))], [Bbox.from_bounds(x - 3.5, y - 3.5, 7, 7) for x, y in marks]

    def free(box: Bbox, lead: Path | None) -> bool:
        inside = frame.x0 < box.x0 and frame.y0 < box.y0 and box.x1 < frame.x1 and box.y1 < frame.y1 + 4
        crossed = any(line.intersects_bbox(box, filled=False) for line in lines)
        hidden = any(box.overlaps(area) or (lead and lead.intersects_bbox(area, filled=False)) for area in taken)
        return inside and not crossed and not hidden

    for point, (x, y) in zip(points, marks, strict=True):
        wide = 72 * inches(point.name, NAME) * (1.16 if point.chosen else 1) + 2  # bold is wider
        for dx, dy in (*BESIDE, *FURTHER) if point.spoken_of or len(points) <= FEW else ():
            end = (dx, dy if dy > 0 else dy + 8)
            near = 5.5 / math.hypot(*end)
            far = (dx, dy) in FURTHER
            lead = Path([(x + near * end[0], y + near * end[1]), (x + end[0], y + end[1])]) if far else None
            left = dx if dx > 0 else dx - wide if dx else -wide / 2
            box = Bbox.from_bounds(x + left, y + dy, wide, 8)
            if free(box, lead):
                taken.append(box)
                places: dict[str, Any] = {"xy": (point.cost, point.value), "textcoords": "offset points"}
                if lead:
                    lines.append(lead)
                    thin = {"arrowstyle": "-", "color": SOFT, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4}
                    axes.annotate("", xytext=end, arrowprops=thin, **places)
                axes.annotate(
                    point.name, xytext=(left, dy), fontsize=NAME, color=INK, parse_math=False,
                    fontweight="bold" if point.chosen else "normal", **places,
                )  # fmt: skip
                break
