"""Computes the geometry of charts; the templates draw them and escape their text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard_eval.measures.statistics import TIE
from steelyard_eval.report.text import clip, interval, number

WIDTH = 760
_LEFT, _RIGHT = 210, 590  # the plot; labels stand left of it, numbers right
_ROW = 26
_TOP = 14
_LABEL_COLUMNS = 24
_CURVE_HEIGHT, _CURVE_LEFT, _CURVE_RIGHT = 240, 64, 740
_CURVE_POINTS = 300  # more than pixels can show is only bytes


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: its place in pixels and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Dot:
    """A configuration: its mean at `x`, its interval from `low` to `high`, all on the line `y`."""

    label: str
    full: str
    value: str
    x: float
    y: float
    low: float
    high: float
    is_baseline: bool


@dataclass(frozen=True)
class IntervalChart:
    """Means with intervals on one axis, best first."""

    metric: str
    height: int
    bottom: int
    ticks: tuple[Tick, ...]
    dots: tuple[Dot, ...]
    baseline: float | None
    width: int = WIDTH
    left: int = _LEFT
    right: int = _RIGHT
    top: int = _TOP


@dataclass(frozen=True)
class CurveChart:
    """The objective along one weight; `plateau` is where it equals its best value."""

    metric: str
    points: str
    best: Tick
    best_y: float
    xticks: tuple[Tick, ...]
    yticks: tuple[Tick, ...]
    plateau: tuple[float, float] | None
    width: int = WIDTH
    height: int = _CURVE_HEIGHT + 44
    left: int = _CURVE_LEFT
    right: int = _CURVE_RIGHT
    top: int = _TOP
    bottom: int = _CURVE_HEIGHT


@dataclass(frozen=True)
class Scale:
    """A linear map from values to pixels, with round ends."""

    low: float
    high: float
    start: float
    end: float
    step: float

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float) -> Scale:
        """Make a scale that contains all values, with ends on multiples of a step of 1, 2 or 5."""
        low, high = min(values), max(values)
        # Equal values still get an axis, and the smallest step stays above rounding.
        span = max(high - low, 1e-6 * max(abs(low), abs(high)), 1e-3)
        step = _step(span)
        # 0.3 / 0.1 is a little less than 3, and still the third step.
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        return cls(first * step, max(last, first + 1) * step, start, end, step)

    def __call__(self, value: float) -> float:
        """Pixels, to a tenth."""
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start), 1)

    def ticks(self) -> tuple[Tick, ...]:
        """A tick at every step."""
        count = round((self.high - self.low) / self.step)
        digits = max(0, -math.floor(math.log10(self.step)))
        values = [self.low + index * self.step for index in range(count + 1)]
        return tuple(Tick(self(value), number(value, digits)) for value in values)


def interval_chart(records: Sequence[Mapping[str, Any]], metric: str, baseline: str) -> IntervalChart | None:
    """The chart of result records that are already sorted; None without records."""
    if not records:
        return None
    scale = Scale.of([value for record in records for value in _ends(record)], _LEFT, _RIGHT)
    dots = tuple(_dot(record, index, scale, baseline) for index, record in enumerate(records))
    bottom = _TOP + _ROW * len(records)
    line = next((dot.x for dot in dots if dot.is_baseline), None)
    return IntervalChart(metric, bottom + 44, bottom, scale.ticks(), dots, line)


def curve_chart(curve: Sequence[Mapping[str, float]], plateau: object, metric: str) -> CurveChart | None:
    """The chart of a tuning curve; None with fewer than two weights."""
    points = sorted((point["weight"], point["value"]) for point in curve)
    if len({weight for weight, _ in points}) < 2:
        return None
    across = Scale.of([weight for weight, _ in points], _CURVE_LEFT, _CURVE_RIGHT)
    up = Scale.of([value for _, value in points], _CURVE_HEIGHT, _TOP)
    highest = max(value for _, value in points)
    top = [point for point in points if point[1] >= highest - TIE]
    best = top[len(top) // 2]  # the middle of a plateau
    drawn = " ".join(f"{across(weight)},{up(value)}" for weight, value in _thinned(points, best))
    mark = Tick(across(best[0]), f"{number(best[1])} at {number(best[0])}")
    return CurveChart(metric, drawn, mark, up(best[1]), across.ticks(), up.ticks(), _band(plateau, across))


def _step(span: float) -> float:
    """The step of 1, 2 or 5 times a power of ten that divides `span` into at most five."""
    unit = 10.0 ** math.floor(math.log10(span / 5))
    return next(unit * factor for factor in (1, 2, 5, 10) if span / (unit * factor) <= 5 + 1e-9)


def _ends(record: Mapping[str, Any]) -> tuple[float, float, float]:
    """Low, mean, high; a missing end is the mean."""
    mean = record["mean"]
    low, high = record.get("low"), record.get("high")
    return (mean if low is None else low, mean, mean if high is None else high)


def _dot(record: Mapping[str, Any], index: int, scale: Scale, baseline: str) -> Dot:
    low, mean, high = _ends(record)
    label = record["label"]
    value = f"{number(mean)} {interval(record.get('low'), record.get('high'))}".strip()
    y = _TOP + _ROW * index + _ROW // 2
    name = clip(label, _LABEL_COLUMNS)
    return Dot(name, label, clip(value, 24), scale(mean), y, scale(low), scale(high), label == baseline)


def _thinned(points: Sequence[tuple[float, float]], best: tuple[float, float]) -> Sequence[tuple[float, float]]:
    """At most about `_CURVE_POINTS` of the points; both ends and the best one stay."""
    every = math.ceil(len(points) / _CURVE_POINTS)
    return sorted({*points[::every], points[-1], best})


def _band(plateau: object, scale: Scale) -> tuple[float, float] | None:
    """Left end and width of the plateau, where it is one interval of the weight drawn."""
    match plateau:
        case [int() | float() as low, int() | float() as high] if scale.low <= low <= high <= scale.high:
            return scale(low), round(scale(high) - scale(low), 1)
    return None
