"""Vespa: a rank profile, the fragment of a schema.

Keywords, functions and their meaning follow Vespa's documentation of phased ranking, cross-hit normalization
(``normalize_linear``, ``reciprocal_rank`` with k) and ranking expressions. Both normalizers go over every hit that
global-phase re-ranks, so

- ``reciprocal_rank_fusion`` would rank a hit without a keyword match too: the sum is written out, each keyword
  term inside an ``if``;
- ``normalize_linear`` of keywords would take its minimum over those hits, which are 0, so this is refused.

A vector has a value for every hit, found by it or not. Weights need no sum, so they stay as they are.
"""

import re

from steelyard.config import SearchConfig
from steelyard.fusion import RECIPROCAL, Expr, Linear, Signal, leaves
from steelyard.grammar import number_text
from steelyard.retrievers import RETRIEVERS
from steelyard.signals.formulas import UNSTATED
from steelyard_eval.export import base
from steelyard_eval.export.base import Loss, Parts, Target

RAW_KEYWORDS = "raw keyword scores: bm25 there has another idf, so their sum with others ranks otherwise"
LACKS = {
    "max": "normalize=max has no counterpart: normalize_linear also subtracts the minimum, another ranking",
    "zscore": "normalize=zscore has no counterpart among normalize_linear and reciprocal_rank",
    "rank": "normalize=rank has no counterpart: reciprocal_rank is 1 / (k + rank), not evenly spaced",
}
MINMAX_KEYWORDS = (
    "normalize=minmax over keywords: normalize_linear takes the minimum over all hits, those without a keyword "
    "match too, which changes the ranking"
)


def write(config: SearchConfig) -> Parts:
    """The rank profile as `profile`."""
    strategy = config.effective
    found = strategy.signals & RETRIEVERS
    # layers are refused where they stand
    lists = sorted(found, key=base.LISTS.index) if found <= {*base.LISTS} else []
    score = _name(strategy) if isinstance(strategy, Signal) else _score(strategy)
    if not lists:
        raise Loss("no term finds entries of its own: there is neither a keyword list nor a vector list")
    if set(base.KEYWORDS) <= set(lists):
        raise Loss("fts and bm25 are two keyword lists, and the profile has one; keep one of them")
    depths = {name: base.depth_of(config, name) for name in lists}
    lines = ["inputs {", "    query(embedding) tensor<float>(x[384])", "}"] if "vector" in lists else []
    lines += _functions(config, strategy, lists)
    # a signal alone needs the first phase only; the others let every hit through it
    first = " + ".join("keywords" if name in base.KEYWORDS else "semantic" for name in lists)
    alone = isinstance(strategy, Signal)
    lines += ["first-phase {", f"    expression: {score if alone else first}", "}"]
    if not alone:
        count = max(config.limit, sum(depths.values()))
        lines += ["global-phase {", f"    rerank-count: {count}", f"    expression: {score}", "}"]
    body = "".join(f"    {line}\n" for line in lines)
    return {"profile": f"rank-profile steelyard {{\n{body}}}\n"}, _notes(config, strategy, depths)


def _score(expr: Expr) -> str:
    """An expression of one score a hit; Lost where ranking expressions have none with the same order."""
    told = expr.describe()
    if told.beyond or not isinstance(told, Linear):
        raise Loss(told.beyond)
    if told.scale not in (RECIPROCAL, "none", "minmax"):
        raise Loss(base.reason_for_fusion(told.scale, LACKS))
    if told.scale == RECIPROCAL:
        return " + ".join(
            _reciprocal(name, weight, told.k) for name, weight in base.weights_of(told.terms).items()
        )
    terms = ((number_text(term.weight), _part(term.expr, told.scale == "none")) for term in told.terms)
    return " + ".join(f"{weight} * {part}" for weight, part in terms)


def _reciprocal(signal: str, weight: float, k: float) -> str:
    factor = "" if weight == 1 else f"{number_text(weight)} * "
    if signal == "vector":
        return f"{factor}reciprocal_rank(semantic, {number_text(k)})"
    return f"{factor}if (keywords > 0, reciprocal_rank(keywords, {number_text(k)}), 0)"


