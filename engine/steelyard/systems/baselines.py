"""Baselines: systems of a single retriever, and `plain`, which custom strategies run on."""

from __future__ import annotations

from dataclasses import replace

from steelyard import config
from steelyard.fusion import parse_strategy
from steelyard.memory.text import CONTENT
from steelyard.retrievers import RETRIEVER_KINDS
from steelyard.retrievers.reading import Reading
from steelyard.stores.base import KeywordIndex
from steelyard.systems.base import ResultForms, SearchSettings, System, plain_result
from steelyard.systems.cortex_mem import directory_of

POOL = 100
"""The least depth of the baselines, and of the lists that custom strategies are fused from."""
EVERY = tuple(name for name, kind in RETRIEVER_KINDS.items() if kind.aside is None)
"""Every retriever that searches the corpus itself."""


def _baseline(name: str, strategy: str, retrievers: tuple[str, ...]) -> System:
    return System(
        name=name,
        profile="documented",
        reading=Reading(
            index=KeywordIndex("content", CONTENT, "porter unicode61"),
            recipe="{title}\n{text}",
            directory=directory_of,
        ),
        searching=SearchSettings(
            strategy=parse_strategy(strategy),
            retrievers=retrievers,
            depth=lambda limit: max(POOL, limit),
            field_weights=dict.fromkeys(CONTENT, 1.0),
        ),
        showing=ResultForms(plain_result),
    )


FTS = _baseline("fts", "fts", ("fts",))
BM25 = _baseline("bm25", "bm25", ("bm25",))
VECTOR = _baseline("vector", "vector", ("vector",))
PLAIN = _baseline("plain", "rrf(fts, vector, k=60)", EVERY)
LISTS = replace(
    _baseline(config.LISTS, "bm25", ()),
    reading=Reading(index=KeywordIndex("none", (), "none"), recipe=""),
)
"""Runs strategies over recorded lists of other engines; it has no retriever, so it cannot search live."""
