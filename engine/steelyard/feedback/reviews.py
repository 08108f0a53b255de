"""Reviews by FSRS: what was used is forgotten more slowly, which the signal `retrievability` follows.

Source: system-spec-kit's code, after FSRS (Ye, Su and Cao, 2022).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard.base.errors import ConfigError, DataError, nearest, shown
from steelyard.memory.entry import Entry
from steelyard.memory.forgetting import DAY, fsrs
from steelyard.stores.sqlite import Vault

GRADES = {"again": 1, "hard": 2, "good": 3, "easy": 4}
"""How well a memory was known when it was used."""
STABILITY, DIFFICULTY = 1.0, 5.0
"""Of a memory without a review: a day, as in the signal, and the middle of 1..10."""
LONGEST = 36_500.0
"""Days beyond which stability does not grow, so that many reviews stay a number."""
FIELDS = ("stability", "difficulty", "last_review", "review_count")
"""What a review changes."""


def review(store: Vault, entry_id: str, grade: str, now: float) -> Entry:
    """Write a review at a time (seconds UTC) to an entry of a store, and return the entry.

    Raises ConfigError for an unknown grade, DataError for an entry that is not there.
    """
    if grade not in GRADES:
        raise ConfigError(f"there is no grade {shown(grade)}{nearest(grade, GRADES)}")
    with store.transaction():
        entries = store.get([entry_id])
        if not entries:
            raise DataError(f"no entry {shown(entry_id)}; name one of the vault")
        entry = reviewed(entries[0], GRADES[grade], now)
        store.upsert([entry], keep_vectors=True)
    return entry


def reviewed(entry: Entry, grade: int, now: float) -> Entry:
    """The entry after a review with a grade, 1 to 4."""
    stability = entry.stability or STABILITY
    difficulty = DIFFICULTY if entry.difficulty is None else entry.difficulty
    since = next((time for time in (entry.last_review, entry.created_at) if time is not None), now)
    days = max(0.0, now - since) / DAY
    known = float(fsrs(np.array([days]), np.array([stability]))[0])
    return replace(
        entry,
        stability=min(LONGEST, stability_after(stability, difficulty, grade, known)),
        difficulty=difficulty_after(difficulty, grade),
        last_review=now,
        review_count=(entry.review_count or 0.0) + 1,
    )


def stability_after(stability: float, difficulty: float, grade: int, retrievability: float) -> float:
    """FSRS' stability, in days, after a review with a grade: 1 again, 2 hard, 3 good, 4 easy.

    >>> stability_after(10, 1, 3, 0.5)
    25.0
    """
    if grade == 1:
        return max(0.1, stability * 0.2)
    ease = {2: 0.8, 3: 1.0, 4: 1.3}[grade]
    return stability * (1 + (11 - difficulty) * 0.1) * ease * (1 + (1 - retrievability) * 0.5)


def difficulty_after(difficulty: float, grade: int) -> float:
    """FSRS' difficulty, 1 to 10, after a review with a grade."""
    return min(10.0, max(1.0, difficulty + {1: 1.0, 2: 0.5, 3: 0.0, 4: -0.5}[grade]))
