"""Signals that are derived from facts: pure functions of a table, vectorised over its rows.

To add one, write ``name(table, **options) -> Derived`` in its own file, make it a `Prior`, and list it here.
"""

from __future__ import annotations

from steelyard.signals.facts import domain, importance, length, promised, severity, tags
from steelyard.signals.kinds import Derived, Prior, created, one
from steelyard.signals.memory import corrections, decay, popularity, retrievability
from steelyard.signals.recency import recency
from steelyard.signals.types import document_type, importance_tier, spec_level

PRIORS: dict[str, Prior] = {
    each.name: each
    for each in (
        recency,
        severity,
        importance,
        tags,
        domain,
        document_type,
        spec_level,
        importance_tier,
        decay,
        retrievability,
        popularity,
        corrections,
        created,
        one,
        length,
        promised,
    )
}

__all__ = ["PRIORS", "Derived", "Prior"]
