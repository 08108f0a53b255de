"""The discrete parameters of a search: everything that is tuned but its weights.

A shape is a strategy with one choice of the parameters of its families (normalisation, k, threshold, half-life);
a setting is a shape with a choice of depth. The weights of each setting are searched exactly; the settings
themselves are listed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import Expr, all_variants, near_variants
from steelyard.node import Option
from steelyard.retrievers import RETRIEVER_KINDS
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Said

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


RECORDED = 1000
"""Queries that may be searched again to try parameters of retrievers, each value of which is a recording."""


def of_retrievers(config: SearchConfig, queries: int) -> list[SearchConfig]:
    """The configuration under other parameters of its retrievers, one at a time, as they declare them.

    None where that many `queries` would be searched more than `RECORDED` times in all.
    """
    tried = []
    for name, parameter in _parameters(config):
        for value in parameter.tried:
            settings = config.retrievers[name]
            changed = replace(settings, parameters={**settings.parameters, parameter.name: value})
            other = replace(config, retrievers={**config.retrievers, name: changed})
            if _startable(other, name):
                tried.append(other)
    return tried if len(tried) * queries <= RECORDED else []


def recorded_alike(settings: Sequence[SearchConfig]) -> list[list[SearchConfig]]:
    """The settings in order, those together whose retrievers have the same parameters."""
    alike = itertools.groupby(settings, key=lambda each: [kept.parameters for kept in each.retrievers.values()])
    return [list(part) for _, part in alike]


def fixed_parameters(config: SearchConfig, tried: Sequence[SearchConfig]) -> list[str]:
    """The parameters of its retrievers that no other setting has another value of, as ``graph.hops``."""
    seen = {
        f"{name}.{parameter}"
        for other in tried
        for name, kept in other.retrievers.items()
        for parameter, value in kept.parameters.items()
        if config.retrievers[name].parameters.get(parameter) != value
    }
    return [full for name, parameter in _parameters(config) if (full := f"{name}.{parameter.name}") not in seen]


def _parameters(config: SearchConfig) -> list[tuple[str, Option]]:
    read = [name for name in config.retrievers if name in config.effective.signals() and name in RETRIEVER_KINDS]
    return [(name, parameter) for name in read for parameter in RETRIEVER_KINDS[name].parameters]


def _startable(config: SearchConfig, name: str) -> bool:
    """Whether the lists that a retriever starts from are as deep as it reads them."""
    try:
        config.before(name)
    except ConfigError:
        return False
    return True


def depths(config: SearchConfig) -> list[SearchConfig]:
    """The configuration at every depth, its own first, without repetition."""
    deepened = [_deepened(config, factor) for factor in DEPTHS]
    return [deeper for i, deeper in enumerate(deepened) if deeper not in deepened[:i]]


def _deepened(config: SearchConfig, factor: float) -> SearchConfig:
    """The configuration with every depth times a factor, rounded up; depths that are not limited stay so."""
    retrievers = {
        name: kept if kept.depth is None else replace(kept, depth=_depth(kept.depth, factor, config.limit))
        for name, kept in config.retrievers.items()
    }
    return replace(config, retrievers=retrievers)


def _depth(depth: int, factor: float, limit: int) -> int:
    """A depth times a factor; a list shorter than what is shown would be no choice anybody makes."""
    return max(math.ceil(depth * factor), min(depth, limit))


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


def not_tried(left_out: Sequence[Said], fixed: Sequence[str]) -> list[Said]:
    """The notices of what was not tried, each with its reason, and of parameters kept as they are."""
    told: list[Said] = [Said("not_tried", {"what": [say(one) for one in left_out]})] if left_out else []
    return [*told, *([Said("fixed", {"settings": list(fixed)})] if fixed else [])]
