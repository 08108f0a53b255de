"""Signals of one fact each, such as importance, domain and tags, and of what kind of document an entry is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from steelyard.base.arrays import Indices
from steelyard.node import Option
from steelyard.signals.kinds import DerivedSignal, SignalValues
from steelyard.table.signal_table import SignalTable

UNSTATED = 5.0
"""What MoltNet stores when no importance is given."""


@DerivedSignal
def importance(table: SignalTable) -> SignalValues:
    """Score ``importance / 10`` on a 1..10 scale; 0.5 where none is given. Source: MoltNet's document."""
    raw = np.nan_to_num(table.fact("importance"), nan=UNSTATED)
    return SignalValues(raw / 10.0, "importance / 10", {"importance": raw})


@DerivedSignal
def domain(table: SignalTable) -> SignalValues:
    """Score 1.0 when the query names a domain and the entry has the same, else 0.0. Source: Soleri's document."""
    asked, about = table.asked.labels["domain"], table.about.labels["domain"]
    code = {word: float(place) for place, word in enumerate(asked.words) if word}
    same = asked.codes[table.query] == about.mapped(code, -1.0)[table.entry]
    return SignalValues(same.astype(np.float64), "1 when the query's domain equals the entry's, else 0")


SHORT, LEAST = 100.0, 0.8


@partial(DerivedSignal, factor=True, reads="lengths of texts")
def length(table: SignalTable) -> SignalValues:
    """``0.8 + 0.2 * characters / 100`` for a text of fewer than 100 characters, else 1. Source: REQ-008.

    White space around the text does not count.
    """
    characters = np.nan_to_num(table.fact("length"))
    values = LEAST + (1.0 - LEAST) * np.minimum(1.0, characters / SHORT)
    return SignalValues(values, "0.8 + 0.2 * characters / 100, at most 1", {"characters": characters})


LEVELS = {"critical": 1.0, "warning": 0.7, "suggestion": 0.4}


@DerivedSignal
def severity(table: SignalTable) -> SignalValues:
    """Score critical 1.0, warning 0.7, suggestion 0.4, and any other label 0.4. Source: Soleri's document."""
    return _looked_up(table, "severity", LEVELS, 0.4)


@DerivedSignal
def tags(table: SignalTable) -> SignalValues:
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
    return SignalValues(values, "shared tags / tags of both", inputs)


def _shared(table: SignalTable) -> Indices:
    """Count the tags that a row's query and entry have in common, int64[N], by one sorted look-up of pairs."""
    asked, about = table.asked.tags, table.about.tags
    width = int(max(asked.codes.max(initial=-1), about.codes.max(initial=-1))) + 1
    held = np.repeat(np.arange(len(about.offsets) - 1), np.diff(about.offsets)) * width + about.codes
    sizes = np.diff(asked.offsets)[table.query]
    rows = np.repeat(np.arange(len(table)), sizes)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    codes = asked.codes[asked.offsets[table.query[rows]] + within]
    wanted = table.entry[rows].astype(np.int64) * width + codes
    places = np.searchsorted(held, wanted)  # sorted: owners ascend, codes ascend within an owner
    hit = np.append(held, -1)[places] == wanted
    return np.bincount(rows[hit], minlength=len(table)).astype(np.int64)


FACTOR = 1.5
"""Ours: the document says that an intent prioritises types, and not by how much."""
_IMPLEMENTATION = ("implementation",)
PROMISED: dict[str, dict[str, tuple[str, ...]]] = {
    intent: {
        name: words
        for name, words in zip(("memory_type", "document_type", "context_type"), types, strict=True)
        if words
    }
    for intent, *types in (
        ("add_feature", ("procedural", "semantic"), ("plan", "implementation_summary"), _IMPLEMENTATION),
        ("fix_bug", ("episodic",), ("implementation_summary",), _IMPLEMENTATION),
        ("refactor", ("procedural", "semantic"), ("plan", "spec"), _IMPLEMENTATION),
        ("security_audit", ("episodic", "meta-cognitive"), ("checklist",), ("research",)),
        ("understand", ("declarative", "semantic"), ("decision_record", "handover"), ()),
        ("find_spec", (), ("spec", "plan", "tasks", "checklist"), ("decision",)),
        ("find_decision", (), ("decision_record",), ("decision",)),
    )
}
"""The types of entries that each of the seven intents prefers.

The document names contents (patterns, error history, decisions ...); which memory and document types hold them
is our reading. The context types are those of the code.
"""


