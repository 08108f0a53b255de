"""What else stands in system-spec-kit's TypeScript code: searches and rankings that its hybrid search goes around.

They are here to be compared with recordings of that code, and are reachable from Python alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from steelyard.memory.entry import Entry
from steelyard.memory.forgetting import DAY

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
