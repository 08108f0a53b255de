"""Elasticsearch: a search request with an ``rrf`` or a ``linear`` retriever.

Field names, allowed values and ranges follow Elasticsearch's reference of the RRF retriever (weights since 9.2)
and the linear retriever (8.18). Weights need no sum, so they stay as they are. ``minmax`` is unmoved by the form
of a vector score there, (1 + cosine) / 2; sums of raw scores are not.
"""

from __future__ import annotations

from typing import Any

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import RECIPROCAL
from steelyard_eval.export.base import Parts, Target
from steelyard_eval.export.hybrid import (
    KEYWORDS,
    QUERY_VECTOR,
    Fusion,
    dims,
    hybrid,
    index_notes,
    multi_match,
    whole,
    window,
)

MAX_WINDOW = 10_000
"""index.max_result_window unless an index sets another, and the most num_candidates takes."""
MAX_K = 2**31 - 1
LACKS = {
    "none": (
        "normalize=none adds raw scores, and they are others there: (1 + cosine) / 2 for a vector, Lucene's "
        "BM25 for keywords, which changes the ranking"
    ),
    "max": "normalize=max has no counterpart: minmax also subtracts the minimum, which changes the ranking",
    "zscore": "normalize=zscore has no counterpart among minmax, l2_norm and none",
    "rank": "normalize=rank has no counterpart among minmax, l2_norm and none",
}


def write(config: SearchConfig) -> Parts:
    """The body of ``POST /INDEX/_search`` as `search`."""
    fusion = hybrid(config.effective, (RECIPROCAL, "minmax"), LACKS)
    depth, notes = window(config, fusion.weights, "rank_window_size", MAX_WINDOW)
    retrievers = {name: _retriever(config, name, depth) for name in fusion.weights}
    notes = ["send only what stands under search: POST /INDEX/_search", *notes]
    notes += index_notes(config, fusion.weights)
    if "vector" in fusion.weights:
        notes.append(f"map the field embedding as dense_vector with {dims(config)}, similarity cosine")
    if fusion.kind == "alone":
        return {"search": {"size": config.limit, "retriever": next(iter(retrievers.values()))}}, notes
    if fusion.kind == RECIPROCAL:
        body = _rrf(fusion, retrievers, notes)
    else:
        body = {"linear": {"retrievers": _weighted(fusion, retrievers, {"normalizer": "minmax"})}}
    for settings in body.values():
        settings["rank_window_size"] = depth
    return {"search": {"size": config.limit, "retriever": body}}, notes


def _retriever(config: SearchConfig, name: str, depth: int) -> dict[str, object]:
    if name in KEYWORDS:
        return {"standard": {"query": multi_match(config, name)}}
    return {"knn": {"field": "embedding", "query_vector": QUERY_VECTOR, "k": depth, "num_candidates": depth}}


def _rrf(fusion: Fusion, retrievers: dict[str, dict[str, Any]], notes: list[str]) -> dict[str, Any]:
    """Lists of equal weight in the form that every version takes; a common weight moves nothing."""
    lists = list(retrievers.values()) if fusion.equal else _weighted(fusion, retrievers, {})
    if not fusion.equal:
        notes.append("weights of rrf need Elasticsearch 9.2")
    return {"rrf": {"retrievers": lists, "rank_constant": whole(fusion.k, "k", 1, MAX_K)}}


def _weighted(
    fusion: Fusion, retrievers: dict[str, dict[str, object]], more: dict[str, str]
) -> list[dict[str, object]]:
    return [{"retriever": r, "weight": fusion.weights[name], **more} for name, r in retrievers.items()]


TARGET = Target(
    "elasticsearch",
    "Elasticsearch reference: RRF retriever (weights 9.2), linear retriever (8.18)",
    "tune rrf(fts, vector, k=60) or weighted_sum(0.5*fts, 0.5*vector, normalize=minmax)",
    write,
)
