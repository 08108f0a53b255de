"""Draws means with intervals, paired differences, quality against cost, and the curve of a weight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard_eval.common.markup import clip, interval, number
from steelyard_eval.measures.statistics import MARGIN, TIE
from steelyard_eval.show.report.shapes import Box, Chart, Dot, Path, Scale, Shape, StraightLine, Text, Tick

Record = Mapping[str, Any]
WIDTH = 860
_LEFT, _RIGHT = 210, 560  # the plot; labels are left of it, numbers right
_ROW = 26
_TOP = 14
_LABEL_COLUMNS = 26
_HEIGHT = 260
_CURVE_LEFT, _CURVE_RIGHT = 64, 840
_CURVE_POINTS = 300  # more than pixels can show is only bytes


@dataclass(frozen=True)
class Span:
    """A row of a chart of intervals: label, value and the ends of its interval, and the words right of it.

    `look` is filled or hollow.
    """

    label: str
    value: float
    low: float | None
    high: float | None
    words: str
    look: str = "filled"


def interval_chart(records: Sequence[Record], metric: str, baseline: str) -> Chart | None:
    """Means with their intervals, best first, of result records that are sorted; None without records."""
    if not records:
        return None
    spans = [
        Span(
            record["label"],
            record["mean"],
            record.get("low"),
            record.get("high"),
            _words(record["mean"], record, signed=False),
            "hollow" if record["label"] == baseline else "filled",
        )
        for record in records
    ]
    mark = next((span.value for span in spans if span.label == baseline), None)
    title = f"Mean {metric} with 95% interval for each configuration; the leaderboard has the same numbers"
    return _spans("means", title, spans, metric, mark)


def forest_chart(spans: Sequence[Span], name: str, title: str, axis: str) -> Chart | None:
    """Differences with their intervals around zero; the band of differences that do not matter is shaded."""
    return _spans(name, title, spans, axis, 0.0, band=MARGIN) if spans else None


def difference(label: str, value: float, record: Record, verdict: str, look: str) -> Span:
    """A row of a forest chart."""
    words = f"{_words(value, record, signed=True)} {verdict}".strip()
    return Span(label, value, record.get("low"), record.get("high"), words, look)


def _spans(
    name: str, title: str, spans: Sequence[Span], axis: str, mark: float | None, band: float | None = None
) -> Chart:
    values = [value for span in spans for value in (span.value, span.low, span.high) if value is not None]
    scale = Scale.of([*values, *([-band, band] if band is not None else [])], _LEFT, _RIGHT)
    bottom = _TOP + _ROW * len(spans)
    shapes: list[Shape] = []
    if band is not None:
        shapes.append(Box(scale(-band), _TOP, round(scale(band) - scale(-band), 1), bottom - _TOP, "band"))
    for tick in scale.ticks(signed=band is not None):
        shapes.append(StraightLine(tick.at, _TOP, tick.at, bottom, "grid"))
        shapes.append(Text(tick.at, bottom + 16, tick.text, "middle", "tick"))
    if mark is not None:
        shapes.append(StraightLine(scale(mark), _TOP, scale(mark), bottom, "mark"))
    for row, span in enumerate(spans):
        shapes += _span(span, _TOP + _ROW * row + _ROW // 2, scale)
    shapes.append(Text((_LEFT + _RIGHT) / 2, bottom + 36, axis, "middle", "tick"))
    return Chart(name, title, WIDTH, bottom + 44, tuple(shapes))


def _span(span: Span, y: float, scale: Scale) -> Iterator[Shape]:
    yield Text(_LEFT - 12, y + 4, clip(span.label, _LABEL_COLUMNS), "end", full=span.label)
    low, high = (scale(span.value if end is None else end) for end in (span.low, span.high))
    yield StraightLine(low, y, high, y, "whisker")
    yield StraightLine(low, y - 4, low, y + 4, "whisker")
    yield StraightLine(high, y - 4, high, y + 4, "whisker")
    yield Dot(scale(span.value), y, span.look)
    yield Text(_RIGHT + 14, y + 4, clip(span.words, 40), look="value", full=span.words)


def _words(value: float, record: Record, *, signed: bool) -> str:
    return f"{number(value, signed=signed)} {interval(record.get('low'), record.get('high'))}".strip()


@dataclass(frozen=True)
class Series:
    """Values at the places 1, 2, 3 ... of lists; `look` is filled or hollow."""

    name: str
    values: tuple[float, ...]
    look: str


def places_chart(series: Sequence[Series], name: str, title: str, axis: str) -> Chart | None:
    """Values by place, a line for each series; None without values."""
    values = [value for one in series for value in one.values]
    if not values:
        return None
    count = max(len(one.values) for one in series)
    across = Scale(1.0, float(max(count, 2)), _CURVE_LEFT, _CURVE_RIGHT, 1.0)
    up = Scale.of([0.0, *values], _HEIGHT, _TOP)
    shapes: list[Shape] = [*_grid(up), *_below([Tick(across(at), str(at)) for at in range(1, count + 1)], axis)]
    for one in series:
        points = tuple((across(at), up(value)) for at, value in enumerate(one.values, 1))
        shapes.append(Path(points, "curve" if one.look == "filled" else "front"))
        shapes += [Dot(x, y, one.look) for x, y in points]
    return Chart(name, title, WIDTH, _HEIGHT + 44, tuple(shapes))


@dataclass(frozen=True)
class CostPoint:
    """A configuration in the chart of quality against cost; `name` is its number in the leaderboard."""

    name: str
    label: str
    cost: float
    value: float
    front: bool
    baseline: bool


def cost_chart(points: Sequence[CostPoint], metric: str, cost: str) -> Chart | None:
    """Quality against cost with the front of those that nothing beats in both; None with fewer than two points."""
    if len(points) < 2:
        return None
    log = min(point.cost for point in points) > 0
    across = Scale.of([_place(point.cost, log) for point in points], _CURVE_LEFT, _CURVE_RIGHT)
    up = Scale.of([point.value for point in points], _HEIGHT, _TOP)
    shapes: list[Shape] = [*_grid(up), *_below(_log_ticks(across) if log else across.ticks(), cost)]
    front = sorted((point for point in points if point.front), key=lambda point: (point.cost, point.value))
    if len(front) > 1:
        shapes.append(Path(tuple((across(_place(p.cost, log)), up(p.value)) for p in front), "front"))
    drawn = [(point, across(_place(point.cost, log)), up(point.value)) for point in points]
    for point, x, y in drawn:
        look = "hollow" if point.baseline else "filled" if point.front else "faint"
        shapes.append(Dot(x, y, look, full=f"{point.name}. {point.label}"))
    shapes += _names(sorted(drawn, key=lambda one: not (one[0].front or one[0].baseline)))
    title = f"{metric} against {cost}; the leaderboard has the same numbers"
    return Chart("cost", title, WIDTH, _HEIGHT + 44, tuple(shapes))


def _names(drawn: Sequence[tuple[CostPoint, float, float]]) -> Iterator[Text]:
    """The number of each point beside it, where it covers no other; the first ones have the choice."""
    taken = [(x - 5, y - 5, x + 5, y + 5) for _, x, y in drawn]
    for point, x, y in drawn:
        width = 8 * len(point.name)
        for left, top in ((x + 6, y - 17), (x - 6 - width, y - 17), (x + 6, y + 5), (x - 6 - width, y + 5)):
            box = (left, top, left + width, top + 12)
            if left + width < _CURVE_RIGHT + 12 and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                yield Text(left, top + 10, point.name, look="tick", full=point.label)
                break


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _place(cost: float, log: bool) -> float:
    return math.log10(cost) if log else cost


def _log_ticks(scale: Scale) -> tuple[Tick, ...]:
    """Ticks at 1, 2 and 5 times the powers of ten within the scale."""
    powers = range(math.floor(scale.low), math.ceil(scale.high) + 1)
    found = [(factor * 10.0**power) for power in powers for factor in (1, 2, 5)]
    inside = [value for value in found if scale.low - 1e-9 <= math.log10(value) <= scale.high + 1e-9]
    return tuple(Tick(scale(math.log10(value)), f"{value:g}") for value in inside)


def curve_chart(curve: Sequence[Mapping[str, float]], plateau: object, metric: str, axis: Record) -> Chart | None:
    """The objective along one weight, the plateau shaded; None with fewer than two weights.

    `axis` names the `signal` whose weight it is, the `others` that share the rest, and where `current` and
    `chosen` are.
    """
    points = sorted((point["weight"], point["value"]) for point in curve)
    if len({weight for weight, _ in points}) < 2:
        return None
    marks = {name: axis[name] for name in ("current", "chosen") if axis.get(name) is not None}
    across = Scale.of([*(weight for weight, _ in points), *marks.values()], _CURVE_LEFT, _CURVE_RIGHT)
    up = Scale.of([value for _, value in points], _HEIGHT, _TOP + 16)
    best = best_point(points)
    shapes: list[Shape] = [*_plateau(plateau, across), *_grid(up), *_below(across.ticks(), _weight_of(axis))]
    shapes.append(Path(tuple((across(w), up(v)) for w, v in _thinned(points, best)), "curve"))
    shapes += _marks(marks, across)
    shapes.append(Dot(across(best[0]), up(best[1]), "filled"))
    title = f"{metric} against the {_weight_of(axis)}; best {number(best[1])} at {number(best[0])}"
    return Chart("curve", title, WIDTH, _HEIGHT + 44, tuple(shapes))


def best_point(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The middle one of the highest points."""
    highest = max(value for _, value in points)
    top = [point for point in points if point[1] >= highest - TIE]
    return top[len(top) // 2]


def _weight_of(axis: Record) -> str:
    name = clip(str(axis.get("signal") or ""), 40)
    others = axis.get("others") or ()
    rest = f"; the rest goes to {clip(', '.join(others), 60)}" if others else ""
    return f"weight of {name}{rest}" if name else "weight of the first signal"


def _marks(marks: Mapping[str, float], across: Scale) -> Iterator[Shape]:
    """Upright lines at the current and the chosen weight; their names stand apart where they are close."""
    places = {name: across(value) for name, value in marks.items()}
    left = min(places, key=lambda name: (places[name], name), default="")
    for name, x in places.items():
        inner = x < _CURVE_LEFT + 60 or (name != left and x < _CURVE_RIGHT - 60)
        yield StraightLine(x, _TOP + 4, x, _HEIGHT, "mark" if name == "current" else "chosen")
        yield Text(x + (5 if inner else -5), _TOP + 8, name, "start" if inner else "end", "tick")


def _plateau(plateau: object, across: Scale) -> Iterator[Shape]:
    """The plateau, where it is one interval of the weight drawn; never thinner than can be seen."""
    match plateau:
        case [int() | float() as low, int() | float() as high] if across.low <= low <= high <= across.high:
            yield Box(across(low), _TOP, max(round(across(high) - across(low), 1), 2.0), _HEIGHT - _TOP, "plateau")


def _grid(up: Scale) -> Iterator[Shape]:
    for tick in up.ticks():
        yield StraightLine(_CURVE_LEFT, tick.at, _CURVE_RIGHT, tick.at, "grid")
        yield Text(_CURVE_LEFT - 8, tick.at + 4, tick.text, "end", "tick")


def _below(ticks: Sequence[Tick], name: str) -> Iterator[Shape]:
    for tick in ticks:
        yield Text(tick.at, _HEIGHT + 18, tick.text, "middle", "tick")
    yield Text((_CURVE_LEFT + _CURVE_RIGHT) / 2, _HEIGHT + 38, name, "middle", "tick")


def _thinned(points: Sequence[tuple[float, float]], best: tuple[float, float]) -> Sequence[tuple[float, float]]:
    """At most about `_CURVE_POINTS` of the points; both ends and the best one stay."""
    every = math.ceil(len(points) / _CURVE_POINTS)
    return sorted({*points[::every], points[-1], best})
