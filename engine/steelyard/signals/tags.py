"""Overlap of the query's tags with the entry's (Soleri)."""

from __future__ import annotations

import numpy as np

from steelyard.signals.derived import Derived
from steelyard.signals.kinds import Prior
from steelyard.table.signal_table import SignalTable


@Prior
def tags(table: SignalTable) -> Derived:
    """Score the Jaccard similarity of the two tag sets, case-sensitive, in 0..1; 0 when the query has no tags.

    Source: Soleri's document.
    """
    asked, about = table.asked.tags, table.about.tags
    asked_sizes = np.diff(asked.offsets)[table.query]
    about_sizes = np.diff(about.offsets)[table.entry]
    shared = _shared(table)
    union = asked_sizes + about_sizes - shared
    values = np.where(asked_sizes > 0, shared / np.maximum(union, 1), 0.0)
    inputs = {"shared tags": shared.astype(np.float64), "tags of both": union.astype(np.float64)}
    return Derived(values, "shared tags / tags of both", inputs)


def _shared(table: SignalTable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Count the tags that a row's query and entry have in common, int64[N], by one sorted look-up of pairs."""
    asked, about = table.asked.tags, table.about.tags
    width = int(max(asked.codes.max(initial=-1), about.codes.max(initial=-1))) + 1
    owners = np.repeat(np.arange(len(about.offsets) - 1), np.diff(about.offsets))
    held = owners * width + about.codes  # sorted: owners ascend, codes ascend within an owner
    sizes = np.diff(asked.offsets)[table.query]
    rows = np.repeat(np.arange(len(table)), sizes)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    codes = asked.codes[asked.offsets[table.query[rows]] + within]
    wanted = table.entry[rows].astype(np.int64) * width + codes
    places = np.searchsorted(held, wanted)
    hit = np.zeros(len(wanted), dtype=bool)
    inside = places < len(held)
    hit[inside] = held[places[inside]] == wanted[inside]
    return np.bincount(rows[hit], minlength=len(table)).astype(np.int64)
