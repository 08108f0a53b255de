"""Signals of age: recency (Soleri, MoltNet), and how well an entry is still remembered (system-spec-kit)."""

from __future__ import annotations

from functools import partial

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.grammar import Duration
from steelyard.memory.forgetting import DAY, HALF_LIVES, USUAL, fsrs
from steelyard.node import Option
from steelyard.signals.kinds import DerivedSignal, SignalValues
from steelyard.table.signal_table import SignalTable

FADING = ("", "normal", "temporary")
"""The importance tiers that fade; the others stay as they are."""
OFTEN, LONG_AGO = 5.0, 90.0


@partial(DerivedSignal, reads="dates")
def decay(table: SignalTable) -> SignalValues:
    """``0.5 ^ (age / half-life)``, with the half-life of the entry's memory type, or its own, in (0, 1].

    Age runs from the last update, else creation, to the query's clock. Entries of an importance tier above normal,
    meta-cognitive ones and undated ones do not fade. Source: system-spec-kit's document and code.
    """
    labels, stated = table.about.labels, table.fact("half_life_days")
    usual = labels["memory_type"].mapped(HALF_LIVES, HALF_LIVES[USUAL])[table.entry]
    half = np.where(stated > 0, stated, usual)
    age = days_since(table, "updated_at", "created_at")
    fades = labels["importance_tier"].equal(*FADING)[table.entry]
    values = np.where(fades, 0.5 ** (np.nan_to_num(age) / half), 1.0)
    return SignalValues(values, "0.5 ^ (age in days / half-life)", {"age in days": age, "half-life": half})


@partial(DerivedSignal, reads="reviews")
def retrievability(table: SignalTable) -> SignalValues:
    """``(1 + 19/81 * t / S) ^ -0.5``: the chance of recall t days after the last review, in (0, 1].

    S is the stability, 1 day where none is given; t runs from creation where there was no review, and is 0 without
    any date. Source: FSRS (Ye, Su and Cao, 2022), as system-spec-kit's code has it.
    """
    stated = table.fact("stability")
    stability = np.where(stated > 0, stated, 1.0)
    age = days_since(table, "last_review", "created_at")
    values = fsrs(np.nan_to_num(age), stability)
    return SignalValues(values, "(1 + 19/81 * t / stability) ^ -0.5", {"t": age, "stability": stability})


@partial(DerivedSignal, reads="counts of accesses")
def popularity(table: SignalTable) -> SignalValues:
    """``0.6 * min(1, log2(n + 1) / 5) + 0.4 * max(0, 1 - d / 90)`` for n uses, the last d days ago, in 0..1.

    0 for an entry that was never used. Source: system-spec-kit's code.
    """
    uses = np.nan_to_num(table.fact("access_count"))
    age = days_since(table, "last_accessed_at")
    often = 0.6 * np.minimum(1.0, np.log2(np.maximum(uses, 0.0) + 1.0) / OFTEN)
    lately = 0.4 * np.maximum(0.0, 1.0 - np.where(np.isnan(age), LONG_AGO, age) / LONG_AGO)
    values = np.where(uses > 0, often + lately, 0.0)
    return SignalValues(values, "0.6 * min(1, log2(uses + 1) / 5) + 0.4 * max(0, 1 - days / 90)", {"uses": uses})


@partial(DerivedSignal, factor=True)
def corrections(table: SignalTable) -> SignalValues:
    """``1 / (1 + n)`` for an entry that was corrected n times, in (0, 1].

    The document says that the program learns from corrections, and not how; the formula is ours.
    """
    count = np.maximum(np.nan_to_num(table.fact("correction_count")), 0.0)
    return SignalValues(1.0 / (1.0 + count), "1 / (1 + corrections)", {"corrections": count})


def days_since(table: SignalTable, *dates: str) -> Floats:
    """float64[N]: days from the first of these dates that an entry has to the query's clock; NaN without any."""
    age: Floats = np.maximum((table.asked.numbers["clock"][table.query] - _first(table, *dates)) / DAY, 0.0)
    return age


def _first(table: SignalTable, *dates: str) -> Floats:
    """float64[N]: the first of these dates that an entry has, seconds UTC; NaN without any."""
    since = np.full(len(table), np.nan)
    for name in reversed(dates):
        times = table.fact(name)
        since = np.where(np.isnan(times), since, times)
    return since


ZONE = 0.25
"""The last part of a validity window, over which the score of an entry falls to 0."""
SINCE = {"update": ("updated_at", "created_at"), "access": ("last_accessed_at", "created_at"), "never": ()}
"""What age is counted from: the last update, the last access, or nothing in a system that reads no dates."""


@partial(
    DerivedSignal,
    options={
        "half_life": Option("half_life", Duration(365, "d"), kind="span", tried=(Duration(90, "d"),)),
        "since": Option("since", "update", kind="word", words=tuple(SINCE), quiet=True),
    },
    reads="dates",
)
def recency(table: SignalTable, half_life: Duration, since: str) -> SignalValues:
    """Score ``exp(-ln 2 * age / half_life)``, with the age at the query's clock; between 0 and 1.

    Age is counted from the last update or access, else from creation, as `since` says; with ``never``, and without
    a date or with one after the clock, an entry counts as new: 1.0. Sources: Soleri's document, temporal decay;
    MoltNet's 0.99^hours since the last access is a half-life of 68.97 hours.

    Unless age is counted since the last access, an entry with a `valid_until` is scored by its validity
    window instead: 1.0 while more than a quarter of the window remains, then linearly down to 0 at its end
    (Soleri's document). The window opens at `valid_from`, else at creation; an empty window counts as full.
    """
    clock = table.asked.numbers["clock"][table.query]
    age = clock - _first(table, *SINCE[since])
    age = np.where(np.isnan(age) | (age < 0), 0.0, age)
    values = np.exp(-np.log(2.0) * age / half_life.seconds)
    formula = f"exp(-ln 2 * age in days / half-life {half_life.amount:.4g}{half_life.unit})"
    inputs = {"age in days": age / DAY}
    if since != "access" and not np.isnan(table.about.numbers["valid_until"]).all():
        left = _window(table, clock, () if since == "never" else ("created_at",))
        values = np.where(np.isnan(left), values, np.clip(left / ZONE, 0.0, 1.0))
        formula += f"; with a validity window, min(1, part of it left / {ZONE})"
        inputs["part of the window left"] = left
    return SignalValues(values, formula, inputs)


def _window(table: SignalTable, clock: Floats, created: tuple[str, ...]) -> Floats:
    """The part of each entry's validity window that remains, float64[N]; NaN for a window without an end."""
    opened = _first(table, "valid_from", *created)
    closes = table.fact("valid_until")
    width = closes - np.where(np.isnan(opened), clock, opened)
    left = np.where(width > 0, (closes - clock) / np.where(width > 0, width, 1.0), 1.0)
    return np.where(np.isnan(closes), np.nan, np.where(closes <= clock, 0.0, left))
