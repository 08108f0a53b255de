"""Reviews of entries, by which the signal `retrievability` knows how stable a memory is."""

from dataclasses import replace

import numpy as np

from steelyard.base.errors import ConfigError, DataError, nearest, quote
from steelyard.memory.entry import DAY, Entry, fsrs
from steelyard.stores.sqlite import Vault

REVIEWED = ("stability", "difficulty", "last_review", "review_count")
"""What a review changes."""
GRADES = {"again": (0.2, 1.0), "hard": (0.8, 0.5), "good": (1.0, 0.0), "easy": (1.3, -0.5)}
"""How well a memory was known when it was used: what stability is multiplied by, and what difficulty gains."""
MOST_STABLE = 36_500.0
"""Days beyond which stability does not grow, so that many reviews stay a number."""


def review(store: Vault, entry_id: str, grade: str, now: float) -> Entry:
    """Write a review at a time (seconds UTC) to an entry of a store, and return the entry.

    What was used is forgotten more slowly, which the signal `retrievability` follows. A memory without a review
    has a stability of a day, as there, and a difficulty of 5, the middle of 1..10. Source: system-spec-kit's code,
    after FSRS (Ye, Su and Cao, 2022). ConfigError for an unknown grade, DataError for an unknown entry.
    """
    if grade not in GRADES:
        raise ConfigError(f"there is no grade {quote(grade)}{nearest(grade, GRADES)}")
    with store.transaction():
        if not (entries := store.get([entry_id])):
            raise DataError(f"no entry {quote(entry_id)}; name one of the vault")
        (entry,) = entries
        stability = entry.stability or 1.0
        difficulty = 5.0 if entry.difficulty is None else entry.difficulty
        since = next((time for time in (entry.last_review, entry.created_at) if time is not None), now)
        known = float(fsrs(np.array([max(0.0, now - since) / DAY]), np.array([stability]))[0])
        entry = replace(
            entry,
            stability=min(MOST_STABLE, stability_after(stability, difficulty, grade, known)),
            difficulty=difficulty_after(difficulty, grade),
            last_review=now,
            review_count=(entry.review_count or 0.0) + 1,
        )
        store.upsert([entry], keep_vectors=True)
    return entry


def stability_after(stability: float, difficulty: float, grade: str, retrievability: float) -> float:
    """FSRS' stability, in days, after a review.

    >>> stability_after(10, 1, "good", 0.5)
    25.0
    """
    ease, _ = GRADES[grade]
    if grade == "again":
        return max(0.1, stability * ease)
    return stability * (1 + (11 - difficulty) * 0.1) * ease * (1 + (1 - retrievability) * 0.5)


def difficulty_after(difficulty: float, grade: str) -> float:
    """FSRS' difficulty, 1 to 10, after a review."""
    return min(10.0, max(1.0, difficulty + GRADES[grade][1]))
