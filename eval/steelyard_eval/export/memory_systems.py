"""What memory systems for agents take: arguments of their functions, or their own file of weights."""

import math
import re

from steelyard.base.errors import ConfigError
from steelyard.base.extensions import extension
from steelyard.config import SearchConfig
from steelyard.finish import Cut
from steelyard.fusion import RECIPROCAL, Expr, Fallback, Linear, Signal, Term
from steelyard.grammar import Duration
from steelyard.systems import find_system
from steelyard_eval.export.base import Fusion, Loss, Parts, Target, date_of, integer, weights_of, with_priors

POOL = 2
"""Both lists are this many times the limit deep."""


def _echovault(config: SearchConfig) -> Parts:
    """fts_weight, vec_weight, min_fts_results and limit of ``tiered(fts, then=weighted_sum(...))``.

    ``tiered_search`` takes `limit` and `min_fts_results`, ``merge_results`` takes `fts_weight` and `vec_weight`.
    Source: EchoVault's document, tiered search strategy and hybrid score merging. The two weights need not sum to
    1, so they stay as they are.
    """
    tiered = config.effective.describe()
    if not isinstance(tiered, Fallback) or tiered.first != Signal("fts"):
        raise Loss("it searches keywords first, and merges only where they find too little: tiered(fts, ...)")
    weights, sizes = _merged(tiered.then), {"min_fts_results": tiered.min_results, "limit": config.limit}
    return {"fts_weight": weights["fts"], "vec_weight": weights["vector"], **sizes}, _other_depths(config)


def _other_depths(config: SearchConfig) -> list[str]:
    """Notes on lists that were tuned at another depth than `POOL` times the limit."""
    deep = POOL * config.limit
    return [
        f"lists are {POOL} x limit = {deep} deep there; {name} was tuned at depth {depth}"
        for name, depth in config.depths.items()
        if name in ("vector", "fts") and depth != deep
    ]


def _merged(then: Expr) -> dict[str, float]:
    merged = then.describe()
    if not isinstance(merged, Linear) or merged.scale == RECIPROCAL:
        raise Loss(f"{then} as the second tier: it merges by a weighted sum only")
    losses = []
    if merged.scale != "max":
        losses.append(f"normalize={merged.scale} has no counterpart: it divides every list by its maximum")
    weights = weights_of(merged.terms)
    if set(weights) != {"fts", "vector"}:
        losses.append(f"a sum of {', '.join(sorted(weights))}: it merges fts and vector, no more and no less")
    if losses:
        raise Loss(*losses)
    return weights


ECHOVAULT = Target(
    "echovault",
    "EchoVault's document, search: tiered_search and merge_results",
    "tune tiered(fts, min_results=3, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))",
    _echovault,
)


HALF_LIFE_HOURS = math.log(0.5) / math.log(0.99)
"""68.97: the half-life of 0.99 per hour."""
MAX_LIMIT = 100
MAX_K = 2**31 - 1
_ROUNDED = 0.1  # hours: 69h is how the half-life is written


def _moltnet(config: SearchConfig) -> Parts:
    """w_relevance, w_recency, w_importance, rrf_k and limit.

    ``w_relevance * rrf + w_recency * 0.99^hours + w_importance * importance / 10``, with RRF over the vector list
    and the full-text list, both of weight 1. Source: MoltNet's document, scoring model; the decay and the ranges
    stand in the function it links to. Its API takes weights of 0 to 1: larger ones are divided by the largest,
    which multiplies every score by one number and so changes no order.
    """
    retrievers, priors = with_priors(config.effective) or ([Term(1.0, config.effective)], [])
    if len(retrievers) != 1:
        raise Loss(f"{len(retrievers)} terms find entries: its relevance is one rrf(vector, fts)")
    relevance, k = _relevance(retrievers[0])
    weights = {"w_relevance": relevance, "w_recency": 0.0, "w_importance": 0.0}
    for term in priors:
        weights[_prior(term)] += term.weight
    if not any(weights.values()):
        raise Loss("all weights are 0, so nothing decides the order")
    largest = max(1.0, *weights.values())
    parts = {
        **{name: weight / largest for name, weight in weights.items()},
        "rrf_k": integer(k, "k", 0, MAX_K),
        "limit": integer(config.limit, "limit", 1, MAX_LIMIT),
    }
    notes = _other_depths(config)
    since = {term.expr.option("since") for term in priors if term.weight and isinstance(term.expr, Signal)}
    if "update" in since:
        notes.append("its recency runs from the last access, else creation; here from the update")
    if largest > 1:
        notes.append("weights are divided by the largest, since its API takes 0 to 1; no order changes")
    return parts, notes


