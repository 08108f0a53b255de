"""The discrete parameters of a search: everything that is tuned but its weights.

A shape is a strategy with one choice of the parameters of its families (normalisation, k, threshold, half-life);
a setting is a shape with a choice of depth. The weights of each setting are searched exactly; the settings
themselves are listed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import Expr, all_variants, near_variants

MOST = 500
DEPTHS = (1.0, 0.5, 2.0)
"""Times the depth of every retriever; never less than the limit."""


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

    Where there are more than `most` together, those that differ in a single parameter.
    """
    together = list(itertools.islice(all_variants(strategy), most + 1))
    return list(dict.fromkeys([strategy, *(together if len(together) <= most else near_variants(strategy))]))


def refuse_fixed(strategy: Expr) -> None:
    """ConfigError when there is nothing to tune, neither a weight nor a parameter of the strategy."""
    if len(shapes(strategy)) == 1 and len(strategy.weights) < 2:
        raise ConfigError(
            f"{strategy} has nothing to tune; name a strategy with weights, such as rrf(fts, vector)"
        )
