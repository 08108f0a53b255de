"""Plans, to which strategies compile: branches of linear forms over derived columns.

Within a branch, ``score = factor * (w1*x1 + w2*x2 + ...)``, added in the order the terms are
written, so that one query and thousands give the same bits. A fusion that is not a sum (a maximum,
a median) is one column combined from others. `explain` prints the plan.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from textwrap import indent
from typing import Any

import numpy as np

from steelyard.base.arrays import Bools, Floats, Ints
from steelyard.grammar import number_text
from steelyard.retrievers import RETRIEVERS
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True, slots=True)
class Explanation:
    """One node of a tree: a number, its formula in words, and the nodes that it is computed from.

    `combine` is how it follows from them: sum, product, max, min or median, or ``given`` for a leaf.
    """

    value: float
    text: str
    parts: "tuple[Explanation, ...]" = ()
    combine: str = "given"

    def to_json(self) -> dict[str, Any]:
        """Return the tree as plain JSON values."""
        below = {"combine": self.combine, "parts": [part.to_json() for part in self.parts]} if self.parts else {}
        return {"value": self.value, "text": self.text, **below}

    def __str__(self) -> str:
        return "\n".join([f"{self.value:.6g}  {self.text}", *(indent(str(part), "  ") for part in self.parts)])


@dataclass(frozen=True)
class Column:
    """A derived column of a plan, by the signal or expression `label` that it was computed from.

    `values` float64[N] is finite on the rows of its branch; `formula` says in words how it follows from `inputs`.
    `inner` is the plan of a nested fusion; `parts` are columns that it combines, NaN where one does not count.
    """

    label: str
    values: Floats
    formula: str
    inputs: Mapping[str, Floats] = field(default_factory=dict)
    inner: "Plan | None" = None
    parts: "tuple[Column, ...]" = ()
    combine: str = "given"

    def sources(self) -> "Iterator[Column]":
        """Iterate over the columns of single signals that it is computed from, or itself when it is one."""
        if self.inner is not None:
            yield from self.inner.sources()
        elif self.parts:
            yield from chain.from_iterable(part.sources() for part in self.parts)
        else:
            yield self

    def explain(self, row: int) -> Explanation:
        """Explain how the value of one row was computed."""
        if self.parts:
            trees = tuple(part.explain(row) for part in self.parts if not math.isnan(part.values[row]))
            return Explanation(float(self.values[row]), self.formula, trees, self.combine)
        leaves, absent = [], []
        for name, values in self.inputs.items():
            if math.isfinite(values[row]):
                leaves.append(Explanation(float(values[row]), name))
            else:  # NaN means "not returned": there is no number to show, and JSON has no NaN
                absent.append(f"{name}: not returned" if name in RETRIEVERS else f"no {name}")
        if self.inner is not None and (nested := self.inner.explain(row)) is not None:
            leaves.append(nested)
        text = f"{self.formula} ({', '.join(absent)})" if absent else self.formula
        return Explanation(float(self.values[row]), text, tuple(leaves))


@dataclass(frozen=True)
class Branch:
    """One linear form for the `rows` (bool[N]) it ranks; no row belongs to two branches of a plan.

    `why` is what the sum of `weights` and `columns` is, for `explain`. `factor` float64[N] multiplies it, as
    `factor_formula` says of `factor_inputs`. Rows whose score is below `floor`, which is equal for all rows of a
    query, are left out.
    """

    rows: Bools
    columns: tuple[Column, ...]
    weights: tuple[float, ...]
    why: str
    factor: Floats | None = None
    factor_formula: str = ""
    factor_inputs: Mapping[str, Floats] = field(default_factory=dict)
    floor: Floats | None = None

    @cached_property
    def ranked(self) -> Bools:
        """bool[N]: the rows that stay."""
        if self.floor is None:
            return self.rows
        return self.rows & (self.scores() >= self.floor)

    @property
    def alone(self) -> Column | None:
        """Its column where that is one signal of weight 1 and nothing else."""
        bare = self.weights == (1.0,) and self.factor is None and self.floor is None
        return self.columns[0] if bare and not self.columns[0].parts else None

    def scores(self) -> Floats:
        """Compute the scores, float64[N]; meaningful on `rows` only."""
        total = self.weights[0] * self.columns[0].values
        for weight, column in zip(self.weights[1:], self.columns[1:], strict=True):
            total = total + weight * column.values
        return total if self.factor is None else total * self.factor

    def explain(self, row: int) -> Explanation:
        """Explain one row as a tree: weights times columns, summed, times the factor."""
        terms = []
        for weight, column in zip(self.weights, self.columns, strict=True):
            parts = (Explanation(weight, "weight"), column.explain(row))
            text = f"{number_text(weight)} * {column.label}"
            terms.append(Explanation(weight * float(column.values[row]), text, parts, "product"))
        total = terms[0].value
        for term in terms[1:]:
            total += term.value
        node = Explanation(total, self.why, tuple(terms), "sum")
        if self.factor is None:
            return node
        inputs = tuple(Explanation(float(values[row]), name) for name, values in self.factor_inputs.items())
        factor = Explanation(float(self.factor[row]), self.factor_formula, inputs)
        return Explanation(total * factor.value, f"{self.why}, multiplied", (node, factor), "product")


@dataclass(frozen=True)
class Plan:
    """The branches of a strategy over one table of `size` rows."""

    size: int
    branches: tuple[Branch, ...]

    def scores(self) -> Floats:
        """Compute the score of every ranked row; float64[N], NaN elsewhere."""
        result = np.full(self.size, np.nan)
        for branch in self.branches:
            result[branch.ranked] = branch.scores()[branch.ranked]
        return result

    def ties(self, table: SignalTable) -> Ints | None:
        """What rows of equal score ascend by, int32[N]; None for their ids.

        A branch that scores by the list of one other engine keeps its order, because that order is the ranking.
        """
        if not table.others_places:
            return None
        ties = np.zeros(self.size, dtype=np.int32)
        for branch in self.branches:
            if name := only_list(table, branch.columns):
                ties[branch.rows] = table.others_places[name][branch.rows]
        return ties

    def sources(self) -> Iterator[Column]:
        """Iterate over the columns of single signals in the branches that rank any row."""
        columns = (column for branch in self.branches if branch.ranked.any() for column in branch.columns)
        return chain.from_iterable(column.sources() for column in columns)

    def explain(self, row: int) -> Explanation | None:
        """Explain one row as a tree; None when the strategy does not rank it."""
        return next((branch.explain(row) for branch in self.branches if branch.ranked[row]), None)


def only_list(table: SignalTable, columns: Iterable[Column]) -> str:
    """The list of another engine that alone columns are computed from; empty for several, and for our own."""
    if not table.others_places:
        return ""
    names = {source.label for column in columns for source in column.sources()} & table.others_places.keys()
    return names.pop() if len(names) == 1 else ""
