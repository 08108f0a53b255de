"""Which queries vary together: those of one group share a cause, and a query without a group stands alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.query import Query
from steelyard.table import Indices

Unit = tuple[str, str]
"""``("group", name)`` or ``("query", id)``: a group may be called like a query, and is not that query."""


def unit_of(query: Query) -> Unit:
    """The unit that a query belongs to."""
    return ("group", query.group) if query.group else ("query", query.id)


def units(queries: Sequence[Query]) -> list[Unit] | None:
    """What statistics resample: the unit of each query; None where every query stands alone."""
    return [unit_of(query) for query in queries] if any(query.group for query in queries) else None


def unit_numbers(queries: Sequence[Query]) -> Indices:
    """int64[Q]: a number for the unit of each query, from 0 in the order of their first queries."""
    known: dict[Unit, int] = {}
    return np.array([known.setdefault(unit_of(query), len(known)) for query in queries], dtype=np.int64)
