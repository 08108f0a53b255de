"""Signals of one fact each, such as importance, domain and tags, and of what kind of document an entry is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.node import Option
from steelyard.signals.kinds import DerivedSignal, SignalValues
from steelyard.table.signal_table import SignalTable

UNSTATED = 5.0
"""What MoltNet stores when no importance is given."""


@DerivedSignal
def importance(table: SignalTable) -> SignalValues:
    """Score ``importance / 10`` on a 1..10 scale; 0.5 where none is given. Source: MoltNet's document."""
    stated = table.about.numbers["importance"]
    raw = np.where(np.isnan(stated), UNSTATED, stated)[table.entry]
    return SignalValues(raw / 10.0, "importance / 10", {"importance": raw})


@DerivedSignal
def domain(table: SignalTable) -> SignalValues:
    """Score 1.0 when the query names a domain and the entry has the same, else 0.0. Source: Soleri's document."""
    asked, about = table.asked.labels["domain"], table.about.labels["domain"]
    same = asked.codes[table.query] == about.in_terms_of(asked)[table.entry]
    values = same & ~asked.equal("")[table.query]
    return SignalValues(values.astype(np.float64), "1 when the query's domain equals the entry's, else 0")


SHORT, LEAST = 100.0, 0.8


@partial(DerivedSignal, factor=True, reads="lengths of texts")
def length(table: SignalTable) -> SignalValues:
    """``0.8 + 0.2 * characters / 100`` for a text of fewer than 100 characters, else 1. Source: REQ-008.

    White space around the text does not count.
    """
    characters = np.nan_to_num(table.about.numbers["length"])[table.entry]
    values = LEAST + (1.0 - LEAST) * np.minimum(1.0, characters / SHORT)
    return SignalValues(values, "0.8 + 0.2 * characters / 100, at most 1", {"characters": characters})


LEVELS = {"critical": 1.0, "warning": 0.7, "suggestion": 0.4}
OTHER = 0.4


@DerivedSignal
def severity(table: SignalTable) -> SignalValues:
    """Score critical 1.0, warning 0.7, suggestion 0.4, and any other label 0.4. Source: Soleri's document."""
    labels = table.about.labels["severity"]
    per_entry = np.full(len(labels.codes), OTHER)
    for label, value in LEVELS.items():
        per_entry[labels.equal(label)] = value
    return SignalValues(per_entry[table.entry], "critical 1.0, warning 0.7, suggestion 0.4, else 0.4")


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


FACTOR = 1.5
"""Ours: the document says that an intent prioritises types, and not by how much."""
PROMISED: dict[str, dict[str, tuple[str, ...]]] = {
    "add_feature": {
        "memory_type": ("procedural", "semantic"),
        "document_type": ("plan", "implementation_summary"),
        "context_type": ("implementation",),
    },
    "fix_bug": {
        "memory_type": ("episodic",),
        "document_type": ("implementation_summary",),
        "context_type": ("implementation",),
    },
    "refactor": {
        "memory_type": ("procedural", "semantic"),
        "document_type": ("plan", "spec"),
        "context_type": ("implementation",),
    },
    "security_audit": {
        "memory_type": ("episodic", "meta-cognitive"),
        "document_type": ("checklist",),
        "context_type": ("research",),
    },
    "understand": {"memory_type": ("declarative", "semantic"), "document_type": ("decision_record", "handover")},
    "find_spec": {"document_type": ("spec", "plan", "tasks", "checklist"), "context_type": ("decision",)},
    "find_decision": {"document_type": ("decision_record",), "context_type": ("decision",)},
}
"""The types of entries that each of the seven intents prefers.

The document names contents (patterns, error history, decisions ...); which memory and document types hold them
is our reading. The context types are those of the code.
"""


@partial(DerivedSignal, intents=frozenset(PROMISED), factor=True, reads="types of entries that an intent prefers")
def promised(table: SignalTable) -> SignalValues:
    """1.5 for an entry of a memory, document or context type that the query's intent prefers, else 1."""
    intents = table.asked.labels["intent"]
    values = np.ones(len(table))
    for intent, fields in PROMISED.items():
        asked = intents.equal(intent)[table.query]
        if asked.any():
            held = np.zeros(len(table.entries), dtype=bool)
            for name, words in fields.items():
                labels = table.about.labels[name]
                held |= np.array([word in words for word in labels.words] or [False])[labels.codes]
            values = np.where(asked & held[table.entry], FACTOR, values)
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
    labels = table.about.labels[name]
    per_word: Floats = np.array([numbers.get(word, other) for word in labels.words] or [other])
    words = ", ".join(f"{word} {value:g}" for word, value in numbers.items())
    return SignalValues(per_word[labels.codes][table.entry], f"{name}: {words}, else {other:g}")