@partial(DerivedSignal, intents=frozenset(PROMISED), factor=True, reads="types of entries that an intent prefers")
def promised(table: SignalTable) -> SignalValues:
    """1.5 for an entry of a memory, document or context type that the query's intent prefers, else 1."""
    values = np.ones(len(table))
    for intent, fields in PROMISED.items():
        asked = table.asked.labels["intent"].equal(intent)[table.query]
        if asked.any():
            held = [table.about.labels[name].equal(*words) for name, words in fields.items()]
            values[asked & np.logical_or.reduce(held)[table.entry]] = FACTOR
    return SignalValues(values, f"{FACTOR:g} for a type that the intent prefers, else 1")


DOCUMENT_TYPES = {
    "spec": 1.4,
    "decision_record": 1.4,
    "plan": 1.3,
    "tasks": 1.1,
    "implementation_summary": 1.1,
    "checklist": 1.0,
    "handover": 1.0,
    "memory": 1.0,
    "constitutional": 2.0,
    "readme": 0.8,
    "scratch": 0.6,
}
"""What a document type multiplies by. Source: the code of system-spec-kit (its document names no numbers)."""
SPEC_LEVELS = {"1": 1.0, "2": 1.1, "3": 1.2, "3+": 1.3}
"""Ours: the document has the field and no numbers."""
_TIERS = ("constitutional", "critical", "important", "normal", "temporary", "deprecated")
TIERS: dict[str, Mapping[str, float]] = {
    "multiplier": dict(zip(_TIERS, (2.0, 1.5, 1.3, 1.0, 0.6, 0.1), strict=True)),
    "value": dict(zip(_TIERS, (1.0, 1.0, 0.8, 0.5, 0.3, 0.1), strict=True)),
    "boost": dict(zip(_TIERS, (3.0, 2.0, 1.5, 1.0, 0.5, 0.0), strict=True)),
}
"""Three scales of the six importance tiers: the first is the default. Source: the code of system-spec-kit."""


@partial(DerivedSignal, factor=True, reads="document types")
def document_type(table: SignalTable) -> SignalValues:
    """The multiplier of the entry's document type, 0.6..2; 1 for any other type or none."""
    return _looked_up(table, "document_type", DOCUMENT_TYPES, 1.0)


@partial(DerivedSignal, factor=True, reads="spec levels")
def spec_level(table: SignalTable) -> SignalValues:
    """1 for a specification of level 1, 0.1 more for each level up to 3+; 1 where none is given."""
    return _looked_up(table, "spec_level", SPEC_LEVELS, 1.0)


@partial(
    DerivedSignal,
    options={"scale": Option("scale", "multiplier", kind="word", words=tuple(TIERS), quiet=True)},
    factor=True,
    reads="importance tiers",
)
def importance_tier(table: SignalTable, scale: str) -> SignalValues:
    """The entry's importance tier on one of three scales; an entry without one is normal."""
    return _looked_up(table, "importance_tier", TIERS[scale], TIERS[scale]["normal"])


def _looked_up(table: SignalTable, name: str, numbers: Mapping[str, float], other: float) -> SignalValues:
    words = ", ".join(f"{word} {value:g}" for word, value in numbers.items())
    values = table.about.labels[name].mapped(numbers, other)[table.entry]
    return SignalValues(values, f"{name}: {words}, else {other:g}")
