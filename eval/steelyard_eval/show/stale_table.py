"""How often lists show what is stale above what took its place, as rows for the terminal and for reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = {
    "label": "stale above current",
    "queries": "queries",
    "interval": "share [95%]",
    "more": "more than the baseline",
    "fewer": "fewer",
    "entry": "most often",
}
"""The columns of `rows`, with their headings."""


def rows(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """A row for each contender of a comparison's document, where entries were replaced or expire."""
    return [_row(one) for one in record.get("stale", ())]


def _row(one: Mapping[str, Any]) -> dict[str, str]:
    shown = sorted(id_ for ids in one["entries"].values() for id_ in ids)
    return {
        "label": one["label"],
        "queries": f"{one['stale']} of {one['queries']}",
        "interval": f"{one['share']:.2f} [{one['low']:.2f}, {one['high']:.2f}]",
        "more": str(one["more"]),
        "fewer": str(one["fewer"]),
        "entry": max(shown, key=shown.count, default="-"),
    }
