"""EchoVault: searches by keywords, and embeds the query only when they find too little."""

import json
from dataclasses import replace
from typing import Any

from steelyard.base.errors import DimensionMismatchError, EmbedderError
from steelyard.base.fields import format_time
from steelyard.fusion import parse_strategy
from steelyard.memory.entry import Hit
from steelyard.memory.query import Filters
from steelyard.memory.text import fts_quote
from steelyard.retrievers.kinds import Reading
from steelyard.stores.base import KeywordIndex
from steelyard.systems.base import ResultForms, SearchSettings, System, shown_fields

FIELDS = ("title", "text", "why", "impact", "tags", "category", "project", "source")
POINTER = ("id", "title", "category", "tags", "project", "source", "created_at", "has_details")
"""The fields that the real program shows of a recent memory that fills up a context."""
OTHER_COLUMNS = ("rowid", "file_path", "section_anchor", "related_files", "updated_count")
"""Columns of the real program's table that no other system has; an entry keeps them among its extra fields."""
DELETED = "deleted"
"""The kind of an entry that the real program deleted: it is hidden, but FTS5 and the vectors still contain it."""
_MERGED = parse_strategy("weighted_sum(0.3*fts, 0.7*vector, normalize=max)")
_KEYWORDS = parse_strategy("weighted_sum(1*fts, normalize=max)")


def prefix_or(text: str) -> str:
    """Quote every blank-separated term as a prefix and join them by OR; empty for empty text.

    >>> prefix_or("auth token")
    '"auth"* OR "token"*'
    """
    return " OR ".join(f"{fts_quote(term)}*" for term in text.split())


def prefix_or_bare(text: str) -> str:
    """Do the same as `prefix_or` without escaping quotes inside a term, like the real program."""
    return " OR ".join(f'"{term}"*' for term in text.split())


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


def _with_nulls(hit: Hit) -> dict[str, Any]:
    """The documented pointer with null for missing texts, as the real program stores them."""
    shown = result(hit)
    return shown | {name: shown[name] or None for name in ("why", "impact", "source")}


DOCUMENTED = System(
    name="echovault",
    reading=Reading(
        index=KeywordIndex("echovault", FIELDS, "porter unicode61"),
        recipe="{title} {text} {why} {impact} {tags}",
        match=prefix_or,
    ),
    searching=SearchSettings(
        strategy=parse_strategy(f"tiered(fts, min_results=3, then={_MERGED})"),
        retrievers=("fts", "vector"),
        depth=lambda limit: 2 * limit,
        limit=5,
        field_weights=dict.fromkeys(FIELDS, 1.0),
        filters={"vector": "after_cut"},
    ),
    showing=ResultForms(result),
    semantic="auto",
    topup_recent=True,
)

SHIPPED = replace(
    DOCUMENTED,
    profile="shipped",
    reading=replace(DOCUMENTED.reading, match=prefix_or_bare, corpus=Filters.of({"kind": {"none": [DELETED]}})),
    searching=replace(
        DOCUMENTED.searching,
        similarity="l2",
        strategy=parse_strategy(f"tiered({_KEYWORDS}, min_results=3, then={_MERGED})"),
        keywords_only=_KEYWORDS,
        survives=(EmbedderError, DimensionMismatchError),
        # Booleans mean always and never, unknown words mean auto.
        mode=lambda mode: "auto" if isinstance(mode, str) else "always" if mode else "never",
    ),
    showing=ResultForms(present=row, scan=tool_result),
    # A text of blanks is a query, which is then refused.
    no_query=lambda text: not text,
)
