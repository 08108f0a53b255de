"""OpenSearch and Elasticsearch: pipelines, mappings, and search requests."""

from collections.abc import Mapping
from typing import Any

from steelyard.config import SearchConfig
from steelyard.fusion import RECIPROCAL
from steelyard_eval.export import base
from steelyard_eval.export.base import Fusion, Parts, Target

MAX_RANK_CONSTANT = 10_000
MAX_WINDOW = 10_000
"""index.max_result_window, unless an index sets another."""
LACKS_OPENSEARCH = {
    "none": "normalize=none adds raw scores, and the normalization processor always normalizes them",
    "max": "normalize=max has no counterpart: min_max also subtracts the minimum, which changes the ranking",
    "theoretical": "normalize=theoretical has no counterpart: bounds there are numbers, ours follow the query",
    "dbsf": "normalize=dbsf has no counterpart: z_score there raises every score up to the mean to 0.001",
    "zscore": (
        "normalize=zscore: z_score there raises every score up to the mean to 0.001, which changes the ranking"
    ),
    "rank": "normalize=rank has no counterpart: no technique spaces a list evenly by rank",
}


def _opensearch(config: SearchConfig) -> Parts:
    """The body of ``PUT /_search/pipeline/NAME`` as `pipeline`, that of ``POST /INDEX/_search`` as `search`.

    Field names, allowed values and ranges follow OpenSearch's documentation of the normalization processor (2.10),
    the score ranker processor (2.19; its weights are documented after 3.0) and the hybrid query
    (`pagination_depth`, 2.19). Weights lie in 0..1 and must sum to 1: others are divided by their sum, which
    multiplies every score by one number and so changes no order.

    `lower_bounds` of min_max came with 3.0. With 0 for both lists they make our tmm, because 0 is the low end of
    BM25 and of (1 + cosine) / 2, which a vector scores there.

    ``z_score`` is not used: the plugin (neural-search, ZScoreNormalizer) raises every score at or below the mean
    to 0.001, and divides by the sample deviation. Nor is ``l2``: no strategy here normalizes that way.
    """
    fusion = base.hybrid(config.effective, (RECIPROCAL, "minmax", "tmm"), LACKS_OPENSEARCH)
    depth, notes = base.window(config, fusion.weights, "pagination_depth", MAX_WINDOW)
    vector = {"knn": {"embedding": {"vector": base.QUERY_VECTOR, "k": depth}}}
    queries = [_keywords(config, name) if name in base.KEYWORDS else vector for name in fusion.weights]
    notes += base.index_notes(config, fusion.weights)
    if "vector" in fusion.weights:
        size = f"dimension {base.dims(config)}, " if base.dims(config) else ""
        notes.append(
            f"the field embedding is a knn_vector with {size}space_type cosinesimil, its index has index.knn"
        )
    if fusion.kind == "alone":
        sent = "send only what stands under search: POST /INDEX/_search"
        return {"search": {"size": config.limit, "query": queries[0]}}, [sent, *notes]
    query = {"hybrid": {"queries": queries, "pagination_depth": depth}}
    sent = (
        "send what stands under pipeline first, PUT /_search/pipeline/NAME, then what stands under search, "
        "POST /INDEX/_search?search_pipeline=NAME"
    )
    notes = [sent, *notes, "depth and normalization count by shard: use one shard"]
    processor, more = _processor(fusion)
    pipeline = {"description": f"Steelyard: {config.effective}", "phase_results_processors": [processor]}
    return {"pipeline": pipeline, "search": {"size": config.limit, "query": query}}, [*notes, *more]


def _keywords(config: SearchConfig, name: str) -> dict[str, object]:
    """The keyword query of both, which adds the scores of the fields."""
    return {"multi_match": {"query": base.QUERY_TEXT, "type": "most_fields", "fields": base.boosted(config, name)}}


def _processor(fusion: Fusion) -> tuple[dict[str, object], list[str]]:
    """What fuses the lists, in a pipeline, and what to know of it."""
    weights = {"parameters": {"weights": list(fusion.shares().values())}}
    if fusion.kind == RECIPROCAL:
        ranker = {"technique": "rrf", "rank_constant": base.integer(fusion.k, "k", 1, MAX_RANK_CONSTANT)}
        notes = [] if fusion.equal else ["weights of rrf need an OpenSearch after 3.0; 2.19 and 3.0 document none"]
        return {"score-ranker-processor": {"combination": ranker | ({} if fusion.equal else weights)}}, notes
    normalization: dict[str, object] = {"technique": "min_max"}
    notes = ["the lowest score of a list counts 0.001 there and 0 here"]
    if fusion.kind == "tmm":
        bounds = [{"mode": "apply", "min_score": 0.0} for _ in fusion.weights]
        normalization["parameters"] = {"lower_bounds": bounds}
        notes = ["lower_bounds need an OpenSearch of 3.0"]
    combination = {"technique": "arithmetic_mean", **weights}
    return {"normalization-processor": {"normalization": normalization, "combination": combination}}, notes


