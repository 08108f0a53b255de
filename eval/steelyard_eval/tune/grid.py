"""The settings a grid search tries: the same strategy with other weights and other parameters."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from steelyard.errors import ConfigError
from steelyard.fusion import ByIntent, Expr, Layered, Rrf, Term, Tiered, WeightedSum

MOST = 20_000
RRF_K = (10.0, 20.0, 40.0, 60.0, 100.0)
RRF_WEIGHTS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0)
MIN_RESULTS = (1, 3, 5, 10, 20, 50)
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6)
STEPS = {1: 1, 2: 100, 3: 20, 4: 10, 5: 6, 6: 5}
"""How finely a simplex of n weights is divided: weights are multiples of 1 / steps."""


def settings(strategy: Expr) -> list[Expr]:
    """Every setting of the grid, the given strategy first, without repetition.

    Weights of sums and layers lie on a grid over the simplex; RRF varies k and the weights against
    the first list; tiers vary min_results, layers the threshold. Raises ConfigError when there are
    more than 20,000, or none to vary.
    """
    found = dict.fromkeys([strategy, *itertools.islice(_variants(strategy), MOST + 1)])
    if len(found) > MOST:
        raise ConfigError(f"{strategy} has more than {MOST} grid settings; tune a strategy with fewer parameters")
    if len(found) == 1:
        raise ConfigError(
            f"{strategy} has nothing to tune; name a strategy with weights, such as rrf(fts, vector)"
        )
    return list(found)


def _variants(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, WeightedSum | Layered):
        for terms in _each(expr.terms):
            for weights in _simplex(len(terms)):
                weighted = tuple(Term(w, t.expr) for w, t in zip(weights, terms, strict=True))
                if isinstance(expr, WeightedSum):
                    yield replace(expr, terms=weighted)
                else:
                    yield from (replace(expr, terms=weighted, threshold=t) for t in THRESHOLDS)
    elif isinstance(expr, Rrf):
        for terms in _each(expr.terms):
            for rest in itertools.product(RRF_WEIGHTS, repeat=len(terms) - 1):
                weighted = tuple(Term(w, t.expr) for w, t in zip((1.0, *rest), terms, strict=True))
                yield from (replace(expr, terms=weighted, k=k) for k in RRF_K)
    elif isinstance(expr, Tiered):
        for first in _variants(expr.first):
            for then in _variants(expr.then):
                yield from (Tiered(first, then, count) for count in sorted({*MIN_RESULTS, expr.min_results}))
    elif isinstance(expr, ByIntent):
        yield from (replace(expr, default=default) for default in _variants(expr.default))
    else:
        yield expr


def _each(terms: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
    """The terms with every combination of settings of what they hold, one by one: there may be too many."""
    if not terms:
        yield ()
        return
    for expr in _variants(terms[0].expr):
        for rest in _each(terms[1:]):
            yield (Term(terms[0].weight, expr), *rest)


def _simplex(size: int) -> Iterator[tuple[float, ...]]:
    """Weights of `size` terms that sum to 1, in ascending order of the first, then the second ..."""
    steps = STEPS.get(size, 4)
    for cuts in itertools.combinations_with_replacement(range(steps + 1), size - 1):
        parts = [high - low for low, high in itertools.pairwise((0, *cuts, steps))]
        yield tuple(part / steps for part in parts)
