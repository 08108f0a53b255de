"""Decay with age (Soleri, MoltNet), and towards the end of a validity window (Soleri)."""

from __future__ import annotations

from functools import partial

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.grammar import Duration
from steelyard.signals.kinds import Derived, Prior
from steelyard.table.signal_table import SignalTable

ZONE = 0.25
"""The last part of a validity window, over which the score of an entry falls to 0."""
SINCE = ("update", "access", "never")
"""What age is counted from: the last update, the last access, or nothing in a system that reads no dates."""


@partial(
    Prior,
    spans={"half_life": Duration(365, "d")},
    words={"since": SINCE},
    first={"half_life": Duration(90, "d")},
    reads="dates",
)
def recency(table: SignalTable, half_life: Duration, since: str) -> Derived:
    """Score ``exp(-ln 2 * age / half_life)``, with the age at the query's clock; between 0 and 1.

    An entry without a date, or dated after the clock, counts as new: 1.0. Sources: Soleri's document,
    temporal decay; MoltNet's 0.99^hours since the last access is a half-life of 68.97 hours.

    Unless age is counted since the last access, an entry with a `valid_until` is scored by its validity
    window instead: 1.0 while more than a quarter of the window remains, then linearly down to 0 at its end
    (Soleri's document). The window opens at `valid_from`, else at creation; an empty window counts as full.

    Parameters
    ----------
    half_life : Duration
        The age at which the score is 0.5.
    since : str
        One of `SINCE`: age is counted from the last update or the last access, else from creation; with
        ``never`` every entry counts as new.
    """
    numbers = table.about.numbers
    clock = table.asked.numbers["clock"][table.query]
    last = {"update": numbers["updated_at"], "access": numbers["last_accessed_at"]}.get(since)
    created = np.full(len(table.entries), np.nan) if last is None else numbers["created_at"]
    born = created if last is None else np.where(np.isnan(last), created, last)
    age = clock - born[table.entry]
    age = np.where(np.isnan(age) | (age < 0), 0.0, age)
    values = np.exp(-np.log(2.0) * age / half_life.seconds)
    formula = f"exp(-ln 2 * age in days / half-life {half_life.amount:.4g}{half_life.unit})"
    inputs = {"age in days": age / 86_400}
    if since != "access" and not np.isnan(numbers["valid_until"]).all():
        left = _window(table, clock, created)
        values = np.where(np.isnan(left), values, np.clip(left / ZONE, 0.0, 1.0))
        formula += f"; with a validity window, min(1, part of it left / {ZONE})"
        inputs["part of the window left"] = left
    return Derived(values, formula, inputs)


def _window(table: SignalTable, clock: Floats, created: Floats) -> Floats:
    """The part of each entry's validity window that remains, float64[N]; NaN for a window without an end."""
    numbers = table.about.numbers
    opened = np.where(np.isnan(numbers["valid_from"]), created, numbers["valid_from"])[table.entry]
    opened = np.where(np.isnan(opened), clock, opened)
    closes = numbers["valid_until"][table.entry]
    width = closes - opened
    left = np.where(width > 0, (closes - clock) / np.where(width > 0, width, 1.0), 1.0)
    return np.where(np.isnan(closes), np.nan, np.where(closes <= clock, 0.0, left))
