"""The order in which pairs are judged, and what the judged ones show of all pairs: priority sampling.

A pair's key is ``value / u``, where u is drawn from (0, 1] once, by the seed. Pairs are judged by falling key.
After n of them each judged pair of value x stands for ``1 / min(1, x / t)`` pairs like it, where t is the key of
the next one. A sum over all pairs that is estimated in this way is unbiased for every n (Duffield, Lund and
Thorup, JACM 54, 2007). It needs the fewest labels where a pair's value is in proportion to how much the pair can
move the sum (Schnabel, Swaminathan, Frazier and Joachims, ICTIR 2016).
"""

from __future__ import annotations

import numpy as np

from steelyard.base.arrays import Floats, Indices


def keys(values: Floats, seed: int) -> Floats:
    """float64[P]: the key of every pair, from its value (float64[P], above 0)."""
    return values / (1.0 - np.random.default_rng(seed).random(len(values)))


def falling(keys: Floats) -> Indices:
    """int64[P]: the pairs in the order in which they are judged."""
    return np.argsort(-keys, kind="stable").astype(np.int64)


def weights(values: Floats, keys: Floats, count: int) -> Floats:
    """float64[P]: how many pairs each stands for when the first `count` are judged; 0 for those that are not.

    >>> weights(np.array([1.0, 1.0]), np.array([2.0, 4.0]), 1).tolist()
    [0.0, 2.0]
    """
    order = falling(keys)
    weight = np.zeros(len(values))
    judged = order[:count]
    weight[judged] = 1.0
    if count < len(order):
        weight[judged] = 1.0 / np.minimum(1.0, values[judged] / keys[order[count]])
    return weight
