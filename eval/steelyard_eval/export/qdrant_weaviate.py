"""Qdrant and Weaviate: queries of vector databases."""

from steelyard.config import SearchConfig
from steelyard.fusion import RECIPROCAL, Expr, Signal, Term, leaves
from steelyard.grammar import number_text
from steelyard.signals.formulas import UNSTATED
from steelyard_eval.export import base
from steelyard_eval.export.base import Fusion, Loss, Parts, Target

MAX_K = 2**31 - 2
NOW = "<time of the search, RFC 3339>"
LACKS_QDRANT = {
    "none": (
        "normalize=none over keyword scores adds raw BM25, which is another number there: the ranking would change"
    ),
    "max": "normalize=max has no counterpart: rrf goes by ranks, dbsf by mean and deviation",
    "minmax": "normalize=minmax has no counterpart: rrf goes by ranks, dbsf by mean and deviation",
    "zscore": (
        "normalize=zscore has no counterpart: dbsf lifts an entry found at the mean above one that was not found"
    ),
    "rank": "normalize=rank has no counterpart: rrf adds reciprocal ranks, not evenly spaced ones",
}


def _qdrant(config: SearchConfig) -> Parts:
    """The body of ``POST /collections/NAME/points/query`` as `query`.

    Field names and ranges follow Qdrant's documentation of hybrid queries (``rrf`` with `k` 1.16, `weights` 1.17)
    and of score boosting (``formula`` 1.14, `exp_decay` with a midpoint at `scale`).

    Its RRF is 1 / (k + (r + 1) / w - 1) with ranks r from 0. For equal weights that is our 1 / (k - 1 + rank), so
    our k is one less than its. A weight w divides the rank instead of multiplying the score, which is another
    ranking, except for our k = 0, where w / rank comes out. A common weight is left out.
    """
    strategy = config.effective
    if (terms := base.with_priors(strategy)) is None:
        fusion = base.hybrid(strategy, (RECIPROCAL, "dbsf"), LACKS_QDRANT)
        return {"query": {**_search(config, fusion), "limit": config.limit}}, _notes_qdrant(config, fusion)
    retrievers, priors = terms
    if len(retrievers) != 1:
        raise Loss(LACKS_QDRANT["none"])
    fusion = base.hybrid(retrievers[0].expr, (RECIPROCAL, "dbsf"), LACKS_QDRANT, scores=True)
    if fusion.kind == "alone" and "vector" not in fusion.weights:
        raise Loss(LACKS_QDRANT["none"])
    inner = _search(config, fusion)
    inner["limit"] = max(config.limit, sum(base.depth_of(config, name) for name in fusion.weights))
    formula, defaults = _formula(retrievers[0].weight, priors)
    query = {"prefetch": inner, "query": {"formula": formula, "defaults": defaults}, "limit": config.limit}
    return {"query": query}, [*_notes_qdrant(config, fusion), *_prior_notes(priors)]


def _search(config: SearchConfig, fusion: Fusion) -> dict[str, object]:
    """The lists as prefetches under their fusion; one list as a query of its own."""
    lists = [_prefetch(config, name) for name in fusion.weights]
    return lists[0] if fusion.kind == "alone" else {"prefetch": lists, "query": _fusion(fusion)}


def _prefetch(config: SearchConfig, name: str) -> dict[str, object]:
    depth = max(base.depth_of(config, name), config.limit)
    if name in base.KEYWORDS:
        return {"query": {"text": base.QUERY_TEXT, "model": "qdrant/bm25"}, "using": "keywords", "limit": depth}
    return {"query": base.QUERY_VECTOR, "using": "embedding", "limit": depth}


def _fusion(fusion: Fusion) -> dict[str, object]:
    if fusion.kind == "dbsf":
        if not fusion.equal:
            raise Loss("dbsf has no weights there: write equal ones")
        return {"fusion": "dbsf"}
    settings: dict[str, object] = {"k": base.integer(fusion.k, "k", 0, MAX_K) + 1}
    if not fusion.equal:
        if fusion.k:
            raise Loss("weights of rrf divide ranks there instead of multiplying scores: the ranking would change")
        settings["weights"] = list(fusion.weights.values())
    return {"rrf": settings}


def _formula(weight: float, priors: list[Term]) -> tuple[dict[str, object], dict[str, object]]:
    """The weighted sum of the prefetch's score and the priors, and what stands for missing values."""
    terms: list[object] = [{"mult": [weight, "$score"]}]
    defaults: dict[str, object] = {}
    for term in priors:
        expression, missing = _prior(term.expr)
        terms.append({"mult": [term.weight, *expression]})
        defaults |= missing
    return {"sum": terms}, defaults


def _prior(expr: Expr) -> tuple[list[object], dict[str, object]]:
    """The factors of a prior, and the defaults of the payload keys in it."""
    if expr == Signal("importance"):
        return [0.1, "importance"], {"importance": UNSTATED}
    if not isinstance(expr, Signal) or expr.name != "recency":
        raise Loss(f"{expr} is computed from what no formula of ours asks for")
    date, seconds = base.date_of(expr), base.half_life_of(expr)
    decay = {"x": {"datetime_key": date}, "target": {"datetime": NOW}, "scale": seconds, "midpoint": 0.5}
    return [{"exp_decay": decay}], {date: NOW}


