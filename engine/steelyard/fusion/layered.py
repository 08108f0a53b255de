"""Scores an entry by its layers, abstract to details, when the first layer passes a threshold (Cortex-Mem)."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.fusion.node import Available, Expr, Signal, Term, nested
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.fusion.routing import ByIntent
from steelyard.fusion.sums import ListColumns, WeightedTerms
from steelyard.grammar import number_text
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
LAST = -1
"""The step of a query whose first layer found nothing: all its details were searched."""
COUNTS = ("step", "directories", "refined", "entries", "ranked")


@dataclass(frozen=True)
class Progress:
    """How far layered searches of Q queries went, each int64[Q]."""

    step: Indices
    """0 where abstracts reached the threshold, 1, 2 ... where a step of the ladder did, `LAST` where none."""
    directories: Indices
    """Directories whose abstract passed."""
    refined: Indices
    """Those of them whose abstract or overview reached half the cut, all of them without a cut."""
    entries: Indices
    """Entries that were ranked by all layers."""
    ranked: Indices
    """Entries that were ranked, by all layers or, at `LAST`, by their details."""
    threshold: Floats
    """float64[Q]: what the abstracts reached at that step; NaN at `LAST`."""
    cut: Floats
    """float64[Q]: what scores have to reach; NaN where there is no cut."""
    answered: Bools
    """bool[Q]: the queries that a layered search answered at all."""

    def counts(self) -> dict[str, int]:
        """The counts of the only query, for a log; `COUNTS` names them."""
        return {name: int(getattr(self, name)[0]) for name in COUNTS}

    def emptied(self) -> str:
        """Which step left the only query without a result, in words; empty where entries were ranked."""
        if self.ranked[0] or not self.answered[0]:
            return ""
        cut, count = float(self.cut[0]), int(self.directories[0])
        if self.step[0] == LAST:
            left = "there are none in scope" if np.isnan(cut) else f"no score reaches {number_text(cut)}"
            return f"no abstract reaches any step of the ladder, and of all details {left}"
        reach = "abstract reaches" if count <= 1 else "abstracts reach"
        passed = f"{count} {reach} {number_text(float(self.threshold[0]))}"
        if not self.refined[0]:
            return f"{passed}, but no overview or abstract of these reaches {number_text(cut / 2)}"
        if np.isnan(cut):
            return f"{passed}, but no entry is in scope"
        return f"{passed}, but no entry's score of all layers reaches {number_text(cut)}"


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
    of the second in place of the last, for an entry that is its own directory; ``estimate_score``: for every file,
    these are its whole score. `depths` are how many places of the first layer each step looks at. With
    ``scope=gate`` only the first layer obeys the query's filters. `lift`, for ``then=best``, is added to each
    layer's similarity after the cut.
    """

    shown_as: ClassVar[str] = "layered"
    beyond: ClassVar[str] = "it gates entries by their first layer and relaxes"
    unwritten: ClassVar[float | None] = None

    threshold: float = opt(0.5, low=NO_GATE, tried=(0.2, 0.3, 0.4, 0.5, 0.6))
    relax: tuple[float, ...] = opt((0.4, 0.3), kind="numbers")
    cut: float | str | None = opt(None, low=NO_GATE, words=(STEP,))
    depths: tuple[int, ...] = opt((), kind="numbers", low=1, integer=True, quiet=True)
    lacking: str = opt("zero", kind="word", words=("zero", "file", "estimate", "estimate_score"), quiet=True)
    then: str = opt("last", kind="word", words=("last", "best"), quiet=True)
    scope: str = opt("all", kind="word", words=("all", "gate"), quiet=True)
    lift: tuple[float, ...] = opt((), kind="numbers", quiet=True)

    @property
    def absolute(self) -> bool:
        return True  # its layers are cosines, added as they are

    @classmethod
    def initial_strategies(cls, there: Available) -> dict[str, list[str]]:
        # Cortex-Mem's weights and thresholds.
        layers = ", ".join(f"{weight}*{name}" for weight, name in zip((0.2, 0.3, 0.5), there.layers, strict=False))
        return {cls.shown_as: [f"layered({layers}, threshold=0.5, relax=[0.4, 0.3])"] if there.layers else []}

    def problems(self) -> Iterator[str]:
        # Layers inside layers would double the work each time.
        if any(isinstance(node, Layered) for term in self.terms for node in term.expr.walk()):
            yield "layered inside layered; name the layers l0, l1, l2 in one"
        if self.lacking != "zero" and len(self.terms) != 3:
            yield f"layered: lacking={self.lacking} needs three layers; name l0, l1 and l2"
        if self.lift and (self.then != "best" or len(self.lift) != len(self.terms)):
            yield "layered: lift is one number for each layer of then=best; write both, or neither"
        if self.depths and not isinstance(self.terms[0].expr, Signal):
            yield "layered: depths are places in the list of one signal; name one as the first layer"

    def variants(self) -> Iterator[Expr]:
        # Each threshold with the steps of the ladder below it, and, where there is a cut, with it and without.
        thresholds = self._tried(self.options()["threshold"])
        each = product(thresholds, (self.relax, type(self).relax), (self.cut, None))
        shapes = (
            replace(self, threshold=threshold, relax=tuple(step for step in ladder if step < threshold), cut=cut)
            for threshold, ladder, cut in each
        )
        yield from dict.fromkeys(shapes)

    @property
    def reads(self) -> frozenset[str]:
        decide = ((FILES, self.lacking != "zero"), (INSIDE, self.scope == "gate"))
        return frozenset(name for name, reads in decide if reads)

    def without(self, missing: Collection[str]) -> Expr | None:
        # Without the first layer nothing passes the gate, so that the last layer answers alone.
        first, *others = (term.expr for term in self.terms)
        if not others or first.without(missing) is not None:
            left = super().without(missing)
            same = left is None or len(left.children) == len(self.terms)
            return left if same else replace(left, lacking="zero")  # type: ignore[type-var]  # a Layered
        last = others[-1].without(missing)
        cut = None if self.cut == STEP else self.cut  # it is all full search now, which has no step
        return None if last is None else Layered((Term(1.0, last),), threshold=NO_GATE, relax=(), cut=cut)

    def members(self, table: SignalTable, within: Bools) -> Bools:
        layers, fallback = self.compile(table, within).branches
        return layers.ranked | fallback.ranked

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        # The gated layers, and the full search for queries where no entry passed.
        return self._searched(table, within)[0]

    def progress(self, table: SignalTable) -> Progress:
        """How far each query went; with one layer there is nothing but the search of all details."""
        plan, gated, near, step, cut = self._searched(table, self.everywhere(table))
        layers, alone = (branch.ranked for branch in plan.branches)
        if len(self.terms) == 1:
            gated, step = np.zeros(len(table), dtype=bool), np.full(len(table.queries), LAST)
            cut = None if self.cut == STEP else cut
        return Progress(
            step,
            _directories(table, gated),
            _directories(table, gated & near),
            count_rows(table, layers) * (step != LAST),
            count_rows(table, layers | alone),
            np.append(self._steps, np.nan)[step],
            np.full(len(step), np.nan) if cut is None else cut,
            np.ones(len(table.queries), dtype=bool),
        )

    def _searched(self, table: SignalTable, within: Bools) -> tuple[Plan, Bools, Bools, Indices, Floats | None]:
        """The plan, and what `progress` counts.

        bool[N] each, the rows that pass the threshold and those near the cut; of each query the step, see
        Progress, and float64[Q] what scores have to reach, None without a cut.
        """
        # Layers are computed over every row that has one, so that the threshold does not change their scales.
        rows = super().members(table, self.everywhere(table) if self._finders else within)
        own = [nested(term.expr, table, rows) for term in self.terms]
        coarse = [_of_directory(table, *layer) for layer in own[:-1]]
        gated, step = self._gate(table, *(coarse or own)[0])
        filled, counted = self._filled(table, [*coarse, own[-1]])
        near, cut = self._cut(table, filled, step)
        floor = None if cut is None else cut[table.query]
        ranked = gated & counted & near & within
        layers = Branch(ranked, filled, self.weights, "layers, coarse to fine", floor=floor)
        # A query of which nothing passes any step searches one layer of everything, and has no step to cut at.
        floor = None if self.cut == STEP else floor
        if self.lift:
            own, floor = [_lifted(*pair, up, floor) for pair, up in zip(own, self.lift, strict=True)], None
        column, present = own[-1] if self.then == "last" else _greatest(own)
        everything = present & (step == LAST)[table.query] & within
        why = f"{self.then} layer alone"
        alone = Branch(everything, (_zeros(column, present),), (1.0,), why, floor=floor)
        return Plan(len(table), (layers, alone)), gated, near, step, cut

    def _cut(self, table: SignalTable, filled: Sequence[Column], step: Indices) -> tuple[Bools, Floats | None]:
        """The rows of which a coarse layer reaches half of the cut, bool[N], and what scores have to reach."""
        near = np.ones(len(table), dtype=bool)
        if self.cut is None:
            return near, None
        if isinstance(self.cut, str):  # at the step that was passed; `LAST` is the NaN
            return near, np.append(self._steps, np.nan)[step]
        near = np.any([column.values >= self.cut / 2 for column in filled[:-1] or filled], axis=0)
        return near, np.full(len(step), self.cut)

    @property
    def _steps(self) -> tuple[float, ...]:
        """The threshold, and the steps of the ladder below it."""
        return (self.threshold, *(step for step in self.relax if step < self.threshold))

    def _gate(self, table: SignalTable, first: Column, present: Bools) -> tuple[Bools, Indices]:
        """The rows that pass their query's threshold, bool[N], and the step at which any does, see Progress."""
        gated = np.zeros(len(table), dtype=bool)
        passed = np.full(len(table.queries), LAST, dtype=np.int64)
        home = table.parent if len(self.terms) > 1 else np.arange(len(table))
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
        """The layers with what stands for missing ones, and bool[N] the rows that count."""
        counted = np.ones(len(table), dtype=bool)
        if self.lacking == "zero":
            filled = [_zeros(*pair) for pair in pairs]
        else:
            abstract = _zeros(*pairs[0])
            overview = _instead(pairs[1], OF_ABSTRACT * abstract.values, f"{OF_ABSTRACT} * {abstract.label}")
            details, indexed = pairs[2]
            counted = indexed.copy()
            if FILES in table.columns:  # without a vector, yet ranked by their directory's layers
                files = ~np.isnan(table.columns[FILES])
                counted |= files & (table.parent == np.arange(len(table))) if self.lacking == "estimate" else files
            estimate, formula = np.zeros(len(table)), "0"
            if self.lacking.startswith("estimate"):
                first, second = self._of_layers()
                estimate = first * abstract.values + second * overview.values
                formula = f"{number_text(first)} * {abstract.label} + {number_text(second)} * {overview.label}"
            filled = [abstract, overview, _instead((details, indexed), estimate, formula)]
        return tuple(filled), counted

    def _of_layers(self) -> tuple[float, float]:
        """What abstract and overview are worth in place of details; of a score, without what they add anyway."""
        whole, (*coarse, last) = self.lacking == "estimate_score", self.weights
        parts = zip(OF_LAYERS, coarse, strict=True)
        first, second = ((part - weight) / last for part, weight in parts) if whole and last else OF_LAYERS
        return first, second


