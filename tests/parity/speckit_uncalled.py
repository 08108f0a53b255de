"""What system-spec-kit's code holds and its search does not call, for comparison with recordings of that code.

Composite scores, the other searches and rankings of its TypeScript code, and helpers of its library.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Literal

import numpy as np

from steelyard.memory.entry import Entry
from steelyard.memory.forgetting import DAY, FSRS_FACTOR, fsrs
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


SMART = (0.2, 0.5, 0.3)
"""The weights of relevance, recency and use in `smart_score`; the program's own file changes them."""
SAME_FOLDER, SAME_DAY = 0.8, 0.5
"""How alike `diverse` takes two results to be that share a folder, or a day."""


def substring_scores(entries: Iterable[Entry], asked: str) -> list[tuple[str, float]]:
    """(id, score) of the entries whose title, tags, folder or path hold words of the query, best first.

    A word counts 1, 2 more in the title and 1.5 more in the tags, times 0.5 plus the importance (0..1). Equal
    scores are ordered by importance and then by date, the newest first.

    >>> substring_scores([Entry("1", title="Use JWT", importance=5.0)], "jwt")
    [('1', 3.0)]
    """
    words = [word for word in asked.lower().split() if len(word) >= 2]
    usual = sorted(entries, key=lambda e: (-(e.importance or 0.0), -(e.created_at or 0.0), e.id))
    found = [(e.id, _matches(e, words) * (0.5 + (e.importance or 0.0) / 10.0)) for e in usual]
    return sorted(((id_, score) for id_, score in found if score > 0), key=lambda pair: -pair[1])


def _matches(entry: Entry, words: Iterable[str]) -> float:
    title, tags = entry.title.lower(), " ".join(entry.tags).lower()
    everything = " ".join((title, tags, entry.project.lower(), entry.uri.lower()))
    return sum(1.0 + 2.0 * (word in title) + 1.5 * (word in tags) for word in words if word in everything)


def constitutional_first(
    entries: Iterable[Entry], similar: Sequence[tuple[str, float]], limit: int
) -> list[tuple[str, float]]:
    """At most 20 constitutional entries at 100 percent, by importance and date, before what is similar.

    `similar` is (id, similarity in percent) of the others, best first.
    """
    own = [e for e in entries if e.importance_tier == "constitutional"]
    first = sorted(own, key=lambda e: (-(e.importance or 0.0), -(e.created_at or 0.0), e.id))[:20]
    return [(e.id, 100.0) for e in first] + list(similar[: max(0, limit - len(first))])


def smart_score(entry: Entry, similarity: float, clock: float) -> float:
    """Relevance, recency in three steps (7 and 30 days) and use, in 0..1 with two decimals.

    `similarity` is in percent; an undated entry counts as new.
    """
    relevance, recency, use = SMART
    age = clock - (clock if entry.created_at is None else entry.created_at)
    fresh = 1.0 if age < 7 * DAY else 0.8 if age < 30 * DAY else 0.5
    total = similarity / 100.0 * relevance + fresh * recency + min(1.0, (entry.access_count or 0) / 10.0) * use
    return int(total * 100.0 + 0.5) / 100.0


def term_bonus(fused: Mapping[str, float], entries: Iterable[Entry], asked: str) -> list[tuple[str, float]]:
    """(id, score), best first, with 0.05 more for each word of the query in the title, the tags or the path."""
    words = [word for word in asked.lower().split() if len(word) >= 2]
    texts = {e.id: " ".join((e.title, *e.tags, e.uri)).lower() for e in entries}
    raised = [(id_, score + 0.05 * sum(word in texts[id_] for word in words)) for id_, score in fused.items()]
    return sorted(raised, key=lambda pair: -pair[1])


def step_penalty(characters: int) -> float:
    """What the later code multiplies the score of a text by: 0.9 under 50 characters, 0.95 over 2000, else 1.

    >>> step_penalty(49), step_penalty(50), step_penalty(2001)
    (0.9, 1.0, 0.95)
    """
    return 0.9 if characters < 50 else 0.95 if characters > 2000 else 1.0


def positional(count: int) -> list[float]:
    """The scores without a re-ranker, by place.

    >>> positional(2)
    [0.5, 0.25]
    """
    return [0.5 - place / (count * 2) for place in range(count)]


def cache_key(asked: str, ids: Iterable[object]) -> str:
    """The later code's key of a re-ranked list: a 32-bit rolling hash in base 36, whatever the order of the ids.

    >>> cache_key("", [])
    'rerank-1m'
    """
    text = f"{asked}:{','.join(sorted(map(str, ids)))}"
    units = text.encode("utf-16-le")
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) % 2**32
    return f"rerank-{_base36(min(value, 2**32 - value))}"


def _base36(value: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    left, text = value, ""
    while left:
        left, last = divmod(left, 36)
        text = digits[last] + text
    return text or "0"


def matching_words(asked: str, text: str) -> int:
    """How many words of more than three characters of the query the text holds (the JavaScript code).

    >>> matching_words("jwt validation flow", "JWT Validation in the auth flow")
    2
    """
    lower = text.lower()
    return sum(len(word) > 3 and word in lower for word in asked.lower().split())


State = Literal["HOT", "WARM", "COLD", "DORMANT", "ARCHIVED"]


def state(retrievability: float, age_days: float) -> State:
    """The attention state of a memory, by how well it is remembered and how old it is.

    >>> state(0.8, 5), state(0.019, 91), state(0.019, 90)
    ('HOT', 'ARCHIVED', 'DORMANT')
    """
    if retrievability < 0.02 and age_days > 90:
        return "ARCHIVED"
    bounds: tuple[tuple[float, State], ...] = ((0.80, "HOT"), (0.25, "WARM"), (0.05, "COLD"))
    return next((name for least, name in bounds if retrievability >= least), "DORMANT")


def interval(stability: float, retention: float) -> int:
    """Days until a memory is remembered with the given probability only; at least 1."""
    return max(1, int(stability / FSRS_FACTOR * (retention**-2 - 1) + 0.5))


def coactivated(base: float, related: int, similarity: float) -> float:
    """A score raised by how many related memories there are, of which mean similarity in percent.

    >>> coactivated(0.5, 5, 90)
    0.635
    """
    return base + 0.15 * (related / 5) * (similarity / 100)


def fused_advanced(meaning: float, keywords: float, matches: int) -> float:
    """The JavaScript code's other fusion: the larger score, a part of the smaller one, and 0.1 a matching word.

    >>> fused_advanced(0.5, 0.5, 1)
    0.725
    """
    both = 0.25 * max(0.0, min(meaning, keywords))
    return min(1.0, max(meaning, keywords) + both + min(0.1 * matches, 0.2))


def by_intent(similarity: float, importance: float, weights: tuple[float, float, float]) -> float:
    """The intent score of the TypeScript library: similarity in percent, importance 0..1; recency is not read."""
    _, important, similar = weights
    return similarity / 100 * similar + importance * important
