"""The first line of what was learned: what to do, what to expect of it, and what would settle it."""

from __future__ import annotations

import math

from steelyard_eval.learn.verdict import SURE, Judged
from steelyard_eval.tune.recommendation_sentence import rough


def sentence(judged: Judged, chosen: str, current: str) -> str:
    """One sentence to act on."""
    queries = len(judged.cells.queries)
    seen = f"{queries} distinct queries and {judged.cells.count:,} acts"
    gain = _gain(judged, judged.candidate)
    pooled = (
        f", pooled with {judged.pooled.labels.queries} labelled queries"
        if judged.pooled and judged.pooled.labels
        else ""
    )
    if judged.verdict == "ship":
        return f"Use {chosen}: {gain:+.3f} nDCG@10 expected over your {current}, by {seen}{pooled}."
    if judged.verdict == "try" and judged.refusal:
        return f"Try {chosen} in place of your {current}, unproven by {seen}{pooled}: {judged.refusal}."
    if judged.verdict == "try":
        return (
            f"Try {chosen}, unproven: {gain:+.3f} nDCG@10 expected over your {current}, by {seen}{pooled}; "
            f"{_settle(judged, judged.candidate)}."
        )
    if judged.refusal:
        return f"Keep your {current}: {judged.refusal}."
    return (
        f"Keep your {current}: no weights beat it in every view of {seen}{pooled}; {_settle(judged, judged.best)}."
    )


def _gain(judged: Judged, candidate: int) -> float:
    return float((judged.pooled.gain if judged.pooled else judged.views.gain[1])[candidate])


def _settle(judged: Judged, candidate: int) -> str:
    """How many more queries would prove a gain, if it is what it seems; labels where that is far off."""
    more = needed(judged, candidate)
    if more is None:
        return "label 30 queries or more to settle it"
    missing = more - len(judged.cells.queries)
    return f"about {rough(missing)} more distinct queries, or 30 labelled ones, would settle it"


def needed(judged: Judged, candidate: int) -> int | None:
    """Distinct queries at which the cautious views would lie above 0 by enough errors; None beyond a hundredfold.

    Only the query error falls with the number of queries; the refit error and imputation may not.
    """
    gain = float(judged.views.gain[1:, candidate].min())
    error = float(judged.views.error[1:, candidate].max())
    queries = len(judged.cells.queries)
    if gain <= 0 or candidate == 0:
        return None
    count = queries * (SURE[0] * error / gain) ** 2
    if not math.isfinite(count) or count > 100 * queries:
        return None
    return max(queries + 1, math.ceil(count))
