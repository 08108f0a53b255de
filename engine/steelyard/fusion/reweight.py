"""Replaces weights of a weighted sum by the names of its terms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.fusion.base import Expr, Term
from steelyard.fusion.parse import parse_strategy
from steelyard.fusion.weighted_sum import WeightedSum


def term_names(strategy: Expr) -> list[str]:
    """Name the terms of a weighted sum, each by its signal or fusion; any other strategy has none.

    >>> term_names(parse_strategy("weighted_sum(1*rrf(vector, fts), 0.2*recency(half_life=69h))"))
    ['rrf', 'recency']
    """
    return [_name(term) for term in strategy.terms] if isinstance(strategy, WeightedSum) else []


def reweighted(strategy: Expr, weights: Mapping[str, float]) -> Expr:
    """Replace the weights of some terms of a weighted sum, by the names of the terms.

    Raises ConfigError for every name that the strategy does not have or has twice, and for a weight
    out of range.

    >>> str(reweighted(parse_strategy("weighted_sum(1*fts, 0*recency)"), {"recency": 0.2}))
    'weighted_sum(1*fts, 0.2*recency(half_life=365d))'
    """
    names = term_names(strategy)
    unclear = [name for name in weights if names.count(name) != 1]
    if unclear or not isinstance(strategy, WeightedSum):
        listed = ", ".join(f"{shown(name)}{nearest(name, set(names))}" for name in unclear)
        raise ConfigError(f"{strategy} has no single term {listed}; write its weights in the strategy instead")
    if bad := [name for name, weight in weights.items() if not math.isfinite(weight)]:
        raise ConfigError(f"weight {weights[bad[0]]} of {shown(bad[0])} must be a finite number")
    terms = tuple(Term(weights.get(_name(term), term.weight), term.expr) for term in strategy.terms)
    return parse_strategy(str(replace(strategy, terms=terms)))  # the parser checks the weights


def _name(term: Term) -> str:
    return str(term.expr).partition("(")[0]
