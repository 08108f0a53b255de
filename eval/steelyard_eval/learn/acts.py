"""The acts that a log may hold. What an act means is fixed here, how much it is worth is learned."""

from __future__ import annotations

import numpy as np

from steelyard.feedback.log import ACTIONS

KINDS = ACTIONS
NEGATIVE_KINDS = frozenset({"dismissed", "failed", "thumbs_down", "none_useful"})
"""Acts that speak against an entry; all others speak for it."""
POSITIVE = np.array([kind not in NEGATIVE_KINDS for kind in KINDS])
"""bool[A]: which kinds speak for an entry."""
EVERYTHING_SHOWN = "none_useful"
"""The act on a whole list: nothing in it was of use."""
WORTH = np.array([1.0 if kind != EVERYTHING_SHOWN else 0.1 for kind in KINDS])
"""float64[A]: what one act counts as. That on a whole list is one act, shared by its ten places."""
CODE = {kind: at for at, kind in enumerate(KINDS)}
