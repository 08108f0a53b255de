"""A score as a tree: every node has the number, the formula in words, and the parts it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from statistics import median
from typing import Any

COMBINED: dict[str, Callable[[list[float]], float]] = {
    "sum": lambda values: reduce(add, values),
    "product": lambda values: reduce(mul, values),
    "max": max,
    "min": min,
    "median": median,
}
"""How the value of a node follows from those of its parts, in their order."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One node. `combine` says how `value` follows from the parts: one of `COMBINED`, or given (a leaf)."""

    value: float
    text: str
    parts: tuple[Explanation, ...] = ()
    combine: str = "given"

    def recomputed(self) -> float:
        """The value worked out again from the leaves, in the order the engine adds and multiplies."""
        if self.combine == "given":
            return self.value
        return COMBINED[self.combine]([part.recomputed() for part in self.parts])

    def to_json(self) -> dict[str, Any]:
        """The tree as plain JSON values."""
        node: dict[str, Any] = {"value": self.value, "text": self.text}
        if self.parts:
            node["combine"] = self.combine
            node["parts"] = [part.to_json() for part in self.parts]
        return node

    def __str__(self) -> str:
        lines = [f"{self.value:.6g}  {self.text}"]
        for part in self.parts:
            lines += ["  " + line for line in str(part).splitlines()]
        return "\n".join(lines)
