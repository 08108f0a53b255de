"""Signals without a formula: when an entry was created, and 1 (both for the last sorting of system-spec-kit)."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import numpy as np

from steelyard.signals.derived import Derived
from steelyard.signals.kinds import Prior
from steelyard.table.signal_table import SignalTable

FIRST, LAST = (each.replace(tzinfo=UTC).timestamp() for each in (datetime.min, datetime.max))
"""The dates that there are, from the year 1 to the year 9999, seconds UTC."""


@partial(Prior, unit=False, reads="dates")
def created(table: SignalTable) -> Derived:
    """When an entry was created among all dates that there are, in 0..1; an undated one is as new as the query."""
    dates = table.about.numbers["created_at"][table.entry]
    stated = np.where(np.isnan(dates), table.asked.numbers["clock"][table.query], dates)
    values = np.clip((stated - FIRST) / (LAST - FIRST), 0.0, 1.0)
    return Derived(values, "creation among the years 1 to 9999", {"days from 1970": stated / 86_400})


@partial(Prior, reads=None)
def one(table: SignalTable) -> Derived:
    """1 for every entry, which shifts a scale: ``0.5*cosine + 0.5*one`` is (1 + cosine) / 2."""
    return Derived(np.ones(len(table)), "1")