def _notes_qdrant(config: SearchConfig, fusion: Fusion) -> list[str]:
    notes = base.index_notes(config, fusion.weights)
    if "vector" in fusion.weights:
        size = f"size {base.dims(config)}, " if base.dims(config) else ""
        notes.append(f"the vector named embedding needs {size}distance Cosine")
    if set(base.KEYWORDS) & set(fusion.weights):
        notes.append("the sparse vector named keywords needs modifier idf")
    if fusion.kind == RECIPROCAL:
        notes.append("ranks count from 0 there, so its k is ours plus 1; rrf with k needs Qdrant 1.16")
    if fusion.kind == RECIPROCAL and not fusion.equal:
        notes.append("weights of rrf need Qdrant 1.17")
    notes += [
        f"{name} was tuned at depth {base.depth_of(config, name)}, and goes down to the limit there"
        for name in fusion.weights
        if base.depth_of(config, name) < config.limit
    ]
    return notes


def _prior_notes(priors: list[Term]) -> list[str]:
    signals = [leaf for term in priors for leaf in leaves(term.expr)]
    notes = []
    for date in base.dates_of(signals):
        notes.append(f"payload {date} is {base.DATES[date]}; a date after the search decays there")
    notes += base.window_notes(signals)
    if any(signal.name == "importance" for signal in signals):
        notes.append("payload importance is a number of 1 to 10")
    return notes


QDRANT = Target(
    "qdrant",
    "Qdrant documentation: hybrid queries (rrf with k 1.16, weights 1.17), score boosting (formula 1.14)",
    "tune rrf(fts, vector, k=60), alone or in weighted_sum(1*rrf(fts, vector, k=60), 0*recency(half_life=30d))",
    _qdrant,
)


K = (59.0, 60.0)
"""The constant is fixed. Versions have counted ranks from 1 (our k = 60) and from 0 (our k = 59)."""
LACKS_WEAVIATE = {
    "none": "normalize=none adds raw scores, and relativeScoreFusion always normalizes them",
    "max": "normalize=max has no counterpart: relativeScoreFusion also subtracts the minimum, another ranking",
    "zscore": "normalize=zscore has no counterpart beside relativeScoreFusion and rankedFusion",
    "rank": "normalize=rank has no counterpart: rankedFusion adds 1 / (rank + 60), not evenly spaced ranks",
}


def _weaviate(config: SearchConfig) -> Parts:
    """The arguments of ``collection.query.hybrid`` as `hybrid`.

    Field names, allowed values and ranges follow Weaviate's documentation of hybrid search: `alpha` in 0..1 is the
    weight of the vector search, 1 - alpha that of the keyword search; relativeScoreFusion is min-max (a list of
    equal values is all 1, as here), rankedFusion is 1 / (RANK + 60). Weights are divided by their sum to become
    alpha, which multiplies every score by one number and so changes no order.
    """
    fusion = base.hybrid(config.effective, (RECIPROCAL, "minmax"), LACKS_WEAVIATE)
    arguments: dict[str, object] = {
        "query": base.QUERY_TEXT,
        "vector": base.QUERY_VECTOR,
        "alpha": _alpha(fusion),
        "fusion_type": "rankedFusion" if fusion.kind == RECIPROCAL else "relativeScoreFusion",
        "limit": config.limit,
    }
    if (keyword := base.keyword_of(fusion.weights)) is not None:
        arguments["query_properties"] = base.boosted(config, keyword)
    notes = base.index_notes(config, fusion.weights)
    notes.append("fusion_type is HybridFusion.RANKED or HybridFusion.RELATIVE_SCORE in the Python client")
    if fusion.kind == RECIPROCAL:
        notes.append("its constant is 60 with ranks from 1 in some versions, from 0 in others (k = 59 here)")
    if fusion.kind != "alone" and not all(fusion.weights.values()):
        notes.append("at alpha 0 or 1 it runs one search only; here the other list follows with score 0")
    notes.append("how deep the two searches go is no parameter of the query")
    return {"hybrid": arguments}, notes


def _alpha(fusion: Fusion) -> float:
    """The vector's share of the weights; 1 or 0 for one list alone."""
    keyword = base.keyword_of(fusion.weights)
    if fusion.kind == "alone":
        return 0.0 if keyword else 1.0
    if keyword is None or "vector" not in fusion.weights:
        raise Loss(f"a fusion of {', '.join(fusion.weights)} alone: a hybrid query fuses keywords and vectors")
    if fusion.kind == RECIPROCAL and fusion.k not in K:
        raise Loss(f"k={number_text(fusion.k)}: the constant of rankedFusion is fixed at 60")
    return fusion.shares()["vector"]


WEAVIATE = Target(
    "weaviate",
    "Weaviate documentation, hybrid search: alpha and fusion type",
    "tune rrf(fts, vector, k=60) or weighted_sum(0.5*fts, 0.5*vector, normalize=minmax)",
    _weaviate,
)
