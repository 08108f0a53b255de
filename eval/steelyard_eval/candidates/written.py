"""The chosen configuration as its file has it: no signals whose facts the data lacks, the length asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config.search_config import SearchConfig
from steelyard.finish import Cut
from steelyard.fusion import Expr, leaves
from steelyard.signals import PRIORS
from steelyard.table.signal_table import SignalTable
from steelyard_eval.result.structs import Said

DIGITS = range(2, 17)
MAX_METRIC_CHANGE = 0.0005
"""How much shorter writing may move the mean of a metric."""


def is_idle(table: SignalTable, values: Floats) -> bool:
    """Whether a signal, float64[N], is the same for all candidates of every query."""
    begins = table.offsets[:-1][np.diff(table.offsets) > 0]
    if not len(begins):
        return True
    return bool((np.maximum.reduceat(values, begins) == np.minimum.reduceat(values, begins)).all())


def constant_signals(table: SignalTable, strategy: Expr) -> list[str]:
    """The derived signals in a strategy that are the same for all candidates of every query, by name."""
    every = np.ones(len(table), dtype=bool)
    priors = [leaf for leaf in leaves(strategy) if leaf.name in PRIORS and PRIORS[leaf.name].reads is not None]
    columns = [(leaf.name, leaf.compile(table, every).branches[0].columns[0].values) for leaf in priors]
    busy = {name for name, values in columns if not is_idle(table, values)}
    return sorted({name for name, _ in columns} - busy)


def simplify_config(
    table: SignalTable, config: SearchConfig, means: Callable[[SearchConfig], Floats]
) -> SearchConfig:
    """Without a guarded cut, and without constant signals where no metric moves more than rounding may.

    `means` gives the mean of every metric, float64[M]. A signal that is equal for all candidates still moves some
    where scores are compared with a fixed one, as those of Soleri's memories are.
    """
    config = without_guarded_cut(config)
    idle = constant_signals(table, config.strategy)
    if not idle:
        return config
    before = means(config)
    for name in idle:
        left = config.strategy.without({name})
        if left is not None and np.abs(means(config.with_strategy(left)) - before).max() <= MAX_METRIC_CHANGE:
            config = config.with_strategy(left)
    return config


def without_guarded_cut(config: SearchConfig) -> SearchConfig:
    """The configuration whose lists are never longer than the limit: without Soleri's guard of small vaults."""
    bare = [Cut(stage.limit) if isinstance(stage, Cut) else stage for stage in config.finish]
    return replace(config, finish=tuple(bare))


def idle_notice(names: Iterable[str], chosen: SearchConfig | None) -> list[Said]:
    """The notice on signals that are not in what was chosen, each with what it reads; none without any."""
    left_out = [name for name in names if chosen is None or name not in chosen.effective.signals()]
    told = [f"{name} ({reads})" if (reads := PRIORS[name].reads) else name for name in left_out]
    return [Said("idle", {"signals": told})] if told else []


def round_weights(config: SearchConfig, means: Callable[[SearchConfig], Floats]) -> SearchConfig:
    """The configuration with its weights in two significant digits, or the fewest more that move no metric.

    `means` gives the mean of every metric, float64[M]; none may move by more than `MAX_METRIC_CHANGE`.
    """
    before = means(config)
    for digits in DIGITS:
        weights = [float(f"{weight:.{digits}g}") for weight in config.strategy.weights]
        shorter = config.with_strategy(config.strategy.with_weights(weights))
        if shorter == config or np.abs(means(shorter) - before).max() <= MAX_METRIC_CHANGE:
            return shorter
    return config
