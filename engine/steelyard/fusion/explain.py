"""Explanations: a score as a tree whose nodes have a number, its formula in words, and its parts."""

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
"""Functions that compute the value of a node from the values of its parts, in order."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One node of the tree.

    Attributes
    ----------
    value : float
        The number.
    text : str
        Its formula in words.
    parts : tuple of Explanation
        The nodes that it is computed from.
    combine : str
        How `value` follows from the parts: one of `COMBINED`, or ``given`` for a leaf.
    """

    value: float
    text: str
    parts: tuple[Explanation, ...] = ()
    combine: str = "given"

    def recomputed(self) -> float:
        """Compute the value again from the leaves, in the order in which the engine adds and multiplies."""
        if self.combine == "given":
            return self.value
        return COMBINED[self.combine]([part.recomputed() for part in self.parts])

    def to_json(self) -> dict[str, Any]:
        """Return the tree as plain JSON values."""
        node: dict[str, object] = {"value": self.value, "text": self.text}
        if self.parts:
            node["combine"] = self.combine
            node["parts"] = [part.to_json() for part in self.parts]
        return node

    def __str__(self) -> str:
        lines = [f"{self.value:.6g}  {self.text}"]
        for part in self.parts:
            lines += ["  " + line for line in str(part).splitlines()]
        return "\n".join(lines)
