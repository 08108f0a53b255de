"""A system in one file: a diary that wants every word of the query, and prefers what is recent."""

from __future__ import annotations

from typing import Any

from steelyard.base.fields import format_time
from steelyard.fusion import parse_strategy
from steelyard.memory.entry import Hit
from steelyard.memory.text import quote, unique_words
from steelyard.retrievers.kinds import Reading
from steelyard.stores.base import KeywordIndex
from steelyard.systems.base import ResultForms, SearchSettings, System

FIELDS = ("title", "text")


def words_and(text: str) -> str:
    """Every word of the query as an FTS5 expression.

    >>> words_and("rotate the token")
    '"rotate" AND "token"'
    """
    return " AND ".join(map(quote, unique_words(text)))


def result(hit: Hit) -> dict[str, Any]:
    """A page of the diary."""
    return {"id": hit.entry.id, "day": format_time(hit.entry.created_at)[:10], "text": hit.entry.text}


DOCUMENTED = System(
    name="diary",
    profile="documented",
    reading=Reading(index=KeywordIndex("diary", FIELDS), recipe="{title}\n{text}", match=words_and),
    searching=SearchSettings(
        strategy=parse_strategy("weighted_sum(0.5*fts, 0.5*recency(half_life=30d), normalize=max)"),
        retrievers=("fts",),
        depth=lambda limit: 2 * limit,
    ),
    showing=ResultForms(result),
)
