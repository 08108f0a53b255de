"""How far two judges agree: Cohen's kappa, plain and weighted by the square of the distance between grades."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import TypedDict

from steelyard_eval.notebook.label.judgments import GRADES, Judgment, Pair


class KappaRecord(TypedDict):
    """The pairs that both judged, the share of equal grades, and kappa, plain and weighted; None: not defined."""

    pairs: int
    equal: float | None
    kappa: float | None
    weighted: float | None


def agreement(first: Mapping[Pair, Judgment], second: Mapping[Pair, Judgment]) -> KappaRecord:
    """The pairs that both judged, the share of equal grades, and kappa (Cohen, 1960; weighted: 1968).

    Kappa is 1 for equal judgments and 0 for what chance gives; None where it is not defined: without common pairs,
    or when both gave one grade only.
    """
    from sklearn.metrics import cohen_kappa_score  # half a second to import

    common = [pair for pair in first if pair in second and None not in (first[pair].grade, second[pair].grade)]
    a, b = ([given[pair].grade for pair in common] for given in (first, second))
    equal = sum(x == y for x, y in zip(a, b, strict=True)) / len(common) if common else None
    record: KappaRecord = {"pairs": len(common), "equal": equal, "kappa": None, "weighted": None}
    if len({*a, *b}) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain, weighted = (
                float(cohen_kappa_score(a, b, labels=list(GRADES), weights=kind)) for kind in (None, "quadratic")
            )
        record["kappa"] = plain if math.isfinite(plain) else None
        record["weighted"] = weighted if math.isfinite(weighted) else None
    return record
