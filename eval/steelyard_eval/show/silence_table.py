"""What contenders show and keep silent about, as rows for the terminal and for reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = {
    "label": "what is shown",
    "answered": "answered",
    "silenced": "silenced",
    "words": "words a query",
    "saved": "words saved",
    "lost": "relevant lost",
    "false": "false answers",
    "interval": "their share [95%]",
}
"""The columns of `rows`, with their headings."""


def rows(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """A row for each contender of a comparison's document, where floors or unanswered queries ask for it."""
    return [_row(one) for one in record.get("silence", ())]


def _row(one: Mapping[str, Any]) -> dict[str, str]:
    row = {"label": one["label"], "answered": str(one["answered"]), "silenced": str(one["silenced"])}
    row |= {"words": f"{one['words']:.0f}", "saved": "-", "lost": "-", "false": "-", "interval": "-"}
    if "lost" in one:
        row |= {"saved": f"{one['saved']:.0%}", "lost": f"{one['lost']:.1%}"}
    if "none" not in one:
        return row
    share = f"[{one['low']:.2f}, {one['high']:.2f}]"
    return row | {"false": f"{one['false_answers']} of {one['none']}", "interval": share}
