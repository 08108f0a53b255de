"""Signals, the leaves of a strategy: a fetched column, or a signal derived from facts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.base.errors import ConfigError
from steelyard.fusion.node import Expr, cached_method
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.grammar import Call, Duration
from steelyard.node import Reader
from steelyard.signals import PRIORS, SignalValues
from steelyard.table.facts import NO_FACTS
from steelyard.table.signal_table import KEPT_ROWS, SignalTable


@dataclass(frozen=True)
class Signal(Expr):
    """A signal by name, with the options of its prior (``recency(half_life=365d)``)."""

    shown_as: ClassVar[str] = "single"
    HALF_LIVES: ClassVar = (0.25, 0.5, 1.0, 2.0, 4.0)
    """Factors of the written half-life that tuning tries."""

    name: str
    given: tuple[tuple[str, Duration | str], ...] = ()
    """The options that are printed: spans always, a word where it is not the default."""

    @classmethod
    def read(cls, call: Call, reader: Reader) -> Self | None:
        """Read a known signal with the options of its prior."""
        known = PRIORS[call.name].options if call.name in PRIORS else {}
        read = reader.options(call, known)
        if call.items:
            reader.faults.append(f"signal {call.name!r} takes no signals in brackets; remove them")
        written = (name for name, value in read.items() if not known[name].quiet or value != known[name].default)
        return cls(call.name, tuple((name, read[name]) for name in written))

    def option(self, name: str) -> Any:  # noqa: ANN401 -- the value of any option
        """Return an option, or its default when it is not written; None when the signal has no such option."""
        known = PRIORS[self.name].options if self.name in PRIORS else {}
        return dict(self.given).get(name, known[name].default if name in known else None)

    @property
    def absolute(self) -> bool:
        """Always: a signal is what it is."""
        return True

    def variants(self) -> Iterator[Expr]:
        """Iterate over the half-lives that tuning tries, or this signal alone when it has none."""
        given = dict(self.given)
        written = given.get("half_life")
        if not isinstance(written, Duration):
            yield self
            return
        for factor in self.HALF_LIVES:
            span = Duration(written.amount * factor, written.unit)
            yield replace(self, given=tuple((given | {"half_life": span}).items()))

    @property
    def reads(self) -> frozenset[str]:
        """Itself."""
        return frozenset({self.name})

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """Return the rows that the retriever returned, or all of `within` for a scorer or a prior."""
        if not self.retrievers():
            return within
        if self.name not in table.columns:
            return np.zeros(len(table), dtype=bool)
        rows: Bools = within & ~np.isnan(table.columns[self.name])
        return rows

    def without(self, missing: Collection[str]) -> Expr | None:
        """Return the signal unless it is missing."""
        return None if self.name in missing else self

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to one column of weight 1 over the rows where the signal has a value."""
        rows, derived, text = self.members(table, within), self.derived(table), str(self)
        column = Column(text, derived.values, derived.formula, derived.inputs)
        return Plan(len(table), (Branch(rows, (column,), (1.0,), text),))

    def derived(self, table: SignalTable) -> SignalValues:
        """Its values, NaN where a retriever did not return the row; ConfigError where the table lacks them."""
        if self.name not in PRIORS:
            return SignalValues(table.column(self.name), self.name)
        if table.about is NO_FACTS:
            raise ConfigError(
                f"this table carries no facts, and {self} is computed from them; search again with it"
            )
        key = (self.name, self.given)
        if (derived := table.derived.get(key)) is None:
            derived = PRIORS[self.name](table, dict(self.given))
            if len(table.queries) == 1 or len(table) <= KEPT_ROWS:  # a search asks again for its hits
                table.derived[key] = derived
        return derived

    @cached_method
    def __str__(self) -> str:
        written = ", ".join(f"{name}={value}" for name, value in self.given)
        return f"{self.name}({written})" if written else self.name
