"""What kind of document an entry is, and how its author ranked it (system-spec-kit)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.signals.kinds import Derived, Prior
from steelyard.table.signal_table import SignalTable

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


@partial(Prior, factor=True, reads="document types")
def document_type(table: SignalTable) -> Derived:
    """The multiplier of the entry's document type, 0.6..2; 1 for any other type or none."""
    return _looked_up(table, "document_type", DOCUMENT_TYPES, 1.0)


@partial(Prior, factor=True, reads="spec levels")
def spec_level(table: SignalTable) -> Derived:
    """1 for a specification of level 1, 0.1 more for each level up to 3+; 1 where none is given."""
    return _looked_up(table, "spec_level", SPEC_LEVELS, 1.0)


@partial(Prior, words={"scale": tuple(TIERS)}, factor=True, reads="importance tiers")
def importance_tier(table: SignalTable, scale: str) -> Derived:
    """The entry's importance tier on one of three scales; an entry without one is normal."""
    return _looked_up(table, "importance_tier", TIERS[scale], TIERS[scale]["normal"])


def _looked_up(table: SignalTable, name: str, numbers: Mapping[str, float], other: float) -> Derived:
    labels = table.about.labels[name]
    per_word: Floats = np.array([numbers.get(word, other) for word in labels.words] or [other])
    words = ", ".join(f"{word} {value:g}" for word, value in numbers.items())
    return Derived(per_word[labels.codes][table.entry], f"{name}: {words}, else {other:g}")
