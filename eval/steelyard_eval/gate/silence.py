"""What the gate tests beyond ranking: answers to questions that have none, and what a floor loses.

False answers are paired by query: of those whose answer came or went, the share that came is tested against a half
(the sign test, one-sided); lists that show what is stale are, too. What a floor loses is held against what it
promised when it was found.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from scipy.special import bdtrc, ndtri, stdtr

from steelyard.base.arrays import Indices
from steelyard_eval.gate.rule import ALPHA, BOUND
from steelyard_eval.measures.judgments import lost_shares
from steelyard_eval.measures.runs import Ranked
from steelyard_eval.measures.spread import LEAST, spread
from steelyard_eval.result.structs import Fact, Finding


def sign_test_increase(
    key: str, now: Collection[str], before: Collection[str], asked: int, budget: float
) -> Finding:
    """The finding on queries of which fewer are better, such as those that nothing answers; `asked` at least 1.

    fail: more came than went, p < .05. pass: no more came than went, or the 90% bound of the rise of their share
    lies within the budget. inconclusive: anything else.
    """
    came, went = len(set(now) - set(before)), len(set(before) - set(now))
    rise, moved = (came - went) / asked, came + went
    p = float(bdtrc(came - 1, moved, 0.5)) if came else 1.0
    error = math.sqrt(max(moved - (came - went) ** 2 / asked, 0.0)) / asked
    within = rise + float(ndtri(BOUND)) * error <= budget
    fails, passes = came > went and p < ALPHA, came <= went or within
    facts: dict[str, Fact] = {
        "now": len(now),
        "asked": asked,
        "before": len(before),
        "p": p if came > went else None,
        "budget": None if fails or passes else budget,
    }
    return Finding(key, facts, verdict="fail" if fails else "pass" if passes else "inconclusive")


def kept_promise(promise: float, lost: Sequence[float], unit: Indices) -> Finding:
    """The finding on what a floor loses, float64[n] of the queries that have something to lose.

    fail: its mean is above the promise, p < .05 of Student's one-sided test over units. inconclusive: it is above,
    as any mean of a single unit.
    """
    values = np.asarray(lost, dtype=np.float64)
    found = spread(values, unit)
    mean, error = float(found.mean), max(float(found.error), LEAST)
    p = float(stdtr(found.units - 1, (promise - mean) / error)) if found.units > 1 else 1.0
    facts: dict[str, Fact] = {"lost": mean, "promise": promise}
    verdict: Literal["pass", "fail"] = "pass" if mean <= promise else "fail"
    return Finding("gate_lost", facts, verdict=verdict if verdict == "pass" or p < ALPHA else "inconclusive")


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
