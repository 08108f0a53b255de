"""The composite scores of system-spec-kit's TypeScript code, which its own search does not call.

Both weigh factors of an entry, multiply by its document type and are clamped to 0..1. Reachable from Python alone.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

import numpy as np

from steelyard.memory.entry import Entry
from steelyard.memory.forgetting import DAY, fsrs
from steelyard.signals.types import DOCUMENT_TYPES, TIERS

FIVE = (0.25, 0.15, 0.25, 0.20, 0.15)
"""The weights of temporal, usage, importance, pattern and citation."""
SIX = (0.30, 0.25, 0.10, 0.15, 0.05, 0.15)
"""The weights of similarity, importance, recency, popularity, tier and retrievability."""
LONG_AGO = 90.0
"""Days after which a citation counts for nothing."""
SIMILAR = 0.8
"""The similarity from which more of it counts twice."""
ASKED_OF_MEMORIES = {
    "decision": ("why", "decided", "chose", "reason"),
    "blocker": ("stuck", "blocked", "issue", "problem"),
    "context": ("context", "background", "overview"),
    "next-step": ("next", "todo", "action", "plan"),
    "insight": ("learned", "insight", "discovery", "found"),
}
ASKED_OF_DOCUMENTS = {
    "spec": ("spec", "specification", "requirements", "scope", "what"),
    "decision_record": ("decision", "why", "rationale", "chose", "alternative"),
    "plan": ("plan", "approach", "how", "strategy", "phase"),
    "tasks": ("task", "todo", "work", "remaining", "progress"),
    "implementation_summary": ("implementation", "summary", "built", "completed", "result"),
    "checklist": ("checklist", "verify", "check", "qa", "quality"),
}
"""What a query holds that asks for memories or documents of a type."""


@dataclass(frozen=True, slots=True)
class Factors:
    """The five factors of an entry, each in 0..1."""

    temporal: float
    usage: float
    importance: float
    pattern: float
    citation: float


def factors(entry: Entry, asked: str, similarity: float, clock: float) -> Factors:
    """The five factors of an entry for a query.

    Parameters
    ----------
    asked : str
        The query.
    similarity : float
        Of the entry and the query, in percent.
    clock : float
        Seconds UTC.
    """
    return Factors(
        retrievability(entry, clock),
        min(0.5, 0.05 * (entry.access_count or 0)) / 0.5,
        min(1.0, _stated(entry) * _tier(entry, "multiplier") / 2.0),
        pattern(entry, asked, similarity / 100.0),
        citation(entry, clock),
    )


def five_factors(entry: Entry, asked: str, similarity: float, clock: float) -> float:
    """The composite of five factors, in 0..1."""
    values = astuple(factors(entry, asked, similarity, clock))
    return _composite(entry, sum(w * v for w, v in zip(FIVE, values, strict=True)))


def six_factors(entry: Entry, similarity: float, clock: float) -> float:
    """The older composite of six factors, in 0..1."""
    values = (
        similarity / 100.0,
        _stated(entry),
        recency(entry, clock),
        popularity(entry, clock),
        _tier(entry, "value"),
        retrievability(entry, clock),
    )
    return _composite(entry, sum(w * v for w, v in zip(SIX, values, strict=True)))


def retrievability(entry: Entry, clock: float) -> float:
    """FSRS since the last review, else the last change; a stability of 1 day where none is given, 0.5 undated."""
    days = _days(clock, entry.last_review or entry.updated_at or entry.created_at)
    return 0.5 if days is None else float(fsrs(np.array([days]), np.array([entry.stability or 1.0]))[0])


def recency(entry: Entry, clock: float) -> float:
    """``1 / (1 + 0.1 * days)`` since the last change; 1 for constitutional entries, 0.5 undated."""
    days = _days(clock, entry.updated_at or entry.created_at)
    if entry.importance_tier == "constitutional":
        return 1.0
    return 0.5 if days is None else 1.0 / (1.0 + 0.1 * days)


def popularity(entry: Entry, clock: float) -> float:
    """``0.6 * min(1, log2(n + 1) / 5) + 0.4 * max(0, 1 - days / 90)`` for n uses, the last some days ago.

    0 for an entry that was never used.
    """
    if not entry.access_count:
        return 0.0
    days = _days(clock, entry.last_accessed_at)
    fresh = 0.0 if days is None else max(0.0, 1.0 - days / LONG_AGO)
    return 0.6 * min(1.0, math.log2(entry.access_count + 1) / 5.0) + 0.4 * fresh


def citation(entry: Entry, clock: float) -> float:
    """``1 / (1 + 0.1 * days)`` since the last use, else the last change; 0 from 90 days on, 0.5 undated."""
    days = _days(clock, entry.last_accessed_at or entry.updated_at)
    if days is None:
        return 0.5
    return 0.0 if days >= LONG_AGO else 1.0 / (1.0 + 0.1 * days)


def pattern(entry: Entry, asked: str, similarity: float) -> float:
    """How an entry fits a query by its similarity (0..1), its title and its types, in 0..1."""
    query = asked.lower()
    score = 0.5 * similarity + 0.5 * max(0.0, similarity - SIMILAR) + _of_title(entry.title.lower(), query)
    for known, type_ in ((ASKED_OF_MEMORIES, entry.memory_type), (ASKED_OF_DOCUMENTS, entry.document_type)):
        score += 0.2 if any(word in query for word in known.get(type_, ())) else 0.0
    return min(1.0, max(0.0, score))


def _of_title(title: str, query: str) -> float:
    """0.3 where one holds the other, else 0.15 times the share of the query's longer words in the title's."""
    if not title or not query:
        return 0.0
    if query in title or title in query:
        return 0.3
    words = [word for word in query.split() if len(word) > 2]
    found = sum(any(word in own for own in title.split()) for word in words)
    return 0.15 * found / len(words) if words else 0.0


def _composite(entry: Entry, total: float) -> float:
    return min(1.0, max(0.0, total * DOCUMENT_TYPES.get(entry.document_type or "memory", 1.0)))


def _stated(entry: Entry) -> float:
    return (entry.importance or 5.0) / 10.0


def _tier(entry: Entry, column: str) -> float:
    values = TIERS[column]
    return values.get(entry.importance_tier, values["normal"])


def _days(clock: float, since: float | None) -> float | None:
    return None if since is None else max(0.0, (clock - since) / DAY)
