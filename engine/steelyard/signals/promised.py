"""Whether an entry is of a type that the query's intent promises to prefer (system-spec-kit)."""

from __future__ import annotations

from functools import partial

import numpy as np

from steelyard.signals.kinds import Derived, Prior
from steelyard.table.signal_table import SignalTable

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


@partial(Prior, intents=frozenset(PROMISED), factor=True, reads="types of entries that an intent prefers")
def promised(table: SignalTable) -> Derived:
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
    return Derived(values, f"{FACTOR:g} for a type that the intent prefers, else 1")
