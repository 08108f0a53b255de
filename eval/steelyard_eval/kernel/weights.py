"""The weights of a strategy as one vector, and the strategy under another one.

What search may move are the weights of the outermost sums: one set a tier and an intent, since each ranks
queries of its own. Weights of nested fusions belong to the columns. A tier that is one bare signal has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ConfigError
from steelyard.fusion import Bonus, ByIntent, Expr, Layered, Rrf, Term, Tiered, WeightedSum


def weights_of(strategy: Expr) -> tuple[float, ...]:
    """The weights, tier by tier and intent by intent, in the order written; the added bonus of RRF comes last."""
    if isinstance(strategy, Tiered | ByIntent):
        return tuple(weight for child in strategy.children() for weight in weights_of(child))
    if not isinstance(strategy, WeightedSum | Layered | Rrf):
        return ()
    own = tuple(term.weight for term in strategy.terms)
    bonus = _added(strategy)
    return own if bonus is None else (*own, bonus.amount)


def with_weights(strategy: Expr, weights: ArrayLike) -> Expr:
    """The strategy under other weights, in the order of `weights_of`; ConfigError when their number is another."""
    values = np.asarray(weights, dtype=np.float64).tolist()
    size = len(weights_of(strategy))
    if len(values) != size:
        raise ConfigError(f"{len(values)} weights for {strategy}, which has {size}; give one each")
    return _filled(strategy, iter(values))


def _filled(expr: Expr, left: Iterator[float]) -> Expr:
    if isinstance(expr, Tiered):
        return replace(expr, first=_filled(expr.first, left), then=_filled(expr.then, left))
    if isinstance(expr, ByIntent):
        default = _filled(expr.default, left)
        return ByIntent(default, tuple((intent, _filled(case, left)) for intent, case in expr.cases))
    if not isinstance(expr, WeightedSum | Layered | Rrf):
        return expr
    terms = tuple(Term(next(left), term.expr) for term in expr.terms)
    bonus = _added(expr)
    if bonus is None or not isinstance(expr, Rrf):
        return replace(expr, terms=terms)
    return replace(expr, terms=terms, bonus=Bonus(bonus.kind, next(left)))


def _added(expr: Expr) -> Bonus | None:
    """The bonus that is a column of its own; one that multiplies is a factor of the rows."""
    if not isinstance(expr, Rrf) or expr.bonus is None or expr.bonus.kind == "times":
        return None
    return expr.bonus
