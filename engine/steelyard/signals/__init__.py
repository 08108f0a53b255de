"""Signals that are derived from facts: pure functions of a table, vectorised over its rows.

To add one, write ``name(table, **options) -> SignalValues`` in its own file as a `DerivedSignal`; list it here.
"""

from __future__ import annotations

from steelyard.registry import Registry
from steelyard.signals.facts import (
    document_type,
    domain,
    importance,
    importance_tier,
    length,
    promised,
    severity,
    spec_level,
    tags,
)
from steelyard.signals.kinds import DerivedSignal, SignalValues, created, one
from steelyard.signals.memory import corrections, decay, popularity, recency, retrievability

PRIORS: Registry[DerivedSignal] = Registry(
    "signal",
    "name",
    (
        *(recency, severity, importance, tags, domain, document_type, spec_level, importance_tier),
        *(decay, retrievability, popularity, corrections),
        *(created, one, length, promised),
    ),
)

__all__ = ["DerivedSignal", "SignalValues"]