def progress(strategy: Expr, table: SignalTable) -> Progress | None:
    """How far the layered searches in a strategy went; None where there are none."""
    if isinstance(strategy, Layered):
        return strategy.progress(table)
    if isinstance(strategy, ByIntent):
        each = [(queries, progress(expr, table)) for queries, expr in strategy.routes_of(table) if queries.any()]
        parts = [replace(part, answered=part.answered & queries) for queries, part in each if part is not None]
    else:
        parts = [part for child in strategy.children if (part := progress(child, table)) is not None]
    if not parts:
        return None
    first, *others = parts
    for other in others:
        pairs = ((getattr(other, one.name), getattr(first, one.name)) for one in fields(Progress))
        first = Progress(*(np.where(other.answered, theirs, own) for theirs, own in pairs))
    return first


def _of_directory(table: SignalTable, column: Column, present: Bools) -> tuple[Column, Bools]:
    """A layer as each row's directory has it."""
    if table.directory is None:
        return column, present
    home = table.parent
    there: Bools = present[home] & (home >= 0)
    values = np.where(there, column.values[home], 0.0)
    inputs = {name: given[home] for name, given in column.inputs.items()}
    return Column(column.label, values, f"{column.formula} of its directory", inputs, None), there


def _directories(table: SignalTable, rows: Bools) -> Indices:
    """int64[Q]: how many directories the given rows lie in."""
    here = np.zeros(len(table), dtype=bool)
    here[table.parent[rows]] = True
    return count_rows(table, here)


