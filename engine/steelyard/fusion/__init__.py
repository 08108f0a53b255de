"""Strategies combine signals into one score. `parse_strategy` reads their text.

``fuse(table, strategy)`` computes the scores of a table, both in live search and in replay.
"""

from __future__ import annotations

from steelyard.base.arrays import Floats
from steelyard.fusion.node import RECIPROCAL, Available, Description, Expr, Fallback, Linear, Term
from steelyard.fusion.parse import (
    FAMILIES,
    Change,
    all_variants,
    changes,
    leaves,
    near_variants,
    parse_strategy,
    replaced,
    reweighted,
    strategy_reader,
    term_names,
)
from steelyard.fusion.plan import Branch, Column, Plan
from steelyard.fusion.progress import Progress
from steelyard.fusion.routing import ByIntent, intents_of
from steelyard.fusion.signal import Signal
from steelyard.table.signal_table import SignalTable

__all__ = [
    "FAMILIES",
    "RECIPROCAL",
    "Available",
    "Branch",
    "ByIntent",
    "Change",
    "Column",
    "Description",
    "Expr",
    "Fallback",
    "Linear",
    "Plan",
    "Progress",
    "Signal",
    "Term",
    "all_variants",
    "changes",
    "compile_plan",
    "fuse",
    "intents_of",
    "leaves",
    "near_variants",
    "parse_strategy",
    "replaced",
    "reweighted",
    "strategy_reader",
    "term_names",
]


def compile_plan(table: SignalTable, strategy: Expr) -> Plan:
    """Compile a strategy over a table to its plan: derived columns, weights, factors and row masks.

    Raises ConfigError when the table lacks a signal that one of its queries needs.
    """
    for name, queries in strategy.needs(table, ()).items():
        if queries.any():
            table.column(name)
    return strategy.compile(table, strategy.everywhere(table))


def fuse(table: SignalTable, strategy: Expr) -> Floats:
    """Score every row that a strategy ranks; float64[N], NaN for the others.

    Pure and vectorised over queries: the score of a row depends only on the rows of its own query.
    Raises ConfigError when the table lacks a signal that one of its queries needs.
    """
    return compile_plan(table, strategy).scores()
