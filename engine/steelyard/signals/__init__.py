"""Signals derived from facts on read: pure functions of a table, vectorised over its rows.

To add one: write ``name(table, **options) -> Derived`` in a file of its own and list it here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from steelyard.expression import Duration
from steelyard.signals.derived import Derived
from steelyard.signals.domain import domain
from steelyard.signals.importance import importance
from steelyard.signals.recency import recency
from steelyard.signals.severity import severity
from steelyard.signals.tags import tags


@dataclass(frozen=True)
class Prior:
    """A derived signal and its options with their defaults."""

    compute: Callable[..., Derived]
    defaults: dict[str, Duration | float] = field(default_factory=dict)


PRIORS: dict[str, Prior] = {
    "recency": Prior(recency, {"half_life": Duration(365, "d")}),
    "severity": Prior(severity),
    "importance": Prior(importance),
    "tags": Prior(tags),
    "domain": Prior(domain),
}

__all__ = ["PRIORS", "Derived", "Prior"]