def _part(expr: Expr, raw: bool) -> str:
    """A part of a sum of scores as they are, or by minmax."""
    if isinstance(expr, Signal):
        if expr.name in base.KEYWORDS:
            raise Loss(RAW_KEYWORDS if raw else MINMAX_KEYWORDS)
        return _name(expr) if raw else f"normalize_linear({_name(expr)})"
    if not raw:
        raise Loss(f"normalize=minmax over {expr}: a normalizer takes a feature or a function, not another fusion")
    return f"({_score(expr)})"


def _name(signal: Signal) -> str:
    """The function that computes a signal."""
    names = {"fts": "keywords", "bm25": "keywords", "vector": "semantic", "importance": "importance"}
    if signal.name == "recency":
        since = "access_" if base.date_of(signal) == "last_accessed_at" else ""
        return f"recency_{since}{re.sub(r'[^0-9]', '_', number_text(base.half_life_of(signal)))}s"
    if signal.name not in names:
        raise Loss(f"{signal.name} is computed from what this profile has no input for")
    return names[signal.name]


def _functions(config: SearchConfig, strategy: Expr, lists: list[str]) -> list[str]:
    bodies: dict[str, str] = {}
    if (keyword := base.keyword_of(lists)) is not None:
        parts = (
            f"{number_text(weight)} * bm25({field})" for field, weight in base.fields(config, keyword).items()
        )
        bodies["keywords"] = " + ".join(parts)
    for signal in leaves(strategy):
        if signal.name == "vector":
            bodies["semantic"] = "cosine_similarity(query(embedding), attribute(embedding), x)"
        elif signal.name == "importance":
            missing = number_text(UNSTATED)
            bodies["importance"] = f"if (isNan(attribute(importance)), {missing}, attribute(importance)) / 10"
        elif signal.name == "recency":
            age, half = f"max(0, now - attribute({base.date_of(signal)}))", number_text(base.half_life_of(signal))
            bodies[_name(signal)] = f"exp(-log(2) * {age} / {half})"
    lines = []
    for name, body in bodies.items():
        lines += [f"function {name}() {{", f"    expression: {body}", "}"]
    return lines


def _notes(config: SearchConfig, strategy: Expr, depths: dict[str, int]) -> list[str]:
    notes = [f"query with hits={config.limit} and ranking=steelyard"]
    if "vector" in depths:
        search = f"{{targetHits: {depths['vector']}}}nearestNeighbor(embedding, embedding)"
        notes.append(f"retrieve by {search}" + (" or userQuery()" if len(depths) > 1 else ""))
        notes.append("x[384] is the size of your vectors; the attribute embedding needs distance-metric angular")
    if (keyword := base.keyword_of(dict.fromkeys(depths, 1.0))) is not None:
        notes.append(
            f"every field of keywords needs index: enable-bm25; {keyword} was tuned with this engine's BM25"
        )
    if len(depths) > 1:
        cut = " and ".join(f"{name} at depth {depth}" for name, depth in depths.items())
        notes.append(f"here lists were cut, {cut}; there all hits are in the vector list, all matches in keywords")
        notes.append("raise rerank-count to what the query matches: hits beyond it stay in first-phase order")
    attributes = [f"{date} (seconds; {base.DATES[date]})" for date in base.dates_of(leaves(strategy))]
    attributes += ["importance (1 to 10)"] if "importance" in strategy.signals else []
    if attributes:
        notes.append(f"attributes: {', '.join(attributes)}")
    return [*notes, *base.window_notes(leaves(strategy))]


VESPA = Target(
    "vespa",
    "Vespa documentation: phased ranking, cross-hit normalization, ranking expressions",
    "tune rrf(fts, vector, k=60), alone or in weighted_sum(1*rrf(fts, vector, k=60), 0*recency(half_life=30d))",
    write,
    form="text",
)
