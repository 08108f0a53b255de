"""The acts that a log may hold. What an act means is fixed here, how much it is worth is learned."""

from __future__ import annotations

import numpy as np

from steelyard.feedback import ACTIONS

KINDS = ACTIONS
NEGATIVE_KINDS = frozenset({"dismissed", "failed", "thumbs_down", "none_useful"})
"""Acts that speak against an entry; all others speak for it."""
POSITIVE = np.array([kind not in NEGATIVE_KINDS for kind in KINDS])
"""bool[A]: which kinds speak for an entry."""
EVERYTHING_SHOWN = "none_useful"
"""The act on a whole list: nothing in it was of use."""
CODE = {kind: at for at, kind in enumerate(KINDS)}
