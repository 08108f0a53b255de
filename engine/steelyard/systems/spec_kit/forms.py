"""How system-spec-kit shows a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.finish import Rerank
from steelyard.fusion import RECIPROCAL, Linear
from steelyard.memory.entry import Hit
from steelyard.signals import PRIORS
from steelyard.systems.base import shown_fields
from steelyard.table.facts import NO_FACTS
from steelyard.table.signal_table import RERANK

if TYPE_CHECKING:
    from steelyard.results import SearchResult

SNIPPET = 200
"""Ours: the document names no length."""
RANKS = {"vectorRank": "vector", "bm25Rank": "bm25", "ftsRank": "fts", "graphRank": "graph"}
"""The document's names of the sources' ranks, and ours of FTS5's, which is shown where FTS5 was asked."""


def result(hit: Hit) -> dict[str, object]:
    """What a hit alone has; `result_within` adds what depends on the whole result."""
    form = (
        "id title specFolder=project filePath=uri documentType=document_type memoryType=memory_type "
        "importanceTier=importance_tier triggerPhrases=tags createdAt=created_at score"
    )
    return shown_fields(hit, form)


def result_within(hit: Hit, whole: SearchResult) -> dict[str, object]:
    """The documented result: its RRF score where there was one, which sources found it at which ranks, a snippet.

    A re-ranked one has the re-ranker's score, the length penalty and the product of both, by which it stands where
    it does; its `score` is that before, as of the results behind it.
    """
    asked = {name: source for name, source in RANKS.items() if source != "fts" or source in whole.table.columns}
    places = {name: whole.place(hit, source) for name, source in asked.items()}
    sources = [name.removesuffix("Rank") for name, place in places.items() if place is not None]
    shown = result(hit) | places
    shown |= {
        "rrfScore": _reciprocal(whole, hit),
        "sources": sources,
        "sourceCount": len(sources),
        "intent": whole.query.intent,
        "intentConfidence": whole.query.confidence,
        "snippet": snippet_around(hit.entry.text, whole.query.keywords),
    }
    return shown | _reranked(whole, hit)


def _reciprocal(whole: SearchResult, hit: Hit) -> float | None:
    """The score of the fusion by ranks, its bonus included, before any factor and any sorting again."""
    fusion, scores = whole.fusion
    about, value = fusion.describe(), float(scores[whole.row(hit)])
    return value if isinstance(about, Linear) and about.scale == RECIPROCAL and not np.isnan(value) else None


def _reranked(whole: SearchResult, hit: Hit) -> dict[str, Any]:
    row = whole.row(hit)
    scores = whole.table.columns.get(RERANK)
    if scores is None or np.isnan(scores[row]):
        return {}
    facts = whole.table.about is not NO_FACTS
    penalty = float(PRIORS["length"](whole.table, {}).values[row]) if facts else 1.0
    factors = {"crossEncoderScore": float(scores[row]), "lengthPenalty": penalty}
    last = [stage for stage in whole.finish if stage.RESCORES][-1]
    fused = {"score": float(whole.fused[row])} if isinstance(last, Rerank) else {}
    return factors | fused | {"finalScore": factors["crossEncoderScore"] * penalty}


def snippet_around(text: str, words: str) -> str:
    """At most 200 characters of a text, from a little before the first word of the query that it holds.

    >>> snippet_around("We keep sessions as random tokens.", "tokens")
    'We keep sessions as random tokens.'
    """
    lower = text.lower()
    places = [place for word in words.lower().split() if len(word) > 2 and (place := lower.find(word)) >= 0]
    begin = max(0, min(places, default=0) - SNIPPET // 4)
    return text[begin : begin + SNIPPET]
