"""Normalisations: they bring scores of different kinds onto one scale, within each query.

Every function takes the table, a column and the rows where it has a value (bool[N]), and returns a column
that is 0 in the other rows: an entry that a retriever did not return adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.base.errors import ConfigError
from steelyard.fusion.plan import Column
from steelyard.retrievers import RETRIEVER_KINDS, SCORER_KINDS
from steelyard.signals import PRIORS
from steelyard.table.facts import ENDS
from steelyard.table.signal_table import SignalTable, count_rows, per_query, ranks

if TYPE_CHECKING:
    from steelyard.fusion.node import Expr


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
    low, top = (per_query(table, rows, end, column.values, 0.0)[table.query] for end in (np.minimum, np.maximum))
    return _between(column, rows, {"min": low, "max": top}, 1.0)


def zscore(table: SignalTable, column: Column, rows: Bools) -> Column:
    """Standardise by ``(x - mean) / sd``, the population's deviation; in a list of equal values all become 0."""
    mean, spread, away = _moments(table, column, rows)
    values = np.where(spread > 0, away / np.where(spread > 0, spread, 1.0), 0.0)
    inputs = {column.label: column.values, "mean": mean, "sd": spread}
    return _on(column, rows, values, f"({column.label} - mean) / sd", inputs)


def dbsf(table: SignalTable, column: Column, rows: Bools) -> Column:
    """Scale by ``(x - (mean - 3 sd)) / (6 sd)``, the sample's deviation; in a list of equal values all become 0.5.

    Distribution-based score fusion, as Qdrant computes it (`score_fusion.rs`, 74f3e85): nothing is clipped.
    """
    mean, population, away = _moments(table, column, rows)
    count = count_rows(table, rows)[table.query]
    spread = population * np.sqrt(count / np.maximum(count - 1, 1))
    values = np.where(spread > 0, 0.5 + away / np.where(spread > 0, 6.0 * spread, 1.0), 0.5)
    inputs = {column.label: column.values, "mean": mean, "sd": spread}
    return _on(column, rows, values, f"({column.label} - mean + 3 sd) / (6 sd)", inputs)


def _moments(table: SignalTable, column: Column, rows: Bools) -> tuple[Floats, Floats, Floats]:
    """float64[N] each: mean, population's deviation (0 where all values are equal), and distance from the mean."""
    count = np.maximum(count_rows(table, rows), 1)
    mean = (per_query(table, rows, np.add, column.values, 0.0) / count)[table.query]
    away = column.values - mean
    widest = per_query(table, rows, np.maximum, np.abs(away), 0.0)[table.query]
    unit = np.where(widest > 1e100, widest, 1.0)  # squares overflow beyond 1e154
    square = (away / unit) * (away / unit)
    spread = unit * np.sqrt(per_query(table, rows, np.add, square, 0.0) / count)[table.query]
    top, low = (per_query(table, rows, end, column.values, 0.0)[table.query] for end in (np.maximum, np.minimum))
    # Equal values may lie a rounding error away from their mean.
    return mean, np.where(top > low, spread, 0.0), away


def share_of_rank(table: SignalTable, column: Column, rows: Bools) -> Column:
    """Replace values by ``(n - rank + 1) / n`` in a list of n: 1 for the first, 1/n for the last."""
    place = ranks(table, column.values, rows, column.only_list(table))
    count = count_rows(table, rows)[table.query]
    values = (count - place + 1) / np.maximum(count, 1)
    inputs = {f"rank in {column.label}": place, "n": count.astype(np.float64)}
    return _on(column, rows, values, "(n - rank + 1) / n", inputs)


def theoretical(table: SignalTable, column: Column, rows: Bools) -> Column:
    """Scale to 0..1 by ``(x - low) / (high - low)`` between the ends of the formula, whatever else was found.

    The ends of a cosine are -1 and 1; those of bm25 are 0 and ``sum of idf * (k1 + 1)`` over the query's words.
    """
    low, high = ends_of(table, column.label)
    return _between(column, rows, {"low": low, "high": high}, 0.0)


def tmm(table: SignalTable, column: Column, rows: Bools) -> Column:
    """Scale by ``(x - low) / (max - low)``, from the low end of the formula to the list's maximum.

    The theoretical min-max of Bruch, Gai and Ingber (TOIS 42(1), 2023); a weighted sum of two such lists is their
    TM2C2. A list whose maximum is the low end contributes 0.
    """
    low, _ = ends_of(table, column.label)
    top = per_query(table, rows, np.maximum, column.values, 0.0)[table.query]
    return _between(column, rows, {"low": low, "max": top}, 0.0)


def _between(column: Column, rows: Bools, ends: dict[str, Floats], alike: float) -> Column:
    """Scale from the lower of two ends, given by their names, to the upper; `alike` where they are one."""
    (first, low), (last, top) = ends.items()
    spread = top - low
    values = np.where(spread > 0, (column.values - low) / np.where(spread > 0, spread, 1.0), alike)
    formula = f"({column.label} - {first}) / ({last} - {first})"
    return _on(column, rows, values, formula, {column.label: column.values} | ends)


def ends_of(table: SignalTable, label: str) -> tuple[Floats, Floats]:
    """float64[N] each: the ends of a signal's scale for the query of each row; ConfigError where not known."""
    name = label.partition("(")[0]
    unknown = np.full(len(table.queries), np.nan)
    asked = (table.asked.numbers.get(f"{end} {name}", unknown)[table.query] for end in ENDS)
    stated = fixed_ends(name)
    low, high = asked if stated is None else (np.full(len(table), end) for end in stated)
    if np.isnan(low).any() or np.isnan(high).any():
        raise ConfigError(
            f"normalize={' or '.join(WITH_ENDS)} needs the ends of the scale of {name}, which this table does not "
            "know: distances, lifted similarities, SQLite's ranking and lists of other engines have none; record "
            "again, or choose another normalisation"
        )
    return low, high


def fixed_ends(name: str) -> tuple[float, float] | None:
    """The ends that a signal has for every query; None where it has none, or a query's own."""
    if name in SCORER_KINDS:
        return SCORER_KINDS[name].ends
    prior = PRIORS.get(name)
    return (0.0, 1.0) if prior is not None and prior.unit and not prior.factor else None


def has_ends(expr: Expr) -> bool:
    """Whether an expression is a signal whose formula gives the ends of its scale."""
    if expr.children():
        return False
    (name,) = expr.signals()
    kind = RETRIEVER_KINDS.get(name)
    return kind.bounded if kind is not None else fixed_ends(name) is not None


def _on(column: Column, rows: Bools, values: Floats, formula: str, inputs: dict[str, Floats]) -> Column:
    return Column(column.label, np.where(rows, values, 0.0), formula, inputs, column.inner)


NORMALIZERS: dict[str, Callable[[SignalTable, Column, Bools], Column]] = {
    "none": none,
    "max": maximum,
    "minmax": minmax,
    "zscore": zscore,
    "rank": share_of_rank,
    "theoretical": theoretical,
    "tmm": tmm,
    "dbsf": dbsf,
}
WITH_ENDS = ("theoretical", "tmm")
"""Those that need the ends of a signal's scale."""
ABSOLUTE = ("none", "theoretical")
"""Those that say the same of an entry whatever else was found."""
TRIED = ("none", "max", "minmax", "zscore", "rank")
"""Those that tuning tries instead of one another; the others are kept where they are written."""
