"""The importance that the author of an entry assigned to it (MoltNet)."""

from __future__ import annotations

import numpy as np

from steelyard.signals.derived import Derived
from steelyard.signals.kinds import Prior
from steelyard.table.signal_table import SignalTable

UNSTATED = 5.0
"""What MoltNet stores when no importance is given."""


@Prior
def importance(table: SignalTable) -> Derived:
    """Score ``importance / 10`` on a 1..10 scale; 0.5 where none is given. Source: MoltNet's document."""
    stated = table.about.numbers["importance"]
    raw = np.where(np.isnan(stated), UNSTATED, stated)[table.entry]
    return Derived(raw / 10.0, "importance / 10", {"importance": raw})
