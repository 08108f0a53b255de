"""A signal in one file: whether an entry was changed after it was written."""

from __future__ import annotations

import numpy as np

from steelyard.signals.formulas import DerivedSignal, SignalValues
from steelyard.table.signal_table import SignalTable


@DerivedSignal
def revised(table: SignalTable) -> SignalValues:
    """1 for an entry that was updated after it was created, 0 for the others and where a date is missing."""
    facts = table.about.numbers
    later = facts["updated_at"] > facts["created_at"]  # a comparison with NaN is False
    values = later[table.entry].astype(np.float64)
    return SignalValues(values, "1 when updated after creation", {"revised": values})
