"""The exact curve of a metric along one weight, as steps for a document."""

from __future__ import annotations

import numpy as np

from steelyard.base.arrays import Indices
from steelyard_eval.candidates.curve.curve import Curve
from steelyard_eval.candidates.free_weights import Candidate
from steelyard_eval.common.documents.parts import CurveAxis, CurvePoint, CurveRecord

POINTS = 400


def curve_of(candidate: Candidate, current: Candidate | None = None) -> CurveRecord:
    """The objective along the first weight that moves, the others of its sum in proportion.

    `curve` has the widest steps; it is empty where nothing moves. `axis` names the weight, where the
    candidate has it and, where the current setting has the same columns, what that would be in the same sum.
    """
    if not candidate.branches:
        return {"curve": [], "axis": None}
    branch = candidate.branches[0]
    first = int(branch[0])
    total = float(candidate.total[first])
    names = _names(candidate, branch)
    axis: CurveAxis = {
        "signal": names[0],
        "others": names[1:],
        "chosen": total * float(candidate.start[first]),
        "current": None if current is None else _share(current, names, total),
    }
    line = candidate.line_of(branch, first)
    return {"curve": steps_of(line.curve(), total), "axis": axis}


def _names(candidate: Candidate, branch: Indices) -> list[str]:
    return [candidate.form.labels[column] for column in branch]


def _share(current: Candidate, names: list[str], total: float) -> float | None:
    """The first weight of the current sum of the same columns, if there is one, as a part of another total."""
    for branch in current.branches:
        if _names(current, branch) == names:
            return total * float(current.start[branch[0]])
    return None


def steps_of(curve: Curve, total: float) -> list[CurvePoint]:
    """The `POINTS` widest steps of a curve: weights at their middle and ends, as shares of a total, and values."""
    wide = np.flatnonzero(curve.wide)
    kept = np.sort(wide[np.argsort(-np.diff(curve.edges)[wide], kind="stable")[:POINTS]])
    lows, highs = total * curve.edges[kept], total * curve.edges[kept + 1]
    steps = zip(
        ((lows + highs) / 2).tolist(), lows.tolist(), highs.tolist(), curve.values[kept].tolist(), strict=True
    )
    return [{"weight": middle, "low": low, "high": high, "value": value} for middle, low, high, value in steps]
