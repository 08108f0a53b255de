"""The weighted sum of normalised signals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from steelyard.base.arrays import Bools
from steelyard.fusion.available import Available
from steelyard.fusion.call import CallReader
from steelyard.fusion.description import Linear
from steelyard.fusion.normalize import NORMALIZERS
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
    def starts(cls, there: Available) -> dict[str, list[str]]:
        """Sums of the lists, and sums with signals that are derived from facts: all of them, then each."""
        facts = [there.sum_with(*there.facts), *map(there.sum_with, there.facts)] if there.facts else []
        graph = [there.sum_with(*more, *there.facts) for more in there.additions[1:] if facts]
        return {cls.shown_as: there.sums, "all signals": list(dict.fromkeys([*facts, *graph]))}

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """Read the terms, each with its weight written, and the normalisation."""
        normalize = call.word("normalize", "none", tuple(NORMALIZERS))
        call.finish("normalize")
        return cls(call.terms(None), normalize)

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
