"""A setting with free weights over one recording, ready to be searched for any set of its queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.config.search_config import SearchConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.weights.exact.ascent import line_of
from steelyard_eval.weights.exact.objective import Objective
from steelyard_eval.weights.exact.optimise import BestFound, movable, on_line, on_simplices, optimise
from steelyard_eval.weights.exact.sweep import Sweep, segment
from steelyard_eval.weights.kernel import Form, forms


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

    def search(self, queries: Bools, seed: int) -> BestFound:
        """The best weights for the queries where bool[Q] is true, exact where two move."""
        if self._line is None:
            return optimise(self.form, self.measure, self.start, seed, queries)
        return on_line(self.objective, self._line, self.branches[0], self.start, queries)

    def values(self, weights: Floats) -> Floats:
        """float64[Q]: the measure under weights float64[S], in shares."""
        return self.objective.values(weights)

    def mean(self, weights: Floats, queries: Bools) -> float:
        """The mean measure over the queries where bool[Q] is true."""
        return float(self.values(weights)[queries].mean())

    def short(self, weights: Floats, queries: Bools) -> Floats:
        """The weights in as few decimals, as written, as keep the mean to the bit: to be read and typed."""
        value = self.mean(weights, queries)
        for digits in range(2, 8):
            rounded = weights.copy()
            for branch in self.branches:
                rounded[branch] = np.round(weights[branch] * self.total[branch], digits) / self.total[branch]
            if self.mean(rounded, queries) == value:
                return rounded
        return weights

    def plateau(self, weights: Floats, queries: Bools) -> tuple[float, ...]:
        """Between which values, as written, the first weight that moves can lie without a change of the mean.

        The others of its branch stay in proportion. Empty when nothing moves.
        """
        if not self.branches:
            return ()
        branch = self.branches[0]
        first = int(branch[0])
        line = self._line or self.line_of(branch, first, weights)
        plateau = line.curve(queries).around(float(weights[first]), self.mean(weights, queries))
        return plateau.low * float(self.total[first]), plateau.high * float(self.total[first])

    def line_of(self, branch: Indices, s: int, weights: Floats) -> Sweep:
        """The sweep of weight s of a branch from 0 to 1, the others in proportion."""
        return segment(self.objective, *line_of(weights, branch, s))

    def written(self, weights: Floats) -> SearchConfig:
        """The configuration under weights float64[S], in shares."""
        whole = np.array(self.config.strategy.weights, dtype=np.float64)
        moved = [column for branch in self.branches for column in branch if self.form.slot[column] >= 0]
        whole[self.form.slot[moved]] = (weights * self.total)[moved]
        return self.config.with_strategy(self.config.strategy.with_weights(whole))

    @cached_property
    def _line(self) -> Sweep | None:
        """Where two weights move, their whole line: the curve of any set of queries is read from it."""
        if len(self.branches) != 1 or len(self.branches[0]) != 2:
            return None
        return self.line_of(self.branches[0], int(self.branches[0][0]), self.start)


def candidates(
    table: SignalTable, settings: Iterable[SearchConfig], judgments: Judgments, measure: Measure
) -> Iterator[Candidate]:
    """A candidate a setting, in order; neighbours of equal depths share a masked table."""
    for _, equal in groupby(settings, key=lambda config: config.depths):
        configs = list(equal)
        made = forms(table, configs[0], [config.strategy for config in configs], judgments)
        for config, form in zip(configs, made, strict=True):
            yield Candidate(config, form, measure)


def _totals(weights: Floats, branches: Sequence[Indices]) -> Floats:
    """float64[S]: the sum of the weights of each movable branch; 1 for what does not move, or sums to 0."""
    total = np.ones(len(weights))
    for branch in branches:
        total[branch] = weights[branch].sum() or 1.0
    return total
