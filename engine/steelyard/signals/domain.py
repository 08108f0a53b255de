"""Whether an entry has the query's domain (Soleri)."""

from __future__ import annotations

import numpy as np

from steelyard.signals.derived import Derived
from steelyard.signals.kinds import Prior
from steelyard.table.signal_table import SignalTable


@Prior
def domain(table: SignalTable) -> Derived:
    """Score 1.0 when the query names a domain and the entry has the same, else 0.0. Source: Soleri's document."""
    asked, about = table.asked.labels["domain"], table.about.labels["domain"]
    same = asked.codes[table.query] == about.in_terms_of(asked)[table.entry]
    values = same & ~asked.equal("")[table.query]
    return Derived(values.astype(np.float64), "1 when the query's domain equals the entry's, else 0")
