"""The severity of an entry (Soleri)."""

from __future__ import annotations

import numpy as np

from steelyard.signals.derived import Derived
from steelyard.signals.kinds import Prior
from steelyard.table.signal_table import SignalTable

LEVELS = {"critical": 1.0, "warning": 0.7, "suggestion": 0.4}
OTHER = 0.4


@Prior
def severity(table: SignalTable) -> Derived:
    """Score critical 1.0, warning 0.7, suggestion 0.4, and any other label 0.4. Source: Soleri's document."""
    labels = table.about.labels["severity"]
    per_entry = np.full(len(labels.codes), OTHER)
    for label, value in LEVELS.items():
        per_entry[labels.equal(label)] = value
    return Derived(per_entry[table.entry], "critical 1.0, warning 0.7, suggestion 0.4, else 0.4")
