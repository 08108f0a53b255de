"""How important entries still are, by spec-kit's code, which lifts similarities by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.memory.entry import Entry
from steelyard.memory.forgetting import DAY, fsrs

HALF_LIFE = 90.0
"""Days after which the importance of an entry that states no half-life is halved."""


@dataclass(frozen=True)
class Importance:
    """The facts of some entries from which their importance follows, a place each.

    Attributes
    ----------
    stated : float64[n], ``importance / 10``; 0.5 where none is given.
    since : float64[n], seconds UTC of the last review, else of the last update; NaN where there is no date.
    reviewed : bool[n]
    stability, half_life : float64[n], days.
    """

    FIELDS: ClassVar = (
        "importance",
        "updated_at",
        "created_at",
        "half_life_days",
        "review_count",
        "last_review",
        "stability",
    )

    stated: Floats
    since: Floats
    reviewed: Bools
    stability: Floats
    half_life: Floats

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Importance:
        """Read the facts of entries, in their order."""
        reviewed = [bool(e.review_count) and e.last_review is not None for e in entries]
        dates = [
            e.last_review if done else e.updated_at or e.created_at
            for e, done in zip(entries, reviewed, strict=True)
        ]
        return cls(
            np.array([0.5 if e.importance is None else e.importance / 10.0 for e in entries], dtype=np.float64),
            np.array([np.nan if date is None else date for date in dates], dtype=np.float64),
            np.array(reviewed, dtype=bool),
            np.array([e.stability or 1.0 for e in entries], dtype=np.float64),
            np.array([e.half_life_days or HALF_LIFE for e in entries], dtype=np.float64),
        )

    def at(self, clock: float | None) -> Floats:
        """float64[n]: what is left of each importance at a clock (seconds UTC; None: nothing has faded).

        It fades by FSRS since the last review where there were reviews, else by half in the half-life since the
        last update; without a date it does not fade.
        """
        days = np.zeros(len(self.since)) if clock is None else np.fmax(0.0, (clock - self.since) / DAY)
        return self.stated * np.where(self.reviewed, fsrs(days, self.stability), 0.5 ** (days / self.half_life))
