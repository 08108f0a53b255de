"""A setting with free weights over one recording: its values under any weights, and the curve of each weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.config.search_config import SearchConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.candidates.curve.objective import Objective
from steelyard_eval.candidates.curve.simplex import line_of, movable, on_simplices
from steelyard_eval.candidates.curve.sweep import Sweep, segment
from steelyard_eval.candidates.kernel import Form, forms
from steelyard_eval.measures.metrics import Judgments, Measure


class Candidate:
    """One choice of everything but the weights.

    Weights that move are searched as shares of their sum, which stays what it is: `form` holds columns times
    that sum, so that scores keep their scale beside weights that do not move, and beside fixed scores.
    """

    def __init__(self, config: SearchConfig, form: Form, measure: Measure) -> None:
        self.config = config
        self.measure = measure
        self.branches = movable(form)
        self.total = _totals(form.weights, self.branches)
        self.form = replace(form, columns=form.columns * self.total[:, None], weights=form.weights / self.total)
        self.objective = Objective.of(self.form, measure)
        self.start = on_simplices(self.form.weights, self.form, self.branches)

    def plateau(self) -> tuple[float, ...]:
        """Between which values, as written, the first weight that moves can lie without a change of the mean.

        The other weights of the branch stay in proportion. Empty when nothing moves.
        """
        if not self.branches:
            return ()
        branch = self.branches[0]
        first = int(branch[0])
        mean = float(self.objective.values(self.start).mean())
        plateau = self.line_of(branch, first).curve().around(float(self.start[first]), mean)
        return plateau.low * float(self.total[first]), plateau.high * float(self.total[first])

    def line_of(self, branch: Indices, s: int) -> Sweep:
        """The sweep of weight s of a branch from 0 to 1, the others in proportion."""
        return segment(self.objective, *line_of(self.start, branch, s))


def candidate_of(table: SignalTable, config: SearchConfig, judgments: Judgments, measure: Measure) -> Candidate:
    """One configuration over a recording, with its weights free."""
    (form,) = forms(table, config, [config.strategy], judgments)
    return Candidate(config, form, measure)


def _totals(weights: Floats, branches: Sequence[Indices]) -> Floats:
    """float64[S]: the sum of the weights of each movable branch; 1 for what does not move, or sums to 0."""
    total = np.ones(len(weights))
    for branch in branches:
        total[branch] = weights[branch].sum() or 1.0
    return total
