"""Scores an entry by its layers, abstract to details, when the first layer passes a threshold (Cortex-Mem)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.fusion.node import Available, Expr, Term
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.fusion.progress import LAST, Progress
from steelyard.fusion.signal import Signal
from steelyard.fusion.sums import ListColumns, WeightedTerms
from steelyard.node import opt
from steelyard.table.signal_table import SignalTable, count_rows

FILES = "unindexed"
"""The signal of entries whose text has no vector yet."""
INSIDE = "inside"
"""The signal of candidates that the query's own filters admit."""
OF_ABSTRACT = 0.8
"""What an abstract's similarity is worth in place of an overview's (Cortex-Mem's code)."""
OF_LAYERS = (0.4, 0.6)
"""What abstract and overview are worth in place of details (Cortex-Mem's code)."""
NO_GATE = -1.0
"""A threshold that every cosine reaches."""
STEP = "step"
"""The cut that is the step of the ladder at which a query's first layer found something."""


@dataclass(frozen=True)
class Layered(WeightedTerms):
    """``0.2*l0 + 0.3*l1 + 0.5*l2`` over the entries whose first layer reaches the threshold.

    For a query with no entry at `threshold`, the steps of `relax` below it are tried in order; when none finds
    an entry, every entry is ranked by the last layer alone, or with ``then=best`` by its best layer. All layers
    but the last are those of an entry's directory, see `SignalTable.directory`.

    `cut` drops scores below it, and before that the directories whose layers stay below its half. ``cut=step``
    drops scores below the step at which the first layer passed, and none of the full search. `lacking` is
    what a missing layer counts. ``zero``: nothing. ``file``: 0.8 of the first in place of the second, nothing in
    place of the last, and what is no file is not ranked. ``estimate``: as ``file``, with 0.4 of the first and 0.6
    of the second in place of the last, for an entry that is its own directory. `depths` are how many places of
    the first layer each step looks at. With ``scope=gate`` only the first layer obeys the query's filters.
    """

    keyword: ClassVar[str] = "layered"
    shown_as: ClassVar[str] = "layered"
    beyond: ClassVar[str] = "it gates entries by their first layer and relaxes"
    unwritten: ClassVar[float | None] = None

    threshold: float = opt(0.5, low=NO_GATE, tried=(0.2, 0.3, 0.4, 0.5, 0.6))
    relax: tuple[float, ...] = opt((0.4, 0.3), kind="numbers")
    cut: float | str | None = opt(None, low=NO_GATE, words=(STEP,))
    depths: tuple[int, ...] = opt((), kind="numbers", low=1, whole=True, quiet=True)
    lacking: str = opt("zero", kind="word", words=("zero", "file", "estimate"), quiet=True)
    then: str = opt("last", kind="word", words=("last", "best"), quiet=True)
    scope: str = opt("all", kind="word", words=("all", "gate"), quiet=True)

    @property
    def absolute(self) -> bool:
        """Always: its layers are cosines, added as they are."""
        return True

    @classmethod
    def initial_strategies(cls, there: Available) -> dict[str, list[str]]:
        """The three layers at Cortex-Mem's weights and thresholds."""
        layers = ", ".join(f"{weight}*{name}" for weight, name in zip((0.2, 0.3, 0.5), there.layers, strict=False))
        return {cls.shown_as: [f"layered({layers}, threshold=0.5, relax=[0.4, 0.3])"] if there.layers else []}

    def problems(self) -> Iterator[str]:
        """Options that need other layers than there are; layers inside layers would double the work each time."""
        if any(_holds_layers(term.expr) for term in self.terms):
            yield "layered inside layered; name the layers l0, l1, l2 in one"
        if self.lacking != "zero" and len(self.terms) != 3:
            yield f"layered: lacking={self.lacking} needs three layers; name l0, l1 and l2"
        if self.depths and not isinstance(self.terms[0].expr, Signal):
            yield "layered: depths are places in the list of one signal; name one as the first layer"

    def variants(self) -> Iterator[Expr]:
        """Each threshold with the steps of the ladder below it, and, where there is a cut, with it and without."""
        thresholds = self._tried(self.options()["threshold"])
        each = product(thresholds, (self.relax, type(self).relax), (self.cut, None))
        shapes = (
            replace(self, threshold=threshold, relax=tuple(step for step in ladder if step < threshold), cut=cut)
            for threshold, ladder, cut in each
        )
        yield from dict.fromkeys(shapes)

    @property
    def reads(self) -> frozenset[str]:
        """What decides which entries count."""
        files = {FILES} if self.lacking != "zero" else set()
        return frozenset(files | ({INSIDE} if self.scope == "gate" else set()))

    def without(self, missing: Collection[str]) -> Expr | None:
        """Without the first layer nothing passes the gate, so that the last layer answers alone."""
        first, *others = (term.expr for term in self.terms)
        if not others or first.without(missing) is not None:
            left = super().without(missing)
            same = left is None or len(left.children()) == len(self.terms)
            return left if same else replace(left, lacking="zero")  # type: ignore[type-var]  # a Layered
        last = others[-1].without(missing)
        cut = None if self.cut == STEP else self.cut  # it is all full search now, which has no step
        return None if last is None else Layered((Term(1.0, last),), threshold=NO_GATE, relax=(), cut=cut)

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """Return the entries that pass the threshold, or those with the last layer where none passes."""
        layers, fallback = self.compile(table, within).branches
        return layers.ranked | fallback.ranked

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile to two branches: the gated layers, and the full search for queries where no entry passed.

        Layers are computed over every row that has one, so that the threshold does not change their scales.
        """
        rows = super().members(table, self.everywhere(table) if self._finders() else within)
        pairs = self._columns(table, rows)
        above = [_of_directory(table, *pair) for pair in pairs[:-1]]
        gated, step = self._gate(table, *(above or pairs)[0])
        filled, counted = self._filled(table, [*above, pairs[-1]])
        least = self._least(step)
        floor = None if least is None else least[table.query]
        layers = Branch(gated & counted & within, filled, self.weights, "layers, coarse to fine", floor=floor)
        column, present = pairs[-1] if self.then == "last" else _best(pairs)
        alone = present & (step == LAST)[table.query] & within
        why = "last layer alone" if self.then == "last" else "best layer alone"
        floor = None if self.cut == STEP else floor
        return Plan(len(table), (layers, Branch(alone, (_zeros(column, present),), (1.0,), why, floor=floor)))

    def progress(self, table: SignalTable) -> Progress | None:
        """How far each query went; with one layer there is nothing but the search of all details."""
        everything = self.everywhere(table)
        rows = super().members(table, everything)
        pairs = self._columns(table, rows)
        above = [_of_directory(table, *pair) for pair in pairs[:-1]]
        gated, step = self._gate(table, *(above or pairs)[0])
        near = self._near(self._filled(table, [*above, pairs[-1]])[0])
        layers, alone = self.compile(table, everything).branches
        if not above:
            gated, step = np.zeros(len(table), dtype=bool), np.full(len(table.queries), LAST)
        return Progress(
            step,
            _directories(table, gated),
            _directories(table, gated & near),
            count_rows(table, layers.ranked) * (step != LAST),
            count_rows(table, layers.ranked | alone.ranked),
            np.append(self._steps, np.nan)[step],
            np.full(len(step), np.nan) if (least := self._least(step)) is None else least,
            np.ones(len(table.queries), dtype=bool),
        )

    @property
    def _steps(self) -> tuple[float, ...]:
        """The threshold, and the steps of the ladder below it."""
        return (self.threshold, *(step for step in self.relax if step < self.threshold))

    def _least(self, step: Indices) -> Floats | None:
        """float64[Q]: the score below which a query that passed at a step has no results; None without a cut."""
        if isinstance(self.cut, str):
            return np.append(self._steps, np.nan)[step]  # `LAST` is the NaN: the full search is not cut
        return None if self.cut is None else np.full(len(step), self.cut)

    def _gate(self, table: SignalTable, first: Column, present: Bools) -> tuple[Bools, Indices]:
        """The rows that pass their query's threshold, bool[N], and the step at which any does, see Progress."""
        gated = np.zeros(len(table), dtype=bool)
        passed = np.full(len(table.queries), LAST, dtype=np.int64)
        home = table.home if len(self.terms) > 1 else np.arange(len(table))
        if self.scope == "gate":
            present = present & (table.column(INSIDE)[home] != 0)
        for index, step in enumerate(self._steps):
            above = present & (first.values >= step) & (passed == LAST)[table.query]
            if self.depths:
                depth = self.depths[min(index, len(self.depths) - 1)]
                above &= table.positions[str(self.terms[0].expr)][home] <= depth
            gated |= above
            passed[count_rows(table, above) > 0] = index
        return gated, passed

    def _filled(self, table: SignalTable, pairs: ListColumns) -> tuple[tuple[Column, ...], Bools]:
        """The layers with what stands for missing ones, and bool[N] the rows that count at all."""
        counted = np.ones(len(table), dtype=bool)
        if self.lacking == "zero":
            filled = [_zeros(*pair) for pair in pairs]
        else:
            abstract = _zeros(*pairs[0])
            overview = _instead(pairs[1], OF_ABSTRACT * abstract.values, f"{OF_ABSTRACT} * {abstract.label}")
            details, indexed = pairs[2]
            counted = indexed | self._files(table)
            estimate, formula = np.zeros(len(table)), "0"
            if self.lacking == "estimate":
                estimate = OF_LAYERS[0] * abstract.values + OF_LAYERS[1] * overview.values
                formula = f"{OF_LAYERS[0]} * {abstract.label} + {OF_LAYERS[1]} * {overview.label}"
            filled = [abstract, overview, _instead((details, indexed), estimate, formula)]
        return tuple(filled), counted & self._near(filled)

    def _near(self, filled: Sequence[Column]) -> Bools:
        """bool[N]: the rows one of whose layers but the last reaches half the cut."""
        if self.cut is None or isinstance(self.cut, str):  # what has passed a step reaches its half
            return np.ones(len(filled[0].values), dtype=bool)
        near: Bools = np.any([column.values >= self.cut / 2 for column in filled[:-1] or filled], axis=0)
        return near

    def _files(self, table: SignalTable) -> Bools:
        """bool[N]: the files without a vector that may be ranked by their directory's layers."""
        if FILES not in table.columns:
            return np.zeros(len(table), dtype=bool)
        files: Bools = ~np.isnan(table.columns[FILES])
        return files & (table.home == np.arange(len(table))) if self.lacking == "estimate" else files


