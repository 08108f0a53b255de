"""What a reader has to know before the table: too few queries, unjudged hits, queries that share a scope, LSA."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.memory.query import Query
from steelyard_eval.measures.metrics import Measure

FEW = 25
"""Judged queries below which hardly anything is told apart."""
COARSE = 0.1
"""A detectable difference above which most comparisons end without an answer."""
USUAL = 0.05
"""A difference that is worth seeing."""
UNJUDGED = 0.05
"""A difference in Judged@10 that can make a loser of a better list."""
JUDGED = Measure("Judged", 10)
SHOWN = 4
"""Contenders that are named in one warning."""
Values = Mapping[str, Floats]
"""Label -> float64[Q] of one metric."""


def warnings(
    queries: Sequence[Query],
    values: Values,
    judged: Values,
    baseline: str,
    comparisons: Sequence[Mapping[str, Any]],
    model: str,
) -> list[str]:
    """The warnings, most important first.

    `values` has the primary metric of every contender, `judged` its Judged@10, where there is one; `comparisons`
    are the records of the tests; `model` is the name of the vectors' model.
    """
    return [
        *_few(len(queries), comparisons),
        *shared_scopes(queries, values, baseline),
        *_unjudged(judged, baseline),
        *_lsa(model),
    ]


def _few(count: int, comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many queries would do: as many times more as the detectable difference squared is too large."""
    detectable = [row["mde"] for row in comparisons if row["mde"]]
    if not detectable:
        return (
            [f"{count} judged queries tell little apart; label at least {FEW}, better 60"] if count < FEW else []
        )
    usual = median(detectable)
    if count >= FEW and usual <= COARSE:
        return []
    more = math.ceil(count * (usual / USUAL) ** 2)
    return [
        f"{count} judged queries are few: between these configurations a difference below about {usual:.2f} is "
        f"likely to be missed; to see one of {USUAL} takes about {more} judged queries"
    ]


def shared_scopes(queries: Sequence[Query], values: Values, baseline: str) -> list[str]:
    """Queries of one scope vary together: how many independent queries they are worth in a comparison.

    That is the median over the contenders, of their differences from the baseline.
    """
    if not lack_groups(queries):
        return []
    base = values[baseline]
    differences = [own - base for label, own in values.items() if label != baseline] or [base]
    scopes = [str(query.filters) for query in queries]
    effective = median(effective_number(one, scopes) for one in differences)
    if effective > 0.9 * len(queries):
        return []
    return [
        f"the {len(queries)} queries share {len(set(scopes))} scopes, and those of one scope vary together: they "
        f"are worth about {effective:.0f} independent queries; give them `group` to have that counted"
    ]


def lack_groups(queries: Sequence[Query]) -> bool:
    """Whether no query has a group, though there are at least two scopes, and at least three queries a scope."""
    scopes = {str(query.filters) for query in queries}
    return not any(query.group for query in queries) and 2 <= len(scopes) <= len(queries) / 3


def effective_number(values: Floats, groups: Sequence[str]) -> float:
    """N over the design effect: the variance of the mean over whole groups, beside that of independent queries.

    Kish, Survey Sampling (1965), 5.4; at most n.
    """
    n = len(values)
    _, code, counts = np.unique(groups, return_inverse=True, return_counts=True)
    alone = float(values.var(ddof=1)) / n
    away = np.bincount(code, values) - values.mean() * counts
    together = float((away**2).sum()) * len(counts) / (len(counts) - 1) / n**2
    return n * min(1.0, alone / together) if together > 0 else float(n)


def _unjudged(judged: Values, baseline: str) -> list[str]:
    """Contenders whose first ten hits are judged less often than the baseline's, and the reverse."""
    if baseline not in judged:
        return []
    share = {label: float(own.mean()) for label, own in judged.items()}
    base = share.pop(baseline)
    less = [label for label, own in share.items() if own < base - UNJUDGED]
    more = [label for label, own in share.items() if own > base + UNJUDGED]
    missed = "and an unjudged hit counts as a miss"
    found = []
    if less:
        looks, whose = ("it looks", "its") if len(less) == 1 else ("they look", "their")
        found.append(
            f"{_some(less)} may be better than {looks} beside {baseline}: fewer of {whose} first ten hits are "
            f"judged than the {base:.0%} of {baseline}, {missed}"
        )
    if more:
        found.append(
            f"{baseline} may be better than it looks beside {_some(more)}: only {base:.0%} of its first ten hits "
            f"are judged, {missed}"
        )
    return found


def _some(labels: Sequence[str]) -> str:
    """The first few labels."""
    left = len(labels) - SHOWN
    others = f" and {left} other{'s' if left > 1 else ''}" if left > 0 else ""
    return "; ".join(labels[:SHOWN]) + others


def _lsa(model: str) -> list[str]:
    if not model.startswith("lsa"):
        return []
    return ["the vectors are LSA, fitted on these texts; a neural model may rank the strategies in another order"]


def shallow(measures: Sequence[Measure], limit: int) -> list[str]:
    """A notice when the limit is below a cutoff, because the missing results count as misses."""
    cut = [str(measure) for measure in measures if (measure.cutoff or 0) > limit]
    return [f"the limit {limit} is below the cutoff of {', '.join(cut)}"] if cut else []
