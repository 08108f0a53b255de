"""How memories fade: half-lives by type of memory, and the forgetting curve of FSRS (Ye, Su and Cao, 2022)."""

from __future__ import annotations

import numpy as np

from steelyard.base.arrays import Floats

DAY = 86_400.0
HALF_LIVES = {
    "working": 1.0,
    "episodic": 7.0,
    "prospective": 14.0,
    "implicit": 30.0,
    "declarative": 60.0,
    "procedural": 90.0,
    "semantic": 180.0,
    "autobiographical": 365.0,
    "meta-cognitive": np.inf,
}
"""Days in which a memory of each of the nine types fades to a half. Source: the code of system-spec-kit."""
USUAL = "declarative"
"""The type of a memory that names none."""
FSRS_FACTOR, FSRS_DECAY = 19.0 / 81.0, -0.5


def fsrs(days: Floats, stability: Floats) -> Floats:
    """Retrievability of a memory, in 0..1; 0 for a stability that is not positive or a negative time.

    >>> fsrs(np.array([9.0]), np.array([9.0]))
    array([0.9])
    """
    sound = (stability > 0) & (days >= 0)
    base = 1.0 + FSRS_FACTOR * np.where(sound, days, 0.0) / np.where(sound, stability, 1.0)
    return np.where(sound, np.clip(base**FSRS_DECAY, 0.0, 1.0), 0.0)