def _holds_layers(expr: Expr) -> bool:
    return isinstance(expr, Layered) or any(map(_holds_layers, expr.children()))


def _of_directory(table: SignalTable, column: Column, present: Bools) -> tuple[Column, Bools]:
    """A layer as each row's directory has it."""
    if table.directory is None:
        return column, present
    home = table.home
    there: Bools = present[home] & (home >= 0)
    values = np.where(there, column.values[home], 0.0)
    inputs = {name: given[home] for name, given in column.inputs.items()}
    return Column(column.label, values, f"{column.formula} of its directory", inputs, None), there


def _directories(table: SignalTable, rows: Bools) -> Indices:
    """int64[Q]: how many directories the given rows lie in."""
    here = np.zeros(len(table), dtype=bool)
    here[table.home[rows]] = True
    return count_rows(table, here)


def _zeros(column: Column, present: Bools) -> Column:
    return replace(column, values=np.where(present, column.values, 0.0))


def _instead(pair: tuple[Column, Bools], values: Floats, formula: str) -> Column:
    """A column with other values where it has none, which its formula shows."""
    column, present = pair
    merged = np.where(present, column.values, values)
    if present.all():
        return replace(column, values=merged)
    return Column(
        column.label,
        merged,
        f"{column.formula}, else {formula}",
        {column.label: np.where(present, merged, np.nan)},
    )


def _best(pairs: ListColumns) -> tuple[Column, Bools]:
    """The greatest of each row's own layers."""
    parts = tuple(replace(c, values=np.where(present, c.values, np.nan)) for c, present in pairs)
    present = np.any([rows for _, rows in pairs], axis=0)
    values: Floats = np.fmax.reduce([part.values for part in parts])
    label = f"best of {', '.join(part.label for part in parts)}"
    return Column(label, np.where(present, values, 0.0), label, parts=parts, combine="max"), present
