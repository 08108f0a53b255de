"""What a derived signal declares beside its formula, its values with their formula in words, and plain fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.grammar import Duration
from steelyard.node import Option
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True)
class DerivedSignal:
    """A signal that is computed from facts, with its options: a decorator, or `partial` of it with options."""

    compute: Callable[..., SignalValues]
    options: Mapping[str, Option] = field(default_factory=dict)
    """Spans of time, which are printed always, and words, where they are not the default."""
    intents: frozenset[str] = frozenset()
    """The intents of a query that change it."""
    factor: bool = False
    """Whether it is made to multiply a score, which 1 leaves as it is, and not to be added to one."""
    unit: bool = True
    """Whether its values lie in 0..1."""
    reads: str | None = ""
    """The facts that it is computed from, in words; empty where its name says them, None where it reads none."""

    @property
    def name(self) -> str:
        """What expressions call it: the name of its function."""
        return self.compute.__name__

    def __call__(self, table: SignalTable, options: Mapping[str, Duration | str] | None = None) -> SignalValues:
        """Compute the signal with these options and the defaults of the others."""
        return self.compute(table, **{name: o.default for name, o in self.options.items()} | dict(options or {}))


@dataclass(frozen=True)
class SignalValues:
    """Values float64[N], finite on every row, with the formula in words and its inputs (float64[N])."""

    values: Floats
    formula: str
    inputs: Mapping[str, Floats] = field(default_factory=dict)


FIRST, LAST = (each.replace(tzinfo=UTC).timestamp() for each in (datetime.min, datetime.max))
"""The dates that there are, from the year 1 to the year 9999, seconds UTC."""


@partial(DerivedSignal, unit=False, reads="dates")
def created(table: SignalTable) -> SignalValues:
    """When an entry was created among all dates that there are, in 0..1; an undated one is as new as the query."""
    dates = table.fact("created_at")
    stated = np.where(np.isnan(dates), table.asked.numbers["clock"][table.query], dates)
    values = np.clip((stated - FIRST) / (LAST - FIRST), 0.0, 1.0)
    return SignalValues(values, "creation among the years 1 to 9999", {"days from 1970": stated / 86_400})


@partial(DerivedSignal, reads=None)
def one(table: SignalTable) -> SignalValues:
    """1 for every entry, which shifts a scale: ``0.5*cosine + 0.5*one`` is (1 + cosine) / 2."""
    return SignalValues(np.ones(len(table)), "1")
