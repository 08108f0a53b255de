"""Result forms that belong to no system alone."""

from __future__ import annotations

import math
from typing import Any

from steelyard.entry import Hit
from steelyard.fields import format_time

SNIPPET = 120
"""Characters of a text that a scan shows."""


def scan_result(hit: Hit) -> dict[str, Any]:
    """The first look at a result, before whole entries are read by id (Soleri's document).

    The snippet is the first 120 characters of the text, the token estimate a quarter of the characters of
    title, text, context and why.
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
    """The result form of systems that document none."""
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
