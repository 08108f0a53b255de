"""Signals, the leaves of a strategy: a fetched column, or a signal derived from facts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.base.errors import ConfigError
from steelyard.fusion.base import Expr, told_once
from steelyard.fusion.call import CallReader
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.grammar import Duration
from steelyard.signals import PRIORS, Derived, Prior
from steelyard.table.facts import NO_FACTS
from steelyard.table.signal_table import KEPT_ROWS, SignalTable


@dataclass(frozen=True)
class Signal(Expr):
    """A signal by name, with the options of its prior (``recency(half_life=365d)``)."""

    shown_as: ClassVar[str] = "single"
    HALF_LIVES: ClassVar = (0.25, 0.5, 1.0, 2.0, 4.0)
    """Factors of the written half-life that tuning tries."""

    name: str
    options: tuple[tuple[str, Duration | str], ...] = ()

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """Read a known signal with the options of its prior."""
        name = call.call.name
        if call.call.items:
            call.fault(f"signal {name!r} takes no signals in brackets; remove them")
        if name not in PRIORS:
            call.finish()
            return cls(name)
        return cls(name, tuple(_read_options(PRIORS[name], call)))

    @property
    def absolute(self) -> bool:
        """Always: a signal is what it is."""
        return True

    def children(self) -> tuple[Expr, ...]:
        """Return no children: a signal is a leaf."""
        return ()

    def option(self, name: str) -> Duration | str | None:
        """Return an option, or its default when it is not written; None when the signal has no such option."""
        words = PRIORS[self.name].words if self.name in PRIORS else {}
        defaults: dict[str, Duration | str] = {word: valid[0] for word, valid in words.items()}
        return (defaults | dict(self.options)).get(name)

    def with_children(self, children: Sequence[Expr]) -> Self:
        """Return this signal: a leaf has no children."""
        return self

    def variants(self) -> Iterator[Expr]:
        """Iterate over the half-lives that tuning tries, or this signal alone when it has none."""
        options = dict(self.options)
        written = options.get("half_life")
        if not isinstance(written, Duration):
            yield self
            return
        for factor in self.HALF_LIVES:
            span = Duration(written.amount * factor, written.unit)
            yield replace(self, options=tuple((options | {"half_life": span}).items()))

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

    def derived(self, table: SignalTable) -> Derived:
        """Its values, NaN where a retriever did not return the row; ConfigError where the table lacks them."""
        if self.name not in PRIORS:
            return Derived(table.column(self.name), self.name)
        if table.about is NO_FACTS:
            raise ConfigError(
                f"this table carries no facts, and {self} is computed from them; search again with it"
            )
        kept = table.derived
        key = (self.name, self.options)
        if (derived := kept.get(key)) is None:
            derived = PRIORS[self.name](table, dict(self.options))
            if len(table.queries) == 1 or len(table) <= KEPT_ROWS:  # a search asks again for its hits
                kept[key] = derived
        return derived

    @told_once
    def __str__(self) -> str:
        if not self.options:
            return self.name
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.options)})"


def _read_options(prior: Prior, call: CallReader) -> list[tuple[str, Duration | str]]:
    """Read the options; spans are always written out, a word only where it is not the default."""
    values: list[tuple[str, Duration | str]] = []
    for name, default in prior.spans.items():
        value = call.take(name)
        if value is not None and (not isinstance(value, Duration) or value.amount <= 0):
            call.bad(name, value, "must be a positive span of time such as 365d or 69h")
            value = None
        values.append((name, value if isinstance(value, Duration) else default))
    for name, valid in prior.words.items():
        if (word := call.word(name, valid[0], valid)) != valid[0]:
            values.append((name, word))
    call.finish(*prior.spans, *prior.words)
    return values
