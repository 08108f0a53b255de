"""What a log without labels may suggest: a try where its gain holds whichever way the log is read, or nothing.

No estimator can tell an act that follows a signal from one that follows worth, so nothing ships from acts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from steelyard.base.arrays import Ints
from steelyard_eval.decide.posterior import Matrix, Moments
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.gains import SURE, ClickGains

ASKED = 20
"""Candidates that are looked at closely, those of largest gain."""


def suggested(
    learned: ClickGains, gains: Matrix, top: Callable[[int], Ints], parts: Mapping[str, Cells]
) -> int | None:
    """The candidate of largest gain that holds in every view and without each of the parts; None without any.

    Parameters
    ----------
    gains : float[C, n], by the middle view on the logged queries.
    top : int[2, Q, PLACES], the rows that the current configuration and a candidate show.
    parts : the cells without the largest client, and so on.
    """
    sums = Moments.of(gains, learned.pairs.unit[learned.cells.queries])
    likely = np.where(sums.mean - SURE * sums.error > 0, sums.mean, -np.inf)
    for candidate in np.argsort(-likely, kind="stable")[:ASKED].tolist():
        if likely[candidate] <= 0:
            return None
        lists = top(candidate)
        if learned.views(lists).bound > 0 and all(learned.without(one, lists)[0] > 0 for one in parts.values()):
            return int(candidate)
    return None
