"""The direct search, `semantic_search` of the document: an entry is found by each layer that is similar enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.finish import AtLeast, Cut, Stage
from steelyard.fusion import Expr, parse_strategy
from steelyard.memory.entry import Entry, Hit
from steelyard.systems.cortex_mem.snippets import beginning, snippet

if TYPE_CHECKING:
    from steelyard.results import SearchResult

FULL = parse_strategy("comb_max(l0, l1, l2, normalize=none)")
"""Everything by its best layer."""
LEAST = 0.5
"""How similar results are at least, where nobody asks for another number."""


def direct(threshold: float | None, limit: int) -> tuple[Expr, tuple[Stage, ...]]:
    """The strategy and the stages of a direct search."""
    return FULL, (AtLeast(LEAST if threshold is None else threshold), Cut(limit))


@dataclass(frozen=True)
class LayerRow:
    """A layer of an entry that is similar enough: l0, l1 or l2, its cosine and its text."""

    entry: Entry
    layer: str
    score: float
    text: str


def rows(found: SearchResult) -> list[LayerRow]:
    """The results of a direct search, best first, as many as its limit."""
    least = max(stage.score for stage in found.finish if isinstance(stage, AtLeast))
    limit = min(stage.limit for stage in found.finish if isinstance(stage, Cut))
    every = [row for hit in found.hits for row in _layers(hit, found) if row.score >= least]
    return sorted(every, key=lambda row: (-row.score, uri_or_id(row.entry).encode(), row.layer))[:limit]


def _layers(hit: Hit, found: SearchResult) -> Iterator[LayerRow]:
    """A hit once for each of its layers; the cosine of one that it lacks is NaN, which reaches nothing."""
    entry, columns = hit.entry, found.table.columns
    for layer, text in (("l0", entry.l0), ("l1", entry.l1), ("l2", entry.text)):
        if layer in columns:
            yield LayerRow(entry, layer, float(columns[layer][found.row(hit)]), text)


def uri_or_id(entry: Entry) -> str:
    """The URI of an entry, or its id where it has none."""
    return entry.uri or entry.id


def rows_shown(found: SearchResult, content: bool) -> list[dict[str, object]]:
    """The rows with their snippets, and with their texts where these are asked for."""
    shown = []
    for row in rows(found):
        part = snippet(row.text, found.query.text)
        excerpt = {"snippet": part.text, "highlights": [list(span) for span in part.highlights]}
        shown.append(_shown(row) | excerpt | ({"content": row.text} if content else {}))
    return shown


def rows_shown_shipped(found: SearchResult, content: bool) -> list[dict[str, object]]:
    """The rows as the real program shows them, always with their texts."""
    return [_shown(row) | {"snippet": beginning(row.text), "content": row.text} for row in rows(found)]


def _shown(row: LayerRow) -> dict[str, object]:
    return {"uri": uri_or_id(row.entry), "score": row.score, "layer": row.layer}
