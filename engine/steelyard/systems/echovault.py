"""EchoVault: searches by keywords, and embeds the query only when they find too little."""

import json
import re
from typing import Any

from steelyard.base.errors import DimensionMismatchError, EmbedderError
from steelyard.base.fields import format_time
from steelyard.memory.entry import Hit
from steelyard.memory.text import fts_quote
from steelyard.systems.base import WORD_LISTS, generations, shown_fields

POINTER = ("id", "title", "category", "tags", "project", "source", "created_at", "has_details")
"""The fields that the real program shows of a recent memory that fills up a context."""
OTHER_COLUMNS = ("rowid", "file_path", "section_anchor", "related_files", "updated_count")
"""Columns of the real program's table that no other system has; an entry keeps them among its extra fields."""
DELETED = "deleted"
"""The kind of an entry that the real program deleted: it is hidden, but FTS5 and the vectors still contain it."""
ARCHIVED = "archived"
"""The kind of an entry that the newest program archived: it is hidden, and stays in its store."""
STOP_WORDS = frozenset(WORD_LISTS["echovault"].split())


def prefix_or(text: str) -> str:
    """Quote every blank-separated term as a prefix and join them by OR; empty for empty text.

    >>> prefix_or("auth token")
    '"auth"* OR "token"*'
    """
    return " OR ".join(f"{fts_quote(term)}*" for term in text.split())


def prefix_or_bare(text: str) -> str:
    """Do the same as `prefix_or` without escaping quotes inside a term, like the real program."""
    return " OR ".join(f'"{term}"*' for term in text.split())


def prefix_or_words(text: str) -> str:
    """Do the same for the words of the text, each once: lower-cased, of two letters or more, without stop words.

    A query without such words is searched by all its words.

    >>> prefix_or_words("the auth-token of v1.2, auth")
    '"auth"* OR "token"* OR "v1"*'
    """
    words = re.findall(r"\w+", text.lower())
    kept = [word for word in words if len(word) > 1 and word not in STOP_WORDS] or words or [text.strip()]
    return " OR ".join(f'"{word}"*' for word in dict.fromkeys(kept) if word)


def result(hit: Hit) -> dict[str, Any]:
    """Show the documented memory pointer; the body that `has_details` announces is read by id."""
    form = "id title what=text why impact category tags project source score has_details created_at"
    return shown_fields(hit, form)


def row(hit: Hit) -> dict[str, object]:
    """Show the database row that the real program returns: tags as JSON text, has_details as 0 or 1.

    A memory that fills up a context has only the fields of `POINTER`.
    """
    entry = hit.entry
    shown = _with_nulls(hit) | {"tags": json.dumps(entry.tags), "has_details": int(bool(entry.details))}
    for name in ("created_at", "updated_at"):
        shown[name] = format_time(getattr(entry, name)).replace("Z", "+00:00") or None
    if hit.score is None:
        return {name: shown[name] for name in POINTER}
    return shown | {name: entry.extra.get(name) for name in OTHER_COLUMNS}


def tool_result(hit: Hit) -> dict[str, object]:
    """Show what the real program's search tool does: the date alone, a score of two decimals, no source."""
    shown = {name: value for name, value in _with_nulls(hit).items() if name != "source"}
    score = None if hit.score is None else round(hit.score, 2)
    return shown | {"created_at": shown["created_at"][:10], "score": score}


def no_text(text: str) -> bool:
    """Whether a text counts as no query: one of blanks is a query, which is then refused."""
    return not text


def mode(told: str | bool) -> str:
    """Booleans mean always and never, unknown words mean auto."""
    return "auto" if isinstance(told, str) else "always" if told else "never"


def _with_nulls(hit: Hit) -> dict[str, Any]:
    """The documented pointer with null for missing texts, as the real program stores them."""
    shown = result(hit)
    return shown | {name: shown[name] or None for name in ("why", "impact", "source")}


SURVIVES = EmbedderError, DimensionMismatchError
PROFILES = DOCUMENTED, SHIPPED, NEWEST = generations("echovault", globals())
