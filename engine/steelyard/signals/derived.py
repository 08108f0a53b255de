"""The result of every derived signal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from steelyard.base.arrays import Floats


@dataclass(frozen=True)
class Derived:
    """Values float64[N], finite on every row, with the formula in words and its inputs (float64[N])."""

    values: Floats
    formula: str
    inputs: Mapping[str, Floats] = field(default_factory=dict)
