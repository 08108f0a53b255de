"""The leaves of a strategy: a fetched column, or a signal derived from facts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from steelyard.errors import ConfigError
from steelyard.fusion.base import Expr
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.grammar import Duration
from steelyard.signals import PRIORS
from steelyard.table import NO_FACTS, Bools, Floats, SignalTable


@dataclass(frozen=True)
class Signal(Expr):
    """A signal by name, with the options of its prior (``recency(half_life=365d)``)."""

    name: str
    options: tuple[tuple[str, Duration | str], ...] = ()

    def children(self) -> tuple[Expr, ...]:
        """A leaf has none."""
        return ()

    def signals(self) -> frozenset[str]:
        """The name itself."""
        return frozenset({self.name})

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """The rows a retriever returned; all of them for a scorer or a prior."""
        if not self.retrievers():
            return within
        if self.name not in table.columns:
            return np.zeros(len(table), dtype=bool)
        found: Bools = within & ~np.isnan(table.columns[self.name])
        return found

    def without(self, missing: Collection[str]) -> Expr | None:
        """The signal itself, unless it is missing."""
        return None if self.name in missing else self

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """One column of weight 1 over the rows where the signal has a value."""
        if self.name not in PRIORS:
            values = table.column(self.name)
            formula = self.name
            inputs: Mapping[str, Floats] = {}
        else:
            if table.about is NO_FACTS:
                raise ConfigError(
                    f"this table carries no facts, and {self} is computed from them; search again with it"
                )
            derived = PRIORS[self.name](table, dict(self.options))
            values, formula, inputs = derived.values, derived.formula, derived.inputs
        rows = self.members(table, within)
        column = Column(str(self), values, formula, inputs)
        return Plan(len(table), (Branch(rows, (column,), (1.0,), str(self)),))

    def __str__(self) -> str:
        if not self.options:
            return self.name
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.options)})"


def leaves(expr: Expr) -> list[Signal]:
    """The signals of a strategy, in the order they are written, each once."""
    found = [expr] if isinstance(expr, Signal) else [leaf for child in expr.children() for leaf in leaves(child)]
    return list(dict.fromkeys(found))