OPENSEARCH = Target(
    "opensearch",
    "OpenSearch documentation: normalization processor (2.10), score ranker processor (2.19), hybrid query",
    "tune rrf(fts, vector, k=60) or weighted_sum(0.5*fts, 0.5*vector, normalize=minmax)",
    _opensearch,
)


MAX_K = 2**31 - 1
SENT = "send what stands under index once, PUT /INDEX, and what stands under search, POST /INDEX/_search"
EMBEDDED = (
    "embedding holds the vector of an entry's text_for_embedding (dataset.json), <query vector> that of the query",
    "where the model is deployed there, write query_vector_builder in the place of query_vector: "
    '{"text_embedding": {"model_id": "MODEL", "model_text": "<query text>"}}',
    "index_options hnsw compares whole vectors; the default of newer versions rounds them, which moves entries",
)
FILTERED = "to filter, write filter into the outermost retriever, and map the fields that it names under index"
LACKS_ELASTICSEARCH = {
    "none": (
        "normalize=none adds raw scores, and they are others there: (1 + cosine) / 2 for a vector, Lucene's "
        "BM25 for keywords, which changes the ranking"
    ),
    "max": "normalize=max has no counterpart: minmax also subtracts the minimum, which changes the ranking",
    "zscore": "normalize=zscore has no counterpart among minmax, l2_norm and none",
    "rank": "normalize=rank has no counterpart among minmax, l2_norm and none",
}


def _elasticsearch(config: SearchConfig) -> Parts:
    """The body of ``PUT /INDEX`` as `index`, and that of ``POST /INDEX/_search`` as `search`.

    Field names, allowed values and ranges follow Elasticsearch's reference of the RRF retriever (weights since
    9.2), the linear retriever (8.18) and dense_vector. Weights need no sum, so they stay as they are. ``minmax``
    is unmoved by the form of a vector score there, (1 + cosine) / 2; sums of raw scores are not.
    """
    fusion = base.hybrid(config.effective, (RECIPROCAL, "minmax"), LACKS_ELASTICSEARCH)
    depth, notes = base.window(config, fusion.weights, "rank_window_size", MAX_WINDOW)
    retrievers = {name: _retriever(config, name, depth) for name in fusion.weights}
    notes = [SENT, *notes, *base.index_notes(config, fusion.weights)]
    notes += [*(EMBEDDED if "vector" in fusion.weights else ()), FILTERED]
    index = {"mappings": {"properties": _properties(config, fusion.weights)}}
    if fusion.kind == "alone":
        alone = next(iter(retrievers.values()))
        return {"index": index, "search": {"size": config.limit, "retriever": alone}}, notes
    weighted = [{"retriever": one, "weight": fusion.weights[name]} for name, one in retrievers.items()]
    settings: dict[str, Any] = {"rank_window_size": depth}
    if fusion.kind == RECIPROCAL:
        # lists of equal weight in the form that every version takes; a common weight moves nothing
        settings["retrievers"] = list(retrievers.values()) if fusion.equal else weighted
        settings["rank_constant"] = base.integer(fusion.k, "k", 1, MAX_K)
        notes += [] if fusion.equal else ["weights of rrf need Elasticsearch 9.2"]
    else:
        settings["retrievers"] = [{**one, "normalizer": "minmax"} for one in weighted]
    body = {"rrf" if fusion.kind == RECIPROCAL else "linear": settings}
    return {"index": index, "search": {"size": config.limit, "retriever": body}}, notes


def _properties(config: SearchConfig, names: Mapping[str, float]) -> dict[str, object]:
    """The fields that the lists read: keywords are stemmed as ours are, and vectors are not rounded."""
    keyword = base.keyword_of(names)
    text = {"type": "text", "analyzer": "english"}
    properties: dict[str, object] = dict.fromkeys(base.fields(config, keyword), text) if keyword else {}
    if "vector" in names:
        size = base.dims(config)
        vector = {"type": "dense_vector", "similarity": "cosine", "index_options": {"type": "hnsw"}}
        properties["embedding"] = vector | ({"dims": size} if size else {})
    return properties


def _retriever(config: SearchConfig, name: str, depth: int) -> dict[str, object]:
    if name in base.KEYWORDS:
        return {"standard": {"query": _keywords(config, name)}}
    return {"knn": {"field": "embedding", "query_vector": base.QUERY_VECTOR, "k": depth, "num_candidates": depth}}


ELASTICSEARCH = Target(
    "elasticsearch",
    "Elasticsearch reference: RRF retriever (weights 9.2), linear retriever (8.18), dense_vector",
    "tune rrf(fts, vector, k=60) or weighted_sum(0.5*fts, 0.5*vector, normalize=minmax)",
    _elasticsearch,
)