def _zeros(column: Column, present: Bools) -> Column:
    return replace(column, values=np.where(present, column.values, 0.0))


def _instead(pair: tuple[Column, Bools], values: Floats, formula: str) -> Column:
    """A column with other values where it has none, which its formula shows."""
    column, present = pair
    merged = np.where(present, column.values, values)
    if present.all():
        return replace(column, values=merged)
    inputs = {column.label: np.where(present, merged, np.nan)}
    return Column(column.label, merged, f"{column.formula}, else {formula}", inputs)


def _lifted(column: Column, present: Bools, up: float, floor: Floats | None) -> tuple[Column, Bools]:
    """A layer with what is added to it, where it reaches the floor without."""
    reaches = present if floor is None else present & (column.values >= floor)
    return replace(column, values=column.values + up, formula=f"{column.formula} + {number_text(up)}"), reaches


def _greatest(pairs: ListColumns) -> tuple[Column, Bools]:
    parts = tuple(replace(c, values=np.where(present, c.values, np.nan)) for c, present in pairs)
    present = np.any([rows for _, rows in pairs], axis=0)
    values: Floats = np.fmax.reduce([part.values for part in parts])
    label = f"best of {', '.join(part.label for part in parts)}"
    return Column(label, np.where(present, values, 0.0), label, parts=parts, combine="max"), present
