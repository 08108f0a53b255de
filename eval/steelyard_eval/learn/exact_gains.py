"""The weights that maximise the learned gains exactly, where two weights move: beside the verdict, never shipped.

A fit to these very gains is optimistically biased, so candidates are laid out before the log is read. What the
best weights would show is reported beside them, as `tune` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard_eval.decide.grid import totals
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.classes import Classes, shown_rows
from steelyard_eval.learn.first_ten import DISCOUNT, CandidateLists
from steelyard_eval.learn.views import STRENGTHS, imputed
from steelyard_eval.tune.recommendation_sentence import named
from steelyard_eval.weights.exact.ascent import line_of
from steelyard_eval.weights.exact.objective import SUM, Objective
from steelyard_eval.weights.exact.optimise import movable, on_line, on_simplices
from steelyard_eval.weights.exact.sweep import segment

LEAST = 1e-3
"""Rows of a smaller gain are left out: they decide nothing, and there are many."""


def optimum(lists: CandidateLists, cells: Cells, classes: Classes) -> dict[str, Any] | None:
    """The best two weights for the mean of the views, with their plateau; None where not just two weights move."""
    form = lists.form
    branches = movable(form)
    if len(branches) != 1 or len(branches[0]) != 2:
        return None
    own, total = branches[0], totals(form, branches)
    objective = _objective(lists, cells, classes, form.columns * total[:, None])
    start = on_simplices(lists.block.weights[0] / total, form, branches)
    queries = np.zeros(len(lists.queries), dtype=bool)
    queries[cells.queries] = True
    found = on_line(objective, segment(objective, *line_of(start, own, int(own[0]))), own, start, queries)
    whole = np.array(lists.block.config.strategy.weights, dtype=np.float64)
    moved = form.slot >= 0
    whole[form.slot[moved]] = np.round((found.weights * total)[moved], 4)
    strategy = lists.block.config.strategy.with_weights(whole)
    return {
        "strategy": named(lists.block.config.with_strategy(strategy)),
        "gain": found.value - float(objective.values(start)[queries].mean()),
        "plateau": [bound * float(total[own[0]]) for bound in found.plateau],
        "certificate": found.certificate,
    }


def _objective(lists: CandidateLists, cells: Cells, classes: Classes, columns: Floats) -> Objective:
    """The mean of the views as an objective: every row above `LEAST` has a gain of its own."""
    shown = shown_rows(lists, cells)
    gains = np.mean([imputed(classes, shown, strength) for strength in STRENGTHS], axis=0)
    gains = gains / lists.ideal(classes.relevance, cells.queries)
    relevant = np.flatnonzero(gains >= LEAST).astype(np.int64)
    ends = np.searchsorted(relevant, lists.offsets).astype(np.int64)
    graded: Bools = np.diff(ends) > 1
    return Objective(
        columns=np.ascontiguousarray(columns),
        offsets=lists.offsets,
        relevant=relevant,
        relevant_offsets=ends,
        kind=SUM,
        by_rank=np.concatenate([[0.0], DISCOUNT, [0.0]]),
        gain=gains[relevant].astype(np.float64),
        graded=graded,
    )
