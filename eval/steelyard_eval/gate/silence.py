"""What the gate says of silence: questions without an answer that are answered, and what a floor loses.

False answers are paired by query: of those whose answer came or went, the share that came is tested against a half
(the sign test, one-sided). What a floor loses is held against what it promised when it was found.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import bdtrc, ndtri, stdtr

from steelyard.base.arrays import Indices
from steelyard_eval.gate.rule import ALPHA, BOUND
from steelyard_eval.measures.runs import Scored

Record = dict[str, Any]


def false_answers(now: Collection[str], before: Collection[str], asked: int, budget: float) -> Record | None:
    """The finding on the questions that nothing answers; None where there are none.

    fail: more came than went, p < .05. pass: no more came than went, or the 90% bound of the rise of their share
    lies within the budget. inconclusive: anything else.
    """
    if not asked:
        return None
    came, went = len(set(now) - set(before)), len(set(before) - set(now))
    rise, moved = (came - went) / asked, came + went
    p = float(bdtrc(came - 1, moved, 0.5)) if came else 1.0
    spread = math.sqrt(max(moved - (came - went) ** 2 / asked, 0.0)) / asked
    within = rise + float(ndtri(BOUND)) * spread <= budget
    verdict = "fail" if came > went and p < ALPHA else "pass" if came <= went or within else "inconclusive"
    text = f"{len(now)} of {asked} questions without an answer are answered, {len(before)} before"
    return {"kind": "false answers", "verdict": verdict, "text": f"{text} (p = {p:.2g})" if came > went else text}


def kept_promise(promise: float, lost: Sequence[float], unit: Indices) -> Record:
    """The finding on what a floor loses, float64[n] of the queries that have something to lose.

    fail: its mean is above the promise, p < .05 of Student's one-sided test over units. inconclusive: it is above.
    """
    values = np.asarray(lost, dtype=np.float64)
    mean, units = float(values.mean()), int(unit.max()) + 1
    away = np.zeros(units)
    np.add.at(away, unit, values - mean)
    error = math.sqrt(float((away**2).sum()) * units / max(units - 1, 1)) / len(values)
    p = float(stdtr(units - 1, (promise - mean) / error)) if error and units > 1 else float(mean <= promise)
    verdict = "pass" if mean <= promise else "fail" if p < ALPHA else "inconclusive"
    text = f"the floor loses {mean:.1%} of the relevant entries, and {promise:.0%} was promised"
    return {"kind": "lost", "verdict": verdict, "text": text}


def promised(provenance: Mapping[str, Any]) -> float | None:
    """The share that a floor promised to lose at most, by its weights file; None where it promised nothing."""
    claims = provenance.get("floor", {}).get("claims", ())
    shares = [claim.get("share") for claim in claims if isinstance(claim, Mapping) and claim.get("name") == "lost"]
    return next((float(share) for share in shares if isinstance(share, int | float)), None)


def losses(
    whole: Sequence[Sequence[Scored]],
    shown: Sequence[Sequence[Scored]],
    ids: Sequence[str],
    qrels: Mapping[str, Mapping[str, int]],
) -> dict[str, float]:
    """Query -> the share of the relevant entries of its list that the floor drops, where there are any."""
    found = {}
    for query, own, left in zip(ids, whole, shown, strict=True):
        relevant = {id_ for id_, _ in own if qrels.get(query, {}).get(id_, 0) >= 1}
        if relevant:
            found[query] = 1 - len(relevant & {id_ for id_, _ in left}) / len(relevant)
    return found