def _relevance(term: Term) -> tuple[float, float]:
    """The weight of the relevance term, and k. Equal weights inside RRF multiply the whole term."""
    rrf = term.expr.describe()
    if not isinstance(rrf, Linear) or rrf.scale != RECIPROCAL:
        raise Loss(f"{term.expr} as relevance: it is one rrf(vector, fts)")
    if rrf.beyond:
        raise Loss(rrf.beyond)
    lists = weights_of(rrf.terms)
    if set(lists) != {"vector", "fts"}:
        raise Loss(f"rrf over {', '.join(lists)}: it fuses vector and fts, no more and no less")
    if lists["vector"] != lists["fts"]:
        raise Loss("its RRF has no weights: vector and fts count the same")
    return term.weight * lists["fts"], rrf.k


def _prior(term: Term) -> str:
    expr = term.expr
    if expr == Signal("importance"):
        return "w_importance"
    if not isinstance(expr, Signal) or expr.name != "recency":
        raise Loss(f"{expr} is no part of its score; it adds recency and importance only")
    date_of(expr)
    half_life = expr.option("half_life")
    if not isinstance(half_life, Duration) or abs(half_life.seconds / 3600 - HALF_LIFE_HOURS) > _ROUNDED:
        raise Loss(f"half_life={half_life}: its decay is fixed at 0.99 per hour, a half-life of 69h")
    return "w_recency"


MOLTNET = Target(
    "moltnet",
    "MoltNet's document, scoring model: arguments of diary_search",
    "tune weighted_sum(1*rrf(vector, fts, k=60), 0*recency(half_life=69h, since=access), 0*importance)",
    _moltnet,
)


HALF_LIFE_DAYS = 365
NAMES = {
    "tfidf": "semantic",
    "cosine": "vector",
    "severity": "severity",
    "recency": "temporalDecay",
    "tags": "tagOverlap",
    "domain": "domainMatch",
}
"""Its names of our signals."""


def _soleri(config: SearchConfig) -> Parts:
    """The six weights, under `weights`, and the limit.

    The total is the sum of ``weight * signal``, and the weights sum to 1. Source: Soleri's document, six scoring
    signals and adaptive weights. Weights with another sum are divided by it: that multiplies every score by one
    number, so no order of vault entries changes.
    """
    strategy = config.effective.describe()
    if not isinstance(strategy, Linear) or strategy.scale == RECIPROCAL:
        raise Loss(f"{config.effective} is no weighted sum, and its score is one")
    losses = [why for term in strategy.terms if (why := _why_not(term.expr))]
    if strategy.scale != "none":
        losses.append(f"normalize={strategy.scale} has no counterpart: it adds the signals as they are")
    if not any(term.weight for term in strategy.terms):
        losses.append("all weights are 0, and they must sum to 1")
    if losses:
        raise Loss(*dict.fromkeys(losses))
    table = dict.fromkeys(NAMES.values(), 0.0)
    for term in strategy.terms:
        table[NAMES[_name(term.expr)]] += term.weight
    shares = Fusion("none", table).shares()
    notes = ["after 30 feedback entries it adapts these weights itself"]
    if table != shares:
        notes.append(
            "weights are divided by their sum, since its weights sum to 1; no order of vault entries changes, "
            "their place among memories (a fixed 0.5) may"
        )
    if table["temporalDecay"]:
        notes.append("an entry with valid_until decays by its window there")
    return {"weights": shares, "limit": config.limit}, notes


def _name(expr: Expr) -> str:
    return expr.name if isinstance(expr, Signal) else ""


