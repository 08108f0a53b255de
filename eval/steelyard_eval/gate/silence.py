"""What the gate tests beyond ranking: answers to questions that have none, and what a floor loses.

False answers are paired by query: of those whose answer came or went, the share that came is tested against a half
(the sign test, one-sided); lists that show what is stale are, too. What a floor loses is held against what it
promised when it was found.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import bdtrc, ndtri, stdtr

from steelyard.base.arrays import Indices
from steelyard_eval.common.documents.gate import FindingRecord
from steelyard_eval.gate.rule import ALPHA, BOUND
from steelyard_eval.measures.judgments import lost_shares
from steelyard_eval.measures.runs import Ranked
from steelyard_eval.measures.spread import LEAST, spread


def false_answers(
    now: Collection[str], before: Collection[str], asked: int, budget: float
) -> FindingRecord | None:
    """The finding on the questions that nothing answers; None where there are none.

    fail: more came than went, p < .05. pass: no more came than went, or the 90% bound of the rise of their share
    lies within the budget. inconclusive: anything else.
    """
    return risen("false answers", now, before, asked, budget, "questions without an answer are answered")


def risen(
    kind: str, now: Collection[str], before: Collection[str], asked: int, budget: float, text: str
) -> FindingRecord | None:
    """The finding on queries of which fewer are better, by the rule of `false_answers`; None of no queries."""
    if not asked:
        return None
    came, went = len(set(now) - set(before)), len(set(before) - set(now))
    rise, moved = (came - went) / asked, came + went
    p = float(bdtrc(came - 1, moved, 0.5)) if came else 1.0
    error = math.sqrt(max(moved - (came - went) ** 2 / asked, 0.0)) / asked
    within = rise + float(ndtri(BOUND)) * error <= budget
    verdict = "fail" if came > went and p < ALPHA else "pass" if came <= went or within else "inconclusive"
    text = f"{len(now)} of {asked} {text}, {len(before)} before"
    text += f" (p = {p:.2g})" if came > went else ""
    text += f", and so few do not rule out a rise by more than {budget:g}" if verdict == "inconclusive" else ""
    return {"kind": kind, "verdict": verdict, "text": text}


def kept_promise(promise: float, lost: Sequence[float], unit: Indices) -> FindingRecord:
    """The finding on what a floor loses, float64[n] of the queries that have something to lose.

    fail: its mean is above the promise, p < .05 of Student's one-sided test over units. inconclusive: it is above,
    as any mean of a single unit.
    """
    values = np.asarray(lost, dtype=np.float64)
    found = spread(values, unit)
    mean, error = float(found.mean), max(float(found.error), LEAST)
    p = float(stdtr(found.units - 1, (promise - mean) / error)) if found.units > 1 else 1.0
    verdict = "pass" if mean <= promise else "fail" if p < ALPHA else "inconclusive"
    text = f"the floor loses {mean:.1%} of the relevant entries, and {promise:.0%} was promised"
    return {"kind": "lost", "verdict": verdict, "text": text}


def promised(provenance: Mapping[str, Any]) -> float | None:
    """The share that a floor promised to lose at most, by its weights file; None where it promised nothing."""
    claims = provenance.get("floor", {}).get("claims", ())
    shares = [claim.get("share") for claim in claims if isinstance(claim, Mapping) and claim.get("name") == "lost"]
    return next((float(share) for share in shares if isinstance(share, int | float)), None)


def losses(whole: Ranked, shown: Ranked, qrels: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Query -> the share of the relevant entries of its list that the floor drops, where there are any.

    Both are lists of the same queries and entries, without the floor and with it.
    """
    places, left = (ranked.query * len(whole.entries) + ranked.entry for ranked in (whole, shown))
    rows = np.flatnonzero(whole.relevant(qrels))
    query = whole.query[rows]
    shares = lost_shares(query, ~np.isin(places[rows], left)[:, None])[:, 0]
    return {whole.queries[q]: share for q, share in zip(np.unique(query).tolist(), shares.tolist(), strict=True)}
