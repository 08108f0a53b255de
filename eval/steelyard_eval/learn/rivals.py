"""What simpler rules would choose from the same log, to stand beside the learner; none of them ships anything.

naive     acts per show, as if every place were examined alike and entries never shown were worth nothing
ips       acts per examination, lists reduced to entries that were shown (Joachims et al., WSDM 2017)
dr        doubly robust: a regression of acts on signals, corrected where entries were shown (Oosterhuis, 2023)
"""

from __future__ import annotations

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.classes import shown_rows
from steelyard_eval.learn.counts import sums
from steelyard_eval.learn.examination import Examination
from steelyard_eval.learn.first_ten import CandidateLists, discounted

RULES = ("naive", "ips", "dr")
LEAST_EXPOSURE = 0.3
"""Of an entry, below which its correction is not enlarged any more."""
LARGEST = 3.0
"""Acts per examination that an entry is credited with at most."""


def rivals(lists: CandidateLists, cells: Cells, examination: Examination) -> dict[str, int]:
    """The candidate that each rule would choose."""
    queries, shown = cells.queries, shown_rows(lists, cells)
    plain = _rate(lists, cells, np.ones(len(examination.curve)))
    weighed = _rate(lists, cells, examination.curve)
    robust = doubly_robust(lists, cells, examination)
    return {
        "naive": _largest(lists.values(plain, queries)),
        "ips": _largest(discounted(lists.among(shown), weighed, queries)),
        "dr": _largest(lists.values(robust, queries)),
    }


def _largest(values: Floats) -> int:
    return int(values.mean(axis=1).argmax())


def exposure(lists: CandidateLists, cells: Cells, examined: Floats) -> tuple[Floats, Floats]:
    """float64[N] each: how often every row was examined, and acted upon."""
    often = sums(cells.row, cells.shown * examined[cells.place], lists.rows)
    return often, sums(cells.row, cells.positive, lists.rows)


def _rate(lists: CandidateLists, cells: Cells, examined: Floats) -> Floats:
    often, acts = exposure(lists, cells, examined)
    rate = np.divide(acts, often, out=np.zeros(lists.rows), where=often > 0)
    return np.minimum(rate, LARGEST)


def doubly_robust(lists: CandidateLists, cells: Cells, examination: Examination) -> Floats:
    """float64[N]: expected acts per examination, of every row."""
    often, acts = exposure(lists, cells, examination.curve)
    shown = np.flatnonzero(often > 0)
    model = _regression(lists.features, shown, often[shown], acts[shown])
    correction = (acts - often * model) / np.maximum(often, LEAST_EXPOSURE)
    return model + np.where(often > 0, correction, 0.0)


def _regression(features: Floats, rows: Indices, often: Floats, acts: Floats) -> Floats:
    """Poisson regression of acts on signals with exposure as offset, float64[N]; ridge, Newton's method."""
    mean, spread = features[rows].mean(axis=0), features[rows].std(axis=0) + 1e-9
    whole = np.column_stack([np.ones(len(features)), (features - mean) / spread])
    design = whole[rows]
    ridge = np.ones(design.shape[1])
    ridge[0] = 0.0
    b = np.zeros(design.shape[1])
    b[0] = np.log((acts.sum() + 0.5) / often.sum())
    for _ in range(15):
        expected = often * np.exp(np.clip(design @ b, -12, 2))
        hessian = design.T @ (design * expected[:, None]) + np.diag(ridge) + 1e-9 * np.eye(len(b))
        step = np.linalg.solve(hessian, design.T @ (acts - expected) - ridge * b)
        b += step * min(1.0, 2.0 / max(1e-9, float(np.abs(step).max())))
        if np.abs(step).max() < 1e-5:
            break
    return np.asarray(np.exp(np.clip(whole @ b, -12, 0)), dtype=np.float64)
