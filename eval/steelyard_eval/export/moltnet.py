"""MoltNet: arguments of its search function, ``diary_search``.

``w_relevance * rrf + w_recency * 0.99^hours + w_importance * importance / 10``, with RRF over the vector list and
the full-text list, both of weight 1. Source: MoltNet's document, scoring model; the decay and the ranges stand in
the function it links to. Its API takes weights of 0 to 1: larger ones are divided by the largest, which multiplies
every score by one number and so changes no order.
"""

from __future__ import annotations

import math

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import RECIPROCAL, Linear, Signal, Term
from steelyard.grammar import Duration
from steelyard_eval.export.base import Lost, Parts, Target
from steelyard_eval.export.dates import date_of
from steelyard_eval.export.hybrid import weights_of, whole, with_priors

HALF_LIFE_HOURS = math.log(0.5) / math.log(0.99)
"""68.97: the half-life of 0.99 per hour."""
POOL = 2
MAX_LIMIT = 100
MAX_K = 2**31 - 1
_ROUNDED = 0.1  # hours: 69h is how the half-life is written


def write(config: SearchConfig) -> Parts:
    """w_relevance, w_recency, w_importance, rrf_k and limit."""
    retrievers, priors = with_priors(config.effective)
    if len(retrievers) != 1:
        raise Lost(f"{len(retrievers)} terms find entries: its relevance is one rrf(vector, fts)")
    relevance, k = _relevance(retrievers[0])
    weights = {"w_relevance": relevance, "w_recency": 0.0, "w_importance": 0.0}
    for term in priors:
        weights[_prior(term)] += term.weight
    if not any(weights.values()):
        raise Lost("all weights are 0, so nothing decides the order")
    largest = max(1.0, *weights.values())
    parts = {
        **{name: weight / largest for name, weight in weights.items()},
        "rrf_k": whole(k, "k", 0, MAX_K),
        "limit": whole(config.limit, "limit", 1, MAX_LIMIT),
    }
    return parts, _notes(config, any(_from_update(term) for term in priors), largest)


def _relevance(term: Term) -> tuple[float, float]:
    """The weight of the relevance term, and k. Equal weights inside RRF multiply the whole term."""
    rrf = term.expr.describe()
    if not isinstance(rrf, Linear) or rrf.scale != RECIPROCAL:
        raise Lost(f"{term.expr} as relevance: it is one rrf(vector, fts)")
    if rrf.beyond:
        raise Lost(rrf.beyond)
    lists = weights_of(rrf.terms)
    if set(lists) != {"vector", "fts"}:
        raise Lost(f"rrf over {', '.join(lists)}: it fuses vector and fts, no more and no less")
    if lists["vector"] != lists["fts"]:
        raise Lost("its RRF has no weights: vector and fts count the same")
    return term.weight * lists["fts"], rrf.k


def _prior(term: Term) -> str:
    expr = term.expr
    if expr == Signal("importance"):
        return "w_importance"
    if not isinstance(expr, Signal) or expr.name != "recency":
        raise Lost(f"{expr} is no part of its score; it adds recency and importance only")
    date_of(expr)
    half_life = expr.option("half_life")
    if not isinstance(half_life, Duration) or abs(half_life.seconds / 3600 - HALF_LIFE_HOURS) > _ROUNDED:
        raise Lost(f"half_life={half_life}: its decay is fixed at 0.99 per hour, a half-life of 69h")
    return "w_recency"


def _from_update(term: Term) -> bool:
    """Whether recency counts, and not from the last access as it does there."""
    return bool(term.weight) and isinstance(term.expr, Signal) and term.expr.option("since") == "update"


def _notes(config: SearchConfig, updated: bool, largest: float) -> list[str]:
    notes = [
        f"lists are {POOL} x limit = {POOL * config.limit} deep there; {name} was tuned at depth {depth}"
        for name, depth in config.depths.items()
        if name in ("vector", "fts") and depth != POOL * config.limit
    ]
    if updated:
        notes.append("its recency runs from the last access, else creation; here from the update")
    if largest > 1:
        notes.append("weights are divided by the largest, since its API takes 0 to 1; no order changes")
    return notes


TARGET = Target(
    "moltnet",
    "MoltNet's document, scoring model: arguments of diary_search",
    "tune weighted_sum(1*rrf(vector, fts, k=60), 0*recency(half_life=69h, since=access), 0*importance)",
    write,
)
