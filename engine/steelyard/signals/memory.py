"""How well an entry is still remembered: decay, retrievability, use and corrections (system-spec-kit)."""

from __future__ import annotations

from functools import partial

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.memory.forgetting import DAY, HALF_LIVES, USUAL, fsrs
from steelyard.signals.kinds import Derived, Prior
from steelyard.table.signal_table import SignalTable

FADING = ("", "normal", "temporary")
"""The importance tiers that fade; the others stay as they are."""
OFTEN, LONG_AGO = 5.0, 90.0


@partial(Prior, reads="dates")
def decay(table: SignalTable) -> Derived:
    """``0.5 ^ (age / half-life)``, with the half-life of the entry's memory type, or its own, in (0, 1].

    Age runs from the last update, else creation, to the query's clock. Entries of an importance tier above normal,
    meta-cognitive ones and undated ones do not fade. Source: system-spec-kit's document and code.
    """
    about = table.about
    types = about.labels["memory_type"]
    usual = np.array([HALF_LIVES.get(word, HALF_LIVES[USUAL]) for word in types.words] or [1.0])[types.codes]
    stated = about.numbers["half_life_days"]
    half = np.where(stated > 0, stated, usual)[table.entry]
    tiers = about.labels["importance_tier"]
    fades = np.array([word in FADING for word in tiers.words] or [True])[tiers.codes][table.entry]
    age = days_since(table, "updated_at", "created_at")
    values = np.where(fades, 0.5 ** (np.nan_to_num(age) / half), 1.0)
    return Derived(values, "0.5 ^ (age in days / half-life)", {"age in days": age, "half-life": half})


@partial(Prior, reads="reviews")
def retrievability(table: SignalTable) -> Derived:
    """``(1 + 19/81 * t / S) ^ -0.5``: the chance of recall t days after the last review, in (0, 1].

    S is the stability, 1 day where none is given; t runs from creation where there was no review, and is 0 without
    any date. Source: FSRS (Ye, Su and Cao, 2022), as system-spec-kit's code has it.
    """
    stated = table.about.numbers["stability"]
    stability = np.where(stated > 0, stated, 1.0)[table.entry]
    age = days_since(table, "last_review", "created_at")
    values = fsrs(np.nan_to_num(age), stability)
    return Derived(values, "(1 + 19/81 * t / stability) ^ -0.5", {"t": age, "stability": stability})


@partial(Prior, reads="counts of accesses")
def popularity(table: SignalTable) -> Derived:
    """``0.6 * min(1, log2(n + 1) / 5) + 0.4 * max(0, 1 - d / 90)`` for n uses, the last d days ago, in 0..1.

    0 for an entry that was never used. Source: system-spec-kit's code.
    """
    uses = np.nan_to_num(table.about.numbers["access_count"])[table.entry]
    age = days_since(table, "last_accessed_at")
    often = 0.6 * np.minimum(1.0, np.log2(np.maximum(uses, 0.0) + 1.0) / OFTEN)
    lately = 0.4 * np.maximum(0.0, 1.0 - np.where(np.isnan(age), LONG_AGO, age) / LONG_AGO)
    values = np.where(uses > 0, often + lately, 0.0)
    return Derived(values, "0.6 * min(1, log2(uses + 1) / 5) + 0.4 * max(0, 1 - days / 90)", {"uses": uses})


@partial(Prior, factor=True)
def corrections(table: SignalTable) -> Derived:
    """``1 / (1 + n)`` for an entry that was corrected n times, in (0, 1].

    The document says that the program learns from corrections, and not how; the formula is ours.
    """
    count = np.maximum(np.nan_to_num(table.about.numbers["correction_count"]), 0.0)[table.entry]
    return Derived(1.0 / (1.0 + count), "1 / (1 + corrections)", {"corrections": count})


def days_since(table: SignalTable, *dates: str) -> Floats:
    """float64[N]: days from the first of these dates that an entry has to the query's clock; NaN without any."""
    since = np.full(len(table.entries), np.nan)
    for name in reversed(dates):
        times = table.about.numbers[name]
        since = np.where(np.isnan(times), since, times)
    age: Floats = np.maximum((table.asked.numbers["clock"][table.query] - since[table.entry]) / DAY, 0.0)
    return age
