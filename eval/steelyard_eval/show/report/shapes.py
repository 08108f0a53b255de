"""The shapes that charts are drawn with: geometry and plain text, which one template turns into SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from steelyard_eval.common.markup import number


@dataclass(frozen=True)
class StraightLine:
    """A straight line; `look` is its class in the style sheet, here and below."""

    kind: ClassVar[str] = "line"
    x1: float
    y1: float
    x2: float
    y2: float
    look: str


@dataclass(frozen=True)
class Box:
    """A filled rectangle."""

    kind: ClassVar[str] = "box"
    x: float
    y: float
    width: float
    height: float
    look: str


@dataclass(frozen=True)
class Dot:
    """A round mark; `full` is what a pointer over it shows."""

    kind: ClassVar[str] = "dot"
    x: float
    y: float
    look: str
    radius: float = 4.5
    full: str = ""


@dataclass(frozen=True)
class Path:
    """A line through points."""

    kind: ClassVar[str] = "path"
    points: tuple[tuple[float, float], ...]
    look: str


@dataclass(frozen=True)
class Text:
    """A text; `full` is what it was clipped from."""

    kind: ClassVar[str] = "text"
    x: float
    y: float
    text: str
    anchor: str = "start"
    look: str = ""
    full: str = ""


Shape = StraightLine | Box | Dot | Path | Text


@dataclass(frozen=True)
class Chart:
    """A drawing; `title` is what it shows, in a sentence for those who cannot see it."""

    name: str
    title: str
    width: int
    height: int
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: its place in pixels and its text."""

    at: float
    text: str


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

    def ticks(self, *, signed: bool = False) -> tuple[Tick, ...]:
        """A tick at every step."""
        count = round((self.high - self.low) / self.step)
        digits = max(0, -math.floor(math.log10(self.step)))
        values = [self.low + index * self.step for index in range(count + 1)]
        return tuple(Tick(self(value), number(value, digits, signed=signed)) for value in values)


def _step(span: float) -> float:
    """The step of 1, 2 or 5 times a power of ten that divides `span` into at most five."""
    unit = 10.0 ** math.floor(math.log10(span / 5))
    return next(unit * factor for factor in (1, 2, 5, 10) if span / (unit * factor) <= 5 + 1e-9)
