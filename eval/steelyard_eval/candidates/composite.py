"""The value that candidates are chosen by: a mean over several depths, smoothed with neighbouring weights.

One metric of one short list is noisy. The composite is the mean of nDCG at 10, 20 and 100 and of AP at 100, each
brought to the spread of nDCG@10, then averaged over neighbouring weights. It correlates with nDCG@10 on unseen
queries better than nDCG@10 on the labelled ones does: docs/tuning.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Floats
from steelyard_eval.measures.metrics import Measure

METRIC = Measure("nDCG", 10)
PARTS: Mapping[Measure, float] = {
    METRIC: 1.0,
    Measure("nDCG", 20): 1.09,
    Measure("nDCG", 100): 1.25,
    Measure("AP", 100): 1.06,
}
"""With the standard deviation of nDCG@10's differences over its own, as measured on public collections."""
DEEPEST = 100
WIDTH = 0.25
"""Of the Gaussian that averages along the weight, on the scale of `stretched`."""


def parts_for(metric: Measure) -> Mapping[Measure, float]:
    """The parts and their factors; a metric other than nDCG@10 is judged by itself, for no factors are known."""
    return PARTS if metric == METRIC else {metric: 1.0}


def composite(values: Mapping[Measure, NDArray[np.floating]], parts: Mapping[Measure, float]) -> Floats:
    """float64[..., n]: the mean of the parts, each times its factor."""
    total: Floats = np.sum([factor * values[part] for part, factor in parts.items()], axis=0, dtype=np.float64)
    return total / len(parts)


def stretched(share: Floats) -> Floats:
    """A weight's share of two, 0 to 1, on a scale where equal steps change rankings about equally."""
    return np.asarray(np.log((share + 0.03) / (1 - share + 0.03)), dtype=np.float64)


def smoothing(shares: Floats) -> Floats:
    """float64[W, W]: what each weight takes of its neighbours; rows sum to 1."""
    place = stretched(shares)
    pull = np.exp(-0.5 * ((place[:, None] - place[None, :]) / WIDTH) ** 2)
    return np.asarray(pull / pull.sum(axis=1, keepdims=True), dtype=np.float64)
