"""What every system is measured against: one retriever alone, and `plain` for strategies of one's own."""

from __future__ import annotations

from dataclasses import replace

from steelyard.config import LISTS as LISTS_NAME
from steelyard.fusion import parse_strategy
from steelyard.stores.base import KeywordIndex
from steelyard.systems.base import System, plain_result
from steelyard.table import LAYERS
from steelyard.text import CONTENT, words_or

POOL = 100
"""How deep the baselines retrieve, at least; strategies of one's own are fused from such lists."""


def _baseline(name: str, strategy: str, retrievers: tuple[str, ...]) -> System:
    return System(
        name=name,
        profile="documented",
        index=KeywordIndex("content", CONTENT, "porter unicode61"),
        match=words_or,
        recipe="{title}\n{text}",
        strategy=parse_strategy(strategy),
        retrievers=retrievers,
        depth=lambda limit: max(POOL, limit),
        present=plain_result,
        field_weights=dict.fromkeys(CONTENT, 1.0),
    )


FTS = _baseline("fts", "fts", ("fts",))
BM25 = _baseline("bm25", "bm25", ("bm25",))
VECTOR = _baseline("vector", "vector", ("vector",))
PLAIN = _baseline("plain", "rrf(fts, vector, k=60)", ("fts", "bm25", "vector", *LAYERS))
LISTS = replace(
    _baseline(LISTS_NAME, "bm25", ()),
    index=KeywordIndex("none", (), "none"),
    recipe="",
)
"""Strategies over recorded lists of other engines; it retrieves nothing itself, so it cannot search live."""
