"""Evaluates many weights over recordings larger than memory, one block of queries at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from steelyard.base.arrays import Floats
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import Expr
from steelyard.table.signal_table import SignalTable
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.weights.kernel.form import Form
from steelyard_eval.weights.kernel.kernel import Kernel

BLOCK = 1000
"""The default number of queries in a block."""


def streamed_means(
    table: SignalTable,
    config: SearchConfig,
    strategy: Expr,
    weights: ArrayLike,
    judgments: Judgments,
    measures: Iterable[Measure],
    *,
    block: int = BLOCK,
    threads: int | None = None,
) -> dict[Measure, Floats]:
    """Compute means of a strategy under many weights, reading one block of queries at a time.

    Only the rows of `block` queries are in memory at a time, so the table may be memory-mapped and larger than
    memory. The bits do not depend on `block`, because queries are added one after another.

    Parameters
    ----------
    weights : float[W, K]
        Rows of weights, each in the order of the strategy's own.
    block : int
        Queries in a block.
    threads : int, optional
        See `Kernel.means`.

    Returns
    -------
    dict of Measure to float64[W]
    """
    asked = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    chosen = tuple(measures)
    totals = np.zeros((len(asked), len(chosen)))
    for begin in range(0, len(table.queries), block):
        end = min(begin + block, len(table.queries))
        form = Form.of(table.slice(begin, end), config, strategy, judgments.slice(begin, end))
        Kernel.of(form, chosen).add(form.spread(asked), totals, threads)
    means = totals / max(len(table.queries), 1)
    return {measure: means[:, at].copy() for at, measure in enumerate(chosen)}
