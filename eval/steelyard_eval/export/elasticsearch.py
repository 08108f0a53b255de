"""Elasticsearch: the mapping of an index, and a search request with an ``rrf`` or a ``linear`` retriever.

Field names, allowed values and ranges follow Elasticsearch's reference of the RRF retriever (weights since 9.2),
the linear retriever (8.18) and dense_vector. Weights need no sum, so they stay as they are. ``minmax`` is unmoved
by the form of a vector score there, (1 + cosine) / 2; sums of raw scores are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import RECIPROCAL
from steelyard_eval.export.base import Parts, Target
from steelyard_eval.export.hybrid import (
    KEYWORDS,
    QUERY_VECTOR,
    Fusion,
    dims,
    fields,
    hybrid,
    index_notes,
    keyword_of,
    multi_match,
    whole,
    window,
)

MAX_WINDOW = 10_000
"""index.max_result_window unless an index sets another, and the most num_candidates takes."""
MAX_K = 2**31 - 1
SENT = "send what stands under index once, PUT /INDEX, and what stands under search, POST /INDEX/_search"
EMBEDDED = (
    "embedding holds the vector of an entry's text_for_embedding (dataset.json), <query vector> that of the query",
    "where the model is deployed there, write query_vector_builder in the place of query_vector: "
    '{"text_embedding": {"model_id": "MODEL", "model_text": "<query text>"}}',
    "index_options hnsw compares whole vectors; the default of newer versions rounds them, which moves entries",
)
FILTERED = "to filter, write filter into the outermost retriever, and map the fields that it names under index"
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
    """The body of ``PUT /INDEX`` as `index`, and that of ``POST /INDEX/_search`` as `search`."""
    fusion = hybrid(config.effective, (RECIPROCAL, "minmax"), LACKS)
    depth, notes = window(config, fusion.weights, "rank_window_size", MAX_WINDOW)
    retrievers = {name: _retriever(config, name, depth) for name in fusion.weights}
    notes = [SENT, *notes, *index_notes(config, fusion.weights)]
    notes += [*(EMBEDDED if "vector" in fusion.weights else ()), FILTERED]
    index = {"mappings": {"properties": _properties(config, fusion.weights)}}
    if fusion.kind == "alone":
        alone = next(iter(retrievers.values()))
        return {"index": index, "search": {"size": config.limit, "retriever": alone}}, notes
    if fusion.kind == RECIPROCAL:
        body = _rrf(fusion, retrievers, notes)
    else:
        body = {"linear": {"retrievers": _weighted(fusion, retrievers, {"normalizer": "minmax"})}}
    for settings in body.values():
        settings["rank_window_size"] = depth
    return {"index": index, "search": {"size": config.limit, "retriever": body}}, notes


def _properties(config: SearchConfig, names: Mapping[str, float]) -> dict[str, object]:
    """The fields that the lists read: keywords are stemmed as ours are, and vectors are not rounded."""
    keyword = keyword_of(names)
    text = {"type": "text", "analyzer": "english"}
    properties: dict[str, object] = dict.fromkeys(fields(config, keyword), text) if keyword else {}
    if "vector" in names:
        size = dims(config)
        vector = {"type": "dense_vector", "similarity": "cosine", "index_options": {"type": "hnsw"}}
        properties["embedding"] = vector | ({"dims": size} if size else {})
    return properties


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
    "Elasticsearch reference: RRF retriever (weights 9.2), linear retriever (8.18), dense_vector",
    "tune rrf(fts, vector, k=60) or weighted_sum(0.5*fts, 0.5*vector, normalize=minmax)",
    write,
)
