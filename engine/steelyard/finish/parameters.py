"""Reads the parameters of a finish stage, which stand in parentheses; ValueError for what cannot stand there."""

from __future__ import annotations

from collections.abc import Collection

from steelyard.grammar import Item

LONGEST = 1_000_000_000
"""The largest length a stage can name; far beyond any list, and small enough for numpy's integers."""


def whole_number(value: object, low: int = 1, high: int = LONGEST) -> int:
    """A whole number from `low` to `high`."""
    if not isinstance(value, float) or not low <= value <= high or value != int(value):
        raise ValueError
    return int(value)


def name_of(item: Item, valid: Collection[str]) -> str:
    """One of the valid names, and nothing beside it."""
    if item.weight is not None or item.call.items or item.call.options or item.call.name not in valid:
        raise ValueError
    return item.call.name
