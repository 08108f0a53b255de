"""The float64 answer for weights that search has found: a replay, as every number that is reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from numpy.typing import ArrayLike

from steelyard.config import SearchConfig
from steelyard.fusion import Expr
from steelyard.table import Floats, SignalTable
from steelyard_eval.kernel.weights import with_weights
from steelyard_eval.metrics import Judgments, Measure
from steelyard_eval.replay import replay


def exact(
    table: SignalTable,
    config: SearchConfig,
    strategy: Expr,
    weights: ArrayLike,
    judgments: Judgments,
    measures: Iterable[Measure],
) -> dict[Measure, Floats]:
    """float64[Q] for every measure, of the strategy under weights in the order of `weights_of`."""
    chosen = replace(config, strategy=with_weights(strategy, weights), by_intent={})
    return replay(table, chosen).metrics(judgments, measures)
