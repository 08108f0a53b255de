"""Normalisations: they bring scores of different kinds onto one scale, within each query.

Every function takes the table, a column and the rows where it has a value (bool[N]), and returns a column
that is 0 in the other rows: an entry that a retriever did not return adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.fusion.plan import Column
from steelyard.table.signal_table import SignalTable, count_rows, per_query, ranks


def none(table: SignalTable, column: Column, rows: Bools) -> Column:
    """Leave the values unchanged."""
    return _on(column, rows, column.values, column.formula, dict(column.inputs))


def maximum(table: SignalTable, column: Column, rows: Bools) -> Column:
    """Divide by the maximum; a list whose maximum is not positive contributes 0 (as EchoVault does)."""
    top = per_query(table, rows, np.maximum, column.values, 0.0)[table.query]
    values = np.where(top > 0, column.values / np.where(top > 0, top, 1.0), 0.0)
    return _on(column, rows, values, f"{column.label} / max", {column.label: column.values, "max": top})


def minmax(table: SignalTable, column: Column, rows: Bools) -> Column:
    """Scale to 0..1 by ``(x - min) / (max - min)``; in a list of equal values all become 1."""
    top = per_query(table, rows, np.maximum, column.values, 0.0)[table.query]
    low = per_query(table, rows, np.minimum, column.values, 0.0)[table.query]
    spread = top - low
    values = np.where(spread > 0, (column.values - low) / np.where(spread > 0, spread, 1.0), 1.0)
    inputs = {column.label: column.values, "min": low, "max": top}
    return _on(column, rows, values, f"({column.label} - min) / (max - min)", inputs)


def zscore(table: SignalTable, column: Column, rows: Bools) -> Column:
    """Standardise by ``(x - mean) / sd``, the population's deviation; in a list of equal values all become 0."""
    count = np.maximum(count_rows(table, rows), 1)
    mean = (per_query(table, rows, np.add, column.values, 0.0) / count)[table.query]
    away = column.values - mean
    widest = per_query(table, rows, np.maximum, np.abs(away), 0.0)[table.query]
    unit = np.where(widest > 1e100, widest, 1.0)  # squares overflow beyond 1e154
    square = (away / unit) * (away / unit)
    spread = unit * np.sqrt(per_query(table, rows, np.add, square, 0.0) / count)[table.query]
    top, low = (per_query(table, rows, end, column.values, 0.0)[table.query] for end in (np.maximum, np.minimum))
    differ = (top > low) & (spread > 0)  # equal values may lie a rounding error away from their mean
    values = np.where(differ, away / np.where(differ, spread, 1.0), 0.0)
    inputs = {column.label: column.values, "mean": mean, "sd": spread}
    return _on(column, rows, values, f"({column.label} - mean) / sd", inputs)


def share_of_rank(table: SignalTable, column: Column, rows: Bools) -> Column:
    """Replace values by ``(n - rank + 1) / n`` in a list of n: 1 for the first, 1/n for the last."""
    place = ranks(table, column.values, rows)
    count = count_rows(table, rows)[table.query]
    values = (count - place + 1) / np.maximum(count, 1)
    inputs = {f"rank in {column.label}": place, "n": count.astype(np.float64)}
    return _on(column, rows, values, "(n - rank + 1) / n", inputs)


def _on(column: Column, rows: Bools, values: Floats, formula: str, inputs: dict[str, Floats]) -> Column:
    return Column(column.label, np.where(rows, values, 0.0), formula, inputs, column.inner)


NORMALIZERS: dict[str, Callable[[SignalTable, Column, Bools], Column]] = {
    "none": none,
    "max": maximum,
    "minmax": minmax,
    "zscore": zscore,
    "rank": share_of_rank,
}
