"""The score of mem0: a gate, then the mean of similarity and keyword scores that went through a sigmoid."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.fusion.available import Available
from steelyard.fusion.base import Expr
from steelyard.fusion.call import CallReader
from steelyard.fusion.plan import Column, Plan
from steelyard.fusion.sums import ListColumns, Sum, times
from steelyard.grammar import number_text
from steelyard.retrievers.bm25 import TERMS
from steelyard.table.signal_table import SignalTable, count_rows

SIGMOIDS = ((3, 5.0, 0.7), (6, 7.0, 0.6), (9, 9.0, 0.5), (15, 10.0, 0.5), (np.inf, 12.0, 0.5))
"""Up to so many terms of a query: the score that becomes 0.5, and how steep the sigmoid is there."""


@dataclass(frozen=True)
class Gated(Sum):
    """``(w1*first + sum of w*sigmoid(other)) / (sum of the weights of lists that found anything)``.

    Only entries that the first list has at `least` or more are ranked. The sigmoid is
    ``1 / (1 + exp(-steepness * (x - midpoint)))``, both numbers by the terms of the query (`SIGMOIDS`). A list
    that lacks the entry adds 0. Source: mem0 8d5b786, `mem0/utils/scoring.py`.
    """

    keyword: ClassVar[str] = "gated"
    shown_as: ClassVar[str] = "gated sum"
    no_counterpart: ClassVar[str] = "no hybrid query has a sigmoid by the number of a query's terms"
    LEAST: ClassVar = (0.0, 0.1, 0.2, 0.3)

    least: float = 0.1

    @classmethod
    def starts(cls, there: Available) -> dict[str, list[str]]:
        """None: its numbers suit one scale of BM25, so it is tried where it is named."""
        return {}

    @classmethod
    def _options(cls, call: CallReader) -> dict[str, object]:
        return {"least": call.number("least", cls.least, -1.0)}

    @property
    def reads(self) -> frozenset[str]:
        """The number of terms, where a sigmoid follows it."""
        return frozenset({TERMS.name}) if len(self.terms) > 1 else frozenset()

    def without(self, missing: Collection[str]) -> Expr | None:
        """Nothing without the list that is the gate, and the gate alone without what a sigmoid reads."""
        if self.terms[0].expr.without(missing) is None:
            return None
        kept = replace(self, terms=self.terms[:1]) if TERMS.name in missing else self
        return super(Gated, kept).without(missing)

    def variants(self) -> Iterator[Expr]:
        """Iterate over the gates that tuning tries."""
        yield from (replace(self, least=least) for least in sorted({*self.LEAST, self.least}))

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """The rows of the first list that pass the gate."""
        gate = self.terms[0].expr
        rows = gate.members(table, within)
        if rows.any():
            rows &= gate.compile(table, within).scores() >= self.least
        return rows

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile as any sum, divided by the weights of the lists that found anything for the query."""
        (branch,) = super().compile(table, within).branches
        active = np.zeros(len(table.queries))
        for weight, term in zip(self.weights, self.terms, strict=True):
            listed = term.expr.members(table, np.ones(len(table), dtype=bool))
            active += np.where(count_rows(table, listed) > 0, weight, 0.0)
        share = np.where(active > 0, 1.0 / np.where(active > 0, active, 1.0), 0.0)
        return Plan(
            len(table), (times(branch, share[table.query], "1 / weights of the lists that found anything"),)
        )

    def _scale(self, table: SignalTable, lists: ListColumns, rows: Bools) -> Iterator[Column]:
        (first, present), *others = lists
        inputs = {first.label: first.values}
        yield Column(first.label, np.where(present, first.values, 0.0), first.formula, inputs, first.inner)
        for column, listed in others:
            yield _sigmoid(table, column, listed)

    def _why(self) -> str:
        return f"gated sum, {self.terms[0].expr} of at least {number_text(self.least)}"

    def _written(self) -> list[str]:
        return [f"least={number_text(self.least)}"]


def _sigmoid(table: SignalTable, column: Column, present: Bools) -> Column:
    """The scores of a list in 0..1, by the number of terms of each query."""
    terms = table.column(TERMS.name)
    index = np.searchsorted([most for most, _, _ in SIGMOIDS], terms)
    midpoint, steepness = (np.array([row[place] for row in SIGMOIDS])[index] for place in (1, 2))
    away: Floats = np.where(present, steepness * (column.values - midpoint), 0.0)
    values = np.where(present, 1.0 / (1.0 + np.exp(-np.clip(away, -700.0, None))), 0.0)
    inputs = {column.label: column.values, "midpoint": midpoint, "steepness": steepness, TERMS.name: terms}
    return Column(column.label, values, "1 / (1 + exp(-steepness * (x - midpoint)))", inputs, column.inner)
