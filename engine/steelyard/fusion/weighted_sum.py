"""The weighted sum of normalised signals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from steelyard.base.arrays import Bools
from steelyard.fusion.call import CallReader
from steelyard.fusion.description import Linear
from steelyard.fusion.plan import Branch, Plan
from steelyard.fusion.sums import NormalizedSum
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True)
class WeightedSum(NormalizedSum):
    """``sum of weight * normalize(signal)``; a signal that did not return the entry adds 0."""

    keyword: ClassVar[str] = "weighted_sum"
    shown_as: ClassVar[str] = "weighted sum"
    common: ClassVar[bool] = True

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """Read the terms, each with its weight written, and the normalisation."""
        return cls._read(call, None, "none")

    def describe(self) -> Linear:
        """Describe it as the linear sum that it is."""
        return Linear("", self.terms, self.normalize)

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to one branch with a normalised column for each term."""
        rows = self.members(table, within)
        columns = tuple(column for column, _ in self._normalized(table, rows))
        return Plan(len(table), (Branch(rows, columns, self.weights, "weighted sum"),))

    def __str__(self) -> str:
        parts = [str(term) for term in self.terms]
        if self.normalize != "none":
            parts.append(f"normalize={self.normalize}")
        return f"weighted_sum({', '.join(parts)})"
