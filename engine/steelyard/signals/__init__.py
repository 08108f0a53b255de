"""Signals that are derived from facts: pure functions of a table, vectorised over its rows.

To add one, write ``name(table, **options) -> Derived`` in its own file and list it here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from steelyard.grammar import Duration
from steelyard.signals.derived import Derived
from steelyard.signals.domain import domain
from steelyard.signals.importance import importance
from steelyard.signals.length import length
from steelyard.signals.memory import corrections, decay, popularity, retrievability
from steelyard.signals.plain import created, one
from steelyard.signals.promised import PROMISED, promised
from steelyard.signals.recency import SINCE, recency
from steelyard.signals.severity import severity
from steelyard.signals.tags import tags
from steelyard.signals.types import TIERS, document_type, importance_tier, spec_level
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True)
class Prior:
    """A derived signal with its options: spans of time with their defaults, and words, the first the default."""

    compute: Callable[..., Derived]
    spans: dict[str, Duration] = field(default_factory=dict)
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    intents: frozenset[str] = frozenset()
    """The intents of a query that change it."""
    first: dict[str, Duration] = field(default_factory=dict)
    """The spans that tuning starts from, where they are not the defaults."""

    factor: bool = False
    """Whether it is made to multiply a score, which 1 leaves as it is, and not to be added to one."""

    unit: bool = True
    """Whether its values lie in 0..1."""

    reads: str | None = ""
    """The facts that it is computed from, in words; empty where its name says them, None where it reads none."""

    def written(self, name: str) -> list[str]:
        """The signal as tuning tries it at first: once with each of its words, as expressions write them."""
        spans = [f"{option}={span.amount:g}{span.unit}" for option, span in self.first.items()]
        words = [(f"{option}={word}",) for option, valid in self.words.items() for word in valid[1:]]
        return [f"{name}({', '.join(options)})" if (options := [*spans, *word]) else name for word in [(), *words]]

    def __call__(self, table: SignalTable, options: Mapping[str, Duration | str]) -> Derived:
        """Compute the signal with these options and the defaults of the others."""
        return self.compute(table, **{**self.spans, **{name: v[0] for name, v in self.words.items()}, **options})


PRIORS: dict[str, Prior] = {
    "recency": Prior(
        recency,
        {"half_life": Duration(365, "d")},
        {"since": SINCE},
        first={"half_life": Duration(90, "d")},
        reads="dates",
    ),
    "severity": Prior(severity),
    "importance": Prior(importance),
    "tags": Prior(tags),
    "domain": Prior(domain),
    "document_type": Prior(document_type, factor=True, reads="document types"),
    "spec_level": Prior(spec_level, factor=True, reads="spec levels"),
    "importance_tier": Prior(
        importance_tier, words={"scale": tuple(TIERS)}, factor=True, reads="importance tiers"
    ),
    "decay": Prior(decay, reads="dates"),
    "retrievability": Prior(retrievability, reads="reviews"),
    "popularity": Prior(popularity, reads="counts of accesses"),
    "corrections": Prior(corrections, factor=True),
    "created": Prior(created, unit=False, reads="dates"),
    "one": Prior(one, reads=None),
    "length": Prior(length, factor=True, reads="lengths of texts"),
    "promised": Prior(
        promised, intents=frozenset(PROMISED), factor=True, reads="types of entries that an intent prefers"
    ),
}

__all__ = ["PRIORS", "Derived", "Prior"]
