"""Result forms that several systems share."""

from __future__ import annotations

import math
from typing import Any

from steelyard.base.fields import format_time
from steelyard.memory.entry import Hit

SNIPPET = 120
"""How many characters of a text a scan shows."""


def scan_result(hit: Hit) -> dict[str, Any]:
    """Summarise a result, before whole entries are read by id (Soleri's document).

    The snippet is the first 120 characters of the text; the token estimate is a quarter of the number of
    characters of title, text, context and why.
    """
    entry = hit.entry
    size = sum(map(len, (entry.title, entry.text, entry.context, entry.why)))
    return {
        "id": entry.id,
        "title": entry.title,
        "score": hit.score,
        "type": entry.type,
        "domain": entry.domain,
        "tags": list(entry.tags),
        "snippet": entry.text[:SNIPPET],
        "tokenEstimate": math.ceil(size / 4),
    }


def plain_result(hit: Hit) -> dict[str, Any]:
    """Show a result of a system that documents no form of its own."""
    entry = hit.entry
    return {
        "id": entry.id,
        "title": entry.title,
        "text": entry.text,
        "tags": list(entry.tags),
        "project": entry.project,
        "score": hit.score,
        "created_at": format_time(entry.created_at),
    }
