"""The discrete parameters of a search: everything that is tuned but its weights.

A shape is a strategy with one choice of normalisation, k, threshold, half-life and bonus; a setting is a shape
with a choice of depth. The weights of each setting are searched exactly; the settings themselves are listed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

from steelyard.config import SearchConfig
from steelyard.errors import ConfigError
from steelyard.fusion import Bonus, ByIntent, Expr, Layered, Rrf, Signal, Term, Tiered, WeightedSum, leaves
from steelyard.fusion.normalize import NORMALIZERS
from steelyard.grammar import Duration
from steelyard_eval.kernel import weights_of

MOST = 500
DEPTHS = (1.0, 0.5, 2.0)
"""Times the depth of every retriever; never less than the limit."""
RRF_K = (1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0)
MIN_RESULTS = (1, 3, 5, 10, 20, 50)
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6)
BONUSES = (0.0, 0.05, 0.1, 0.2, 0.4)
HALF_LIVES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Times the half-life that is written."""
UNBOUNDED = frozenset({"fts", "bm25"})
"""Signals on a scale of their own; sums of the others, which lie in 0..1, are not normalised."""


def settings(config: SearchConfig, most: int = MOST) -> list[SearchConfig]:
    """Every shape at every depth, the given configuration first, those of one depth together.

    Where there are more than `most` together, the other depths with the given shape alone.
    """
    every = shapes(config.strategy, most)
    here, *others = depths(config)
    elsewhere = every if len(every) * (1 + len(others)) <= most else every[:1]
    return [here.with_strategy(shape) for shape in every] + [
        other.with_strategy(shape) for other in others for shape in elsewhere
    ]


def depths(config: SearchConfig) -> list[SearchConfig]:
    """The configuration at every depth, its own first, without repetition."""
    found = [_deepened(config, factor) for factor in DEPTHS]
    return [one for at, one in enumerate(found) if one not in found[:at]]


def _deepened(config: SearchConfig, factor: float) -> SearchConfig:
    """The configuration with every depth times a factor, rounded up; depths that are not limited stay so."""
    retrievers = {
        name: one if one.depth is None else replace(one, depth=_depth(one.depth, factor, config.limit))
        for name, one in config.retrievers.items()
    }
    return replace(config, retrievers=retrievers)


def _depth(own: int, factor: float, limit: int) -> int:
    """A depth times a factor; a list shorter than what is shown would be no choice anybody makes."""
    return max(math.ceil(own * factor), min(own, limit))


def shapes(strategy: Expr, most: int = MOST) -> list[Expr]:
    """Every shape of a strategy under its own weights, the given one first, without repetition.

    Where there are more than `most` together, those that differ from the given one in a single parameter.
    """
    together = list(itertools.islice(_variants(strategy), most + 1))
    return list(dict.fromkeys([strategy, *(together if len(together) <= most else _single(strategy))]))


def refuse_fixed(strategy: Expr) -> None:
    """ConfigError when there is nothing to tune, neither a weight nor a parameter of the strategy."""
    if len(shapes(strategy)) == 1 and len(weights_of(strategy)) < 2:
        raise ConfigError(
            f"{strategy} has nothing to tune; name a strategy with weights, such as rrf(fts, vector)"
        )


def _variants(expr: Expr) -> Iterator[Expr]:
    """The shapes of an expression, parameter by parameter of it and of what it holds."""
    options = [list(_variants(child)) for child in expr.children()]
    for children in itertools.product(*options):
        yield from _own(_with_children(expr, children))


def _single(expr: Expr) -> Iterator[Expr]:
    """The shapes that differ from an expression in one parameter."""
    yield from _own(expr)
    children = expr.children()
    for at, child in enumerate(children):
        for other in _single(child):
            yield _with_children(expr, (*children[:at], other, *children[at + 1 :]))


def _own(expr: Expr) -> Iterator[Expr]:
    """An expression with each value of its own parameters."""
    if isinstance(expr, WeightedSum):
        raw = len(expr.terms) > 1 and any(leaf.name in UNBOUNDED for leaf in leaves(expr))
        yield from (replace(expr, normalize=name) for name in (NORMALIZERS if raw else (expr.normalize,)))
    elif isinstance(expr, Rrf):
        bonuses = [expr.bonus]
        if expr.bonus is not None and expr.bonus.kind == "times":
            bonuses = [Bonus("times", amount) for amount in sorted({*BONUSES, expr.bonus.amount})]
        for k in sorted({*RRF_K, expr.k}):
            yield from (replace(expr, k=k, bonus=bonus) for bonus in bonuses)
    elif isinstance(expr, Tiered):
        yield from (replace(expr, min_results=count) for count in sorted({*MIN_RESULTS, expr.min_results}))
    elif isinstance(expr, Layered):
        yield from (replace(expr, threshold=step) for step in sorted({*THRESHOLDS, expr.threshold}))
    elif isinstance(expr, Signal):
        yield from _half_lives(expr)
    else:
        yield expr


def _half_lives(signal: Signal) -> Iterator[Signal]:
    """A signal under each half-life, or as it is when it has none."""
    options = dict(signal.options)
    written = options.get("half_life")
    if not isinstance(written, Duration):
        yield signal
        return
    for factor in HALF_LIVES:
        span = Duration(written.amount * factor, written.unit)
        yield replace(signal, options=tuple((options | {"half_life": span}).items()))


def _with_children(expr: Expr, children: tuple[Expr, ...]) -> Expr:
    if isinstance(expr, WeightedSum | Rrf | Layered):
        terms = tuple(Term(term.weight, child) for term, child in zip(expr.terms, children, strict=True))
        return replace(expr, terms=terms)
    if isinstance(expr, Tiered):
        return Tiered(children[0], children[1], expr.min_results)
    if isinstance(expr, ByIntent):
        return ByIntent(children[0], tuple((i, e) for (i, _), e in zip(expr.cases, children[1:], strict=True)))
    return expr
