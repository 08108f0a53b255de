"""Retrievers find candidates (query -> entries with scores); scorers compute a number for every candidate.

To add one, write a module with its declaration and name it in the list below.
"""

from __future__ import annotations

from steelyard.retrievers import bm25, fts, graph, tfidf, tsquery, vector
from steelyard.retrievers.kinds import (
    Dependent,
    Parameter,
    Retriever,
    RetrieverConfig,
    RetrieverKind,
    Scorer,
    ScorerKind,
)

RETRIEVER_KINDS: dict[str, RetrieverKind] = {
    kind.name: kind
    for kind in (
        fts.FTS,
        bm25.BM25,
        vector.VECTOR,
        vector.L0,
        vector.L1,
        vector.L2,
        vector.UNINDEXED,
        fts.MEMORY,
        vector.CONSTITUTIONAL,
        graph.GRAPH,
    )
}

SCORER_KINDS: dict[str, ScorerKind] = {
    kind.name: kind
    for kind in (
        tfidf.TFIDF,
        vector.COSINE_SCORE,
        tsquery.LEXICAL,
        bm25.TERMS,
        vector.INSIDE,
    )
}

__all__ = [
    "RETRIEVER_KINDS",
    "SCORER_KINDS",
    "Dependent",
    "Parameter",
    "Retriever",
    "RetrieverConfig",
    "RetrieverKind",
    "Scorer",
    "ScorerKind",
    "layers_read",
]


def layers_read(signals: set[str]) -> set[str]:
    """Return the layers of vectors that these signals compare queries with."""
    kinds: list[RetrieverKind | ScorerKind] = [*RETRIEVER_KINDS.values(), *SCORER_KINDS.values()]
    return {kind.layer for kind in kinds if kind.name in signals and kind.layer}