def _why_not(expr: Expr) -> str:
    """Why a term is none of the six signals; empty when it is one."""
    name = _name(expr)
    if not isinstance(expr, Signal) or name not in NAMES:
        hint = {"fts": "; its keyword signal is tfidf", "vector": "; its vector signal is cosine"}.get(name, "")
        return f"{expr} is none of its six signals{hint}"
    half_life = expr.option("half_life")
    if expr.option("since") == "access":
        return f"{expr}: its decay runs from the last update, not from the last access"
    if isinstance(half_life, Duration) and half_life.seconds != HALF_LIFE_DAYS * 86_400:
        return f"half_life={half_life}: its decay is fixed at a half-life of 365d"
    return ""


SOLERI = Target(
    "soleri",
    "Soleri's document, six scoring signals",
    "tune weighted_sum over tfidf, cosine, severity, recency(half_life=365d), tags and domain",
    _soleri,
)


def _spec_kit(config: SearchConfig) -> Parts:
    """The file's parts, with a note on every setting that importing it does not bring back."""
    own_file = extension("spec_kit_file")
    try:
        record = own_file.write_foreign(config)
    except ConfigError as error:
        raise Loss(str(error)) from None
    zeros = [name for name in ("k", "convergenceBonus", "graphWeightBoost") if not record["rrfFusion"][name]]
    ours, theirs = _settings(config), _settings(own_file.read_foreign(record))
    notes = [
        "the program reads only smartRanking and maxTriggersPerMemory of this file; rrfFusion and crossEncoder "
        "have to be set in its code",
        *([f"the program takes 0 for not given: {', '.join(zeros)}"] if zeros else []),
        *(
            f"not in the file: {name} is {ours.get(name)}, which comes back as {theirs.get(name)}"
            for name in sorted(ours.keys() | theirs.keys())
            if ours.get(name) != theirs.get(name)
        ),
    ]
    return record, notes


def _settings(config: SearchConfig) -> dict[str, object]:
    """The limit, the stages, and the settings of the lists that are read, each by its name."""
    read = config.effective.signals & config.retrievers.keys()
    facts: dict[str, object] = {"limit": config.limit, "rewrite": config.rewrite, "rerank": config.rerank.provider}
    facts["finish"] = ", ".join(str(stage) for stage in config.finish if stage != Cut(config.limit)) or "cut alone"
    for name in read:
        options = {key: value for key, value in config.retrievers[name].to_json().items() if key != "model"}
        facts |= {f"retrievers.{name}.{key}": value for key, value in options.items()}
    return facts


SPEC_KIT = Target(
    "spec_kit",
    "system-spec-kit's configs/search-weights.json, version 1.8.0",
    "tune boost(rrf(vector, bm25, 1.5*graph, k=60, bonus=times(0.1)), promised, document_type)",
    _spec_kit,
)


_THRESHOLD = re.compile(r"(?:threshold|cut)=(-?[0-9.e-]+)")
FIXED = (
    "its layers, their weights, its ladder of thresholds and its intents are fixed in its program; "
    "it can only be given a limit and a threshold"
)


def _cortex_mem(config: SearchConfig) -> Parts:
    """The options of a search: the limit, and the threshold where it is not the program's own.

    Source: Cortex-Mem's document, search parameters (8.1) and usage examples (10).
    """
    ask = find_system(config.name if config.system == "cortex_mem" else "cortex_mem").searching.ask
    if ask is None or config.by_intent:
        raise Loss(FIXED)
    if str(ask(None, config.limit, False)[0]) == str(config.strategy):
        return {"options": {"limit": config.limit}}, []
    for threshold in sorted({float(text) for text in _THRESHOLD.findall(str(config.strategy))}):
        if str(ask(threshold, config.limit, False)[0]) == str(config.strategy):
            return {"options": {"limit": config.limit, "threshold": threshold}}, []
    if config.system != "cortex_mem":
        raise Loss(FIXED)
    from steelyard_eval.export.strategy_changes import changes

    lost = changes(ask(None, config.limit, False)[0], config.strategy)
    ours = not any(change.name.startswith("strategy") for change in lost)
    raise Loss(FIXED, *(map(str, lost) if ours else ()))


CORTEX_MEM = Target(
    "cortex_mem",
    "Cortex-Mem's document, search parameters",
    "tune nothing but its threshold; steelyard search --system cortex_mem --set threshold=0.4 shows what one does",
    _cortex_mem,
    intents=True,
)
