"""How far layered searches went and how long each layer took, as rows for the terminal and for reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = {
    "label": "layered search",
    "queries": "queries",
    "at_threshold": "at threshold",
    "relaxed": "lower step",
    "full_search": "all details",
    "without_result": "no result",
    "reached": "L0, L1, L2 found",
    "p50": "p50 ms L0, L1, L2, all",
    "p99": "p99 ms L0, L1, L2, all",
}
"""The columns of `rows`, with their headings."""


def rows(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """A row for each layered contender of a comparison's document; latencies where they were measured."""
    timing = {row["label"]: row for row in record.get("timing", ())}
    return [_row(one, timing.get(one["label"], {})) for one in record.get("layers", ())]


def _row(one: Mapping[str, Any], took: Mapping[str, Any]) -> dict[str, str]:
    counts = {name: str(one[name]) for name in ("queries", "at_threshold", "full_search", "without_result")}
    reached = ", ".join(f"{one['hit_rates'][layer]:.0%}" for layer in ("l0", "l1", "l2"))
    relaxed = str(sum(one["relaxed"].values()))
    row = {"label": one["label"], **counts, "relaxed": relaxed, "reached": reached}
    return row | {name: _milliseconds(took, f"{name}_ms") for name in ("p50", "p99")}


def _milliseconds(took: Mapping[str, Any], name: str) -> str:
    """One percentile of each layer and of the whole search; a dash where it was not measured."""
    layers = took.get("layers", {})
    found = [layers.get(layer, {}).get(name) for layer in ("l0", "l1", "l2")] + [took.get(name)]
    return ", ".join("-" if value is None else f"{value:.2f}" for value in found)
