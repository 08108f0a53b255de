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


CURVE = {
    "floor": "floor of",
    "at": "floor",
    "lost": "lost",
    "answered": "questions answered",
    "words": "words left",
}
"""The columns of `curves`, with their headings."""
EVERY = 4
"""Every so many points of a curve are shown."""


def curves(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """What other floors of the same contenders would lose, answer and show: risk against coverage."""
    return [
        {
            "floor": one["label"],
            "at": f"{point['floor']:.4f}",
            "lost": f"{point['lost']:.1%}",
            "answered": f"{point['answered']:.0%}",
            "words": f"{point['words']:.0%}",
        }
        for one in record.get("silence", ())
        for point in one.get("curve", ())[::EVERY]
    ]


def _row(one: Mapping[str, Any]) -> dict[str, str]:
    row = {"label": one["label"], "answered": str(one["answered"]), "silenced": str(one["silenced"])}
    row |= {"words": f"{one['words']:.0f}", "saved": "-", "lost": "-", "false": "-", "interval": "-"}
    if "lost" in one:
        row |= {"saved": f"{one['saved']:.0%}", "lost": f"{one['lost']:.1%}"}
    if "none" not in one:
        return row
    share = f"[{one['low']:.2f}, {one['high']:.2f}]"
    return row | {"false": f"{one['false_answers']} of {one['none']}", "interval": share}
