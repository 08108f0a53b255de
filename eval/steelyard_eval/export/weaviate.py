"""Weaviate: the parameters of a hybrid query.

Field names, allowed values and ranges follow Weaviate's documentation of hybrid search: `alpha` in 0..1 is the
weight of the vector search, 1 - alpha that of the keyword search; relativeScoreFusion is min-max (a list of equal
values is all 1, as here), rankedFusion is 1 / (RANK + 60). Weights are divided by their sum to become alpha, which
multiplies every score by one number and so changes no order.
"""

from __future__ import annotations

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import RECIPROCAL
from steelyard.grammar import number_text
from steelyard_eval.export.base import Lost, Parts, Target
from steelyard_eval.export.hybrid import QUERY_TEXT, QUERY_VECTOR, Fusion, boosted, hybrid, index_notes, keyword_of

K = (59.0, 60.0)
"""The constant is fixed. Versions have counted ranks from 1 (our k = 60) and from 0 (our k = 59)."""
LACKS = {
    "none": "normalize=none adds raw scores, and relativeScoreFusion always normalizes them",
    "max": "normalize=max has no counterpart: relativeScoreFusion also subtracts the minimum, another ranking",
    "zscore": "normalize=zscore has no counterpart beside relativeScoreFusion and rankedFusion",
    "rank": "normalize=rank has no counterpart: rankedFusion adds 1 / (rank + 60), not evenly spaced ranks",
}


def write(config: SearchConfig) -> Parts:
    """The arguments of ``collection.query.hybrid`` as `hybrid`."""
    fusion = hybrid(config.effective, (RECIPROCAL, "minmax"), LACKS)
    arguments: dict[str, object] = {
        "query": QUERY_TEXT,
        "vector": QUERY_VECTOR,
        "alpha": _alpha(fusion),
        "fusion_type": "rankedFusion" if fusion.kind == RECIPROCAL else "relativeScoreFusion",
        "limit": config.limit,
    }
    if (keyword := keyword_of(fusion.weights)) is not None:
        arguments["query_properties"] = boosted(config, keyword)
    return {"hybrid": arguments}, [*index_notes(config, fusion.weights), *_notes(fusion)]


def _alpha(fusion: Fusion) -> float:
    """The vector's share of the weights; 1 or 0 for one list alone."""
    keyword = keyword_of(fusion.weights)
    if fusion.kind == "alone":
        return 0.0 if keyword else 1.0
    if keyword is None or "vector" not in fusion.weights:
        raise Lost(f"a fusion of {', '.join(fusion.weights)} alone: a hybrid query fuses keywords and vectors")
    if fusion.kind == RECIPROCAL and fusion.k not in K:
        raise Lost(f"k={number_text(fusion.k)}: the constant of rankedFusion is fixed at 60")
    return fusion.shares()["vector"]


def _notes(fusion: Fusion) -> list[str]:
    notes = ["fusion_type is HybridFusion.RANKED or HybridFusion.RELATIVE_SCORE in the Python client"]
    if fusion.kind == RECIPROCAL:
        notes.append("its constant is 60 with ranks from 1 in some versions, from 0 in others (k = 59 here)")
    if fusion.kind != "alone" and not all(fusion.weights.values()):
        notes.append("at alpha 0 or 1 it runs one search only; here the other list follows with score 0")
    notes.append("how deep the two searches go is no parameter of the query")
    return notes


TARGET = Target(
    "weaviate",
    "Weaviate documentation, hybrid search: alpha and fusion type",
    "tune rrf(fts, vector, k=60) or weighted_sum(0.5*fts, 0.5*vector, normalize=minmax)",
    write,
)
