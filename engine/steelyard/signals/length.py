"""Short texts count a little less (system-spec-kit)."""

from __future__ import annotations

from functools import partial

import numpy as np

from steelyard.signals.derived import Derived
from steelyard.signals.kinds import Prior
from steelyard.table.signal_table import SignalTable

SHORT, LEAST = 100.0, 0.8


@partial(Prior, factor=True, reads="lengths of texts")
def length(table: SignalTable) -> Derived:
    """``0.8 + 0.2 * characters / 100`` for a text of fewer than 100 characters, else 1. Source: REQ-008.

    White space around the text does not count.
    """
    characters = np.nan_to_num(table.about.numbers["length"])[table.entry]
    values = LEAST + (1.0 - LEAST) * np.minimum(1.0, characters / SHORT)
    return Derived(values, "0.8 + 0.2 * characters / 100, at most 1", {"characters": characters})
