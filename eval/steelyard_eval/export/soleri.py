"""Soleri: the table of its six scoring signals.

The total is the sum of ``weight * signal``, and the weights sum to 1. Source: Soleri's document, six scoring
signals and adaptive weights. Weights with another sum are divided by it: that multiplies every score by one
number, so no order of vault entries changes.
"""

from __future__ import annotations

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import RECIPROCAL, Expr, Linear, Signal
from steelyard.grammar import Duration
from steelyard_eval.export.base import Lost, Parts, Target
from steelyard_eval.export.hybrid import Fusion

HALF_LIFE_DAYS = 365
NAMES = {
    "tfidf": "semantic",
    "cosine": "vector",
    "severity": "severity",
    "recency": "temporalDecay",
    "tags": "tagOverlap",
    "domain": "domainMatch",
}
"""Its names of our signals."""


def write(config: SearchConfig) -> Parts:
    """The six weights, under `weights`, and the limit."""
    strategy = config.effective.describe()
    if not isinstance(strategy, Linear) or strategy.scale == RECIPROCAL:
        raise Lost(f"{config.effective} is no weighted sum, and its score is one")
    losses = [why for term in strategy.terms if (why := _why_not(term.expr))]
    if strategy.scale != "none":
        losses.append(f"normalize={strategy.scale} has no counterpart: it adds the signals as they are")
    if not any(term.weight for term in strategy.terms):
        losses.append("all weights are 0, and they must sum to 1")
    if losses:
        raise Lost(*dict.fromkeys(losses))
    table = dict.fromkeys(NAMES.values(), 0.0)
    for term in strategy.terms:
        table[NAMES[_name(term.expr)]] += term.weight
    shares = Fusion("none", table).shares()
    return {"weights": shares, "limit": config.limit}, _notes(table, shares)


def _name(expr: Expr) -> str:
    return expr.name if isinstance(expr, Signal) else ""


def _why_not(expr: Expr) -> str:
    """Why a term is none of the six signals; empty when it is one."""
    name = _name(expr)
    if name not in NAMES:
        hint = {"fts": "; its keyword signal is tfidf", "vector": "; its vector signal is cosine"}.get(name, "")
        return f"{expr} is none of its six signals{hint}"
    half_life = expr.option("half_life") if isinstance(expr, Signal) else None
    if isinstance(expr, Signal) and expr.option("since") == "access":
        return f"{expr}: its decay runs from the last update, not from the last access"
    if isinstance(half_life, Duration) and half_life.seconds != HALF_LIFE_DAYS * 86_400:
        return f"half_life={half_life}: its decay is fixed at a half-life of 365d"
    return ""


def _notes(table: dict[str, float], shares: dict[str, float]) -> list[str]:
    notes = ["after 30 feedback entries it adapts these weights itself"]
    if table != shares:
        notes.append(
            "weights are divided by their sum, since its weights sum to 1; no order of vault entries changes, "
            "their place among memories (a fixed 0.5) may"
        )
    if table["temporalDecay"]:
        notes.append("an entry with valid_until decays by its window there")
    return notes


TARGET = Target(
    "soleri",
    "Soleri's document, six scoring signals",
    "tune weighted_sum over tfidf, cosine, severity, recency(half_life=365d), tags and domain",
    write,
)
