"""Rounds weights to the fewest digits that still rank every query alike; the middle of a plateau has sixteen."""

from __future__ import annotations

import re

import numpy as np

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.table.signal_table import SignalTable
from steelyard_eval.recording.replay import replay

DIGITS = range(2, 17)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]*\()")
_ENOUGH = 4
"""Numbers of at most so many digits are left as they are."""


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
    return _NUMBER.sub(lambda found: _short(found[0], digits), text)


def _short(number: str, digits: int) -> str:
    significant = number.lower().partition("e")[0].replace(".", "").lstrip("0")
    if len(significant) <= max(_ENOUGH, digits) or "." not in number:
        return number
    return np.format_float_positional(float(number), digits, unique=False, fractional=False, trim="-")


def _alike(table: SignalTable, config: SearchConfig, other: SearchConfig) -> bool:
    """Whether two configurations rank every query of a recording alike."""
    one, two = replay(table, config), replay(table, other)
    return np.array_equal(one.ranking.offsets, two.ranking.offsets) and np.array_equal(one.entry, two.entry)
