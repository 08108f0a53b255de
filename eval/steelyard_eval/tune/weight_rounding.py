"""Rounds weights to the fewest digits that still do what they did; the middle of a plateau has sixteen."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.table.signal_table import SignalTable
from steelyard_eval.recording.replay import replay

DIGITS = range(2, 17)
MOVED = 0.0005
"""How much rounding may move the mean of a metric."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]*\()")
_ENOUGH = 4
"""Numbers of at most so many digits are left as they are."""


def in_two_digits(config: SearchConfig, means: Callable[[SearchConfig], Floats]) -> SearchConfig:
    """The configuration with its weights in two significant digits, or the fewest more that move no metric.

    `means` gives the mean of every metric, float64[M]; none may move by more than `MOVED`.
    """
    before = means(config)
    for digits in DIGITS:
        weights = [float(f"{weight:.{digits}g}") for weight in config.strategy.weights]
        shorter = config.with_strategy(config.strategy.with_weights(weights))
        if shorter == config or np.abs(means(shorter) - before).max() <= MOVED:
            return shorter
    return config


def brief(table: SignalTable, config: SearchConfig) -> SearchConfig:
    """The configuration with long numbers in the fewest significant digits that change no ranking.

    Every ranked list of the recording stays the same, entry by entry.
    """
    text = str(config.strategy)
    for digits in DIGITS:
        shorter = rounded(text, digits)
        if shorter == text:
            return config
        candidate = config.with_strategy(parse_strategy(shorter, config.strategy.signals()))
        if _alike(table, config, candidate):
            return candidate
    return config


def rounded(text: str, digits: int) -> str:
    """A strategy's text with every number of more than four significant digits in so many of them.

    >>> rounded("rrf(0.333333333*fts, bm25, k=61.25)", 2)
    'rrf(0.33*fts, bm25, k=61.25)'
    """
    return _NUMBER.sub(lambda number: _short(number[0], digits), text)


def _short(number: str, digits: int) -> str:
    significant = number.lower().partition("e")[0].replace(".", "").lstrip("0")
    if len(significant) <= max(_ENOUGH, digits) or "." not in number:
        return number
    return np.format_float_positional(float(number), digits, unique=False, fractional=False, trim="-")


def _alike(table: SignalTable, config: SearchConfig, other: SearchConfig) -> bool:
    """Whether two configurations rank every query of a recording alike."""
    one, two = replay(table, config), replay(table, other)
    return np.array_equal(one.ranking.offsets, two.ranking.offsets) and np.array_equal(one.entry, two.entry)
