"""Groups of queries that vary together because they share a cause; a query without a group is its own unit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.base.arrays import Indices
from steelyard.memory.query import Query

Unit = tuple[str, str]
"""``("group", name)`` or ``("query", id)``, so that a group and a query of the same name differ."""


def unit_of(query: Query) -> Unit:
    """Return the unit that a query belongs to."""
    return ("group", query.group) if query.group else ("query", query.id)


def units(queries: Sequence[Query]) -> list[Unit] | None:
    """Return the unit of each query, for resampling; None when no query has a group."""
    return [unit_of(query) for query in queries] if any(query.group for query in queries) else None


def unit_numbers(queries: Sequence[Query]) -> Indices:
    """Number the unit of each query, from 0 in the order of first appearance; int64[Q]."""
    known: dict[Unit, int] = {}
    return np.array([known.setdefault(unit_of(query), len(known)) for query in queries], dtype=np.int64)
