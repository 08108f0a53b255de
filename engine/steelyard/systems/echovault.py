"""EchoVault: keywords first; the query is embedded only when they find too little."""

from __future__ import annotations

from typing import Any

from steelyard.entry import Hit
from steelyard.fields import format_time
from steelyard.fusion import parse_strategy
from steelyard.stores.base import KeywordIndex
from steelyard.systems.base import System
from steelyard.text import prefix_or

FIELDS = ("title", "text", "why", "impact", "tags", "category", "project", "source")


def result(hit: Hit) -> dict[str, Any]:
    """The documented memory pointer; the body behind `has_details` is read by id."""
    entry = hit.entry
    return {
        "id": entry.id,
        "title": entry.title,
        "what": entry.text,
        "why": entry.why,
        "impact": entry.impact,
        "category": entry.category,
        "tags": list(entry.tags),
        "project": entry.project,
        "source": entry.source,
        "score": hit.score,
        "has_details": bool(entry.details),
        "created_at": format_time(entry.created_at),
    }


DOCUMENTED = System(
    name="echovault",
    profile="documented",
    index=KeywordIndex("echovault", FIELDS, "porter unicode61"),
    match=prefix_or,
    recipe="{title} {text} {why} {impact} {tags}",
    strategy=parse_strategy("tiered(fts, min_results=3, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))"),
    retrievers=("fts", "vector"),
    depth=lambda limit: 2 * limit,
    present=result,
    limit=5,
    field_weights=dict.fromkeys(FIELDS, 1.0),
    filters={"vector": "after_cut"},
    semantic="auto",
    topup_recent=True,
)
