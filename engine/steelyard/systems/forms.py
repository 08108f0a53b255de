"""Result forms that several systems share, and how a system writes its own."""

from __future__ import annotations

import math
from typing import Any

from steelyard.base.fields import TIME_FIELDS, format_time
from steelyard.memory.entry import Hit

SNIPPET = 120
"""How many characters of a text a scan shows."""


def shown_fields(hit: Hit, form: str) -> dict[str, object]:
    """The fields of a result as JSON values: ``title what=text`` is the title, and the text under the name what.

    Beside the fields of an entry there are `score`, and `has_details`: whether there are any.
    """
    names = (name.partition("=") for name in form.split())
    return {name: _shown(hit, field or name) for name, _, field in names}


def _shown(hit: Hit, field: str) -> Any:  # noqa: ANN401 -- a field of any type
    if field in ("score", "has_details"):
        return hit.score if field == "score" else bool(hit.entry.details)
    value = getattr(hit.entry, field)
    if field in TIME_FIELDS:
        return format_time(value)
    return list(value) if isinstance(value, tuple) else value


def scan_result(hit: Hit) -> dict[str, Any]:
    """Summarise a result, before whole entries are read by id (Soleri's document).

    The snippet is the first 120 characters of the text; the token estimate is a quarter of the number of
    characters of title, text, context and why.
    """
    entry = hit.entry
    size = sum(map(len, (entry.title, entry.text, entry.context, entry.why)))
    shown = shown_fields(hit, "id title score type domain tags")
    return shown | {"snippet": entry.text[:SNIPPET], "tokenEstimate": math.ceil(size / 4)}


def plain_result(hit: Hit) -> dict[str, object]:
    """Show a result of a system that documents no form of its own."""
    return shown_fields(hit, "id title text tags project score created_at")
