"""A configuration with free weights over one recording: the exact curve of a metric along its first weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.config.search_config import SearchConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.candidates.curve import Curve, Objective, sweep
from steelyard_eval.candidates.form import Form, forms, movable, on_simplices
from steelyard_eval.candidates.grid import totals
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.result.structs import Cell, Fact, Table

POINTS = 400
COLUMNS = ["weight", "low", "high", "value"]


@dataclass(frozen=True)
class FreeWeights:
    """Weights that move are searched as shares of their sum, which stays what it is.

    `form` holds columns times that sum (`total` float64[S]), so that scores keep their scale beside weights that
    do not move, and beside fixed scores. `branches` are the columns of each sum that moves, `start` their shares.
    """

    form: Form
    measure: Measure
    branches: list[Indices]
    total: Floats
    start: Floats

    @classmethod
    def of(cls, table: SignalTable, config: SearchConfig, judgments: Judgments, measure: Measure) -> FreeWeights:
        """Of one configuration over a recording."""
        (form,) = forms(table, config, [config.strategy], judgments)
        branches = movable(form)
        total = totals(form, branches)
        form = replace(form, columns=form.columns * total[:, None], weights=form.weights / total)
        return cls(form, measure, branches, total, on_simplices(form.weights, form, branches))

    @cached_property
    def objective(self) -> Objective:
        """The mean of the measure."""
        return Objective.of(self.form, self.measure)

    @cached_property
    def curve(self) -> Curve:
        """The mean along the first weight that moves, as its share of the sum, the others in proportion."""
        branch = self.branches[0]
        first, rest = branch[0], branch[1:]
        begin, end = self.start.copy(), self.start.copy()
        begin[branch], end[branch] = 0.0, 0.0
        total = self.start[rest].sum()
        begin[rest] = self.start[rest] / total if total > 0 else 1.0 / len(rest)
        end[first] = 1.0
        return sweep(self.objective, begin, end - begin)

    @property
    def scale(self) -> float:
        """The sum of the weights beside the first one that moves, and it."""
        return float(self.total[self.branches[0][0]])

    @property
    def share(self) -> float:
        """The first weight that moves, as its share of the sum."""
        return float(self.start[self.branches[0][0]])

    def plateau(self) -> tuple[float, ...]:
        """Between which values, as written, the first weight that moves can lie without a change of the mean.

        Empty when nothing moves.
        """
        if not self.branches:
            return ()
        plateau = self.curve.around(self.share, self.objective.mean(self.start))
        return plateau.low * self.scale, plateau.high * self.scale

    def table(self, current: FreeWeights | None = None) -> list[Table]:
        """The `POINTS` widest steps of the curve; nothing where no weight moves.

        `current` is what is used today: its share is named where it has the same columns.
        """
        if not self.branches:
            return []
        name, *others = self._names(self.branches[0])
        facts: dict[str, Fact] = {"signal": name, "others": others, "chosen": self.scale * self.share}
        facts["current"] = None if current is None else current._share_of([name, *others], self.scale)
        facts |= dict(zip(("plateau_low", "plateau_high"), self.plateau(), strict=True))
        return [Table("curve", COLUMNS, steps_of(self.curve, self.scale), facts)]

    def _names(self, branch: Indices) -> list[str]:
        return [self.form.labels[column] for column in branch]

    def _share_of(self, names: Sequence[str], total: float) -> float | None:
        """The first weight of the sum of these columns, if there is one, as a part of another total."""
        shares = (total * float(self.start[own[0]]) for own in self.branches if self._names(own) == names)
        return next(shares, None)


def steps_of(curve: Curve, total: float) -> list[list[Cell]]:
    """The widest steps of a curve: the weight at the middle and both ends, as parts of a total, and the value."""
    wide = np.flatnonzero(curve.wide)
    kept = np.sort(wide[np.argsort(-np.diff(curve.edges)[wide], kind="stable")[:POINTS]])
    lows, highs = total * curve.edges[kept], total * curve.edges[kept + 1]
    return [
        list(step) for step in np.stack([(lows + highs) / 2, lows, highs, curve.values[kept]], axis=1).tolist()
    ]
