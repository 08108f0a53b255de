"""Exponential decay with age (Soleri, MoltNet)."""

from __future__ import annotations

import numpy as np

from steelyard.expression import Duration
from steelyard.signals.derived import Derived
from steelyard.table import SignalTable


def recency(table: SignalTable, half_life: Duration) -> Derived:
    """``exp(-ln 2 * age / half_life)`` with the age at the query's clock, in (0, 1].

    Age runs from the last update, else from creation. An entry without a date, or dated after the
    clock, counts as new: 1.0. Source: Soleri's document, temporal decay without a window.
    """
    numbers = table.about.numbers
    born = np.where(np.isnan(numbers["updated_at"]), numbers["created_at"], numbers["updated_at"])
    age = table.asked.numbers["clock"][table.query] - born[table.entry]
    age = np.where(np.isnan(age) | (age < 0), 0.0, age)
    values = np.exp(-np.log(2.0) * age / half_life.seconds)
    return Derived(values, f"exp(-ln 2 * age in days / half-life {half_life})", {"age in days": age / 86_400})
