"""Vespa: a schema with its rank profile, and the body of a query."""

import re

from steelyard.base.files import STRICT_JSON
from steelyard.config import SearchConfig
from steelyard.fusion import RECIPROCAL, Expr, Linear, Signal, leaves
from steelyard.grammar import number_text
from steelyard_eval.export import base
from steelyard_eval.export.base import Loss, Parts, Target
from steelyard_eval.export.engines import ENGINES, lists_in, render

ENGINE = ENGINES["vespa"]
NAMES = {"fts": "keywords", "bm25": "keywords", "vector": "semantic", "importance": "importance"}
"""The functions that compute signals."""


def write(config: SearchConfig) -> Parts:
    """The text of ``schemas/entries.sd`` as `schema`, and the body of ``POST /search/`` as `query`."""
    strategy = config.effective
    lists = lists_in(config, ENGINE)
    score = _name(strategy) if isinstance(strategy, Signal) else _score(strategy)
    if not lists.depths:
        raise Loss("no term finds entries of its own: there is neither a keyword list nor a vector list")
    decays = {_name(each): each for each in leaves(strategy) if each.name == "recency"}
    facts = lists.facts() | {
        "score": score,
        "alone": isinstance(strategy, Signal),
        "depths": lists.depths,
        "decays": {name: (base.date_of(each), base.half_life_of(each)) for name, each in decays.items()},
    }
    cut = " and ".join(f"{name} at depth {depth}" for name, depth in lists.depths.items())
    return lambda: {
        "schema": render("vespa.sd.jinja", **facts),
        "query": STRICT_JSON.decode(render("vespa.query.json.jinja", **facts)),
    }, lists.notes(ENGINE, depths=cut)


def _score(expr: Expr) -> str:
    """An expression of one score a hit; Lost where ranking expressions have none with the same order."""
    told = expr.describe()
    if told.beyond or not isinstance(told, Linear):
        raise Loss(told.beyond)
    if told.scale not in ENGINE.takes:
        raise Loss(base.reason_for_fusion(told.scale, ENGINE.lacks))
    if told.scale == RECIPROCAL:
        return " + ".join(
            _reciprocal(name, weight, told.k) for name, weight in base.weights_of(told.terms).items()
        )
    terms = ((number_text(term.weight), _part(term.expr, told.scale)) for term in told.terms)
    return " + ".join(f"{weight} * {part}" for weight, part in terms)


def _reciprocal(signal: str, weight: float, k: float) -> str:
    factor = "" if weight == 1 else f"{number_text(weight)} * "
    if signal == "vector":
        return f"{factor}reciprocal_rank(semantic, {number_text(k)})"
    return f"{factor}if (keywords > 0, reciprocal_rank(keywords, {number_text(k)}), 0)"


def _part(expr: Expr, scale: str) -> str:
    """A part of a sum of scores as they are, or by minmax."""
    if isinstance(expr, Signal):
        if expr.name in base.KEYWORDS:
            raise Loss(ENGINE.lacks[f"keywords {scale}"])
        return _name(expr) if scale == "none" else f"normalize_linear({_name(expr)})"
    if scale != "none":
        raise Loss(f"normalize=minmax over {expr}: a normalizer takes a feature or a function, not another fusion")
    return f"({_score(expr)})"


def _name(signal: Signal) -> str:
    """The function that computes a signal."""
    if signal.name == "recency":
        since = "access_" if base.date_of(signal) == "last_accessed_at" else ""
        return f"recency_{since}{re.sub(r'[^0-9]', '_', number_text(base.half_life_of(signal)))}s"
    if signal.name not in NAMES:
        raise Loss(f"{signal.name} is computed from what this profile has no input for")
    return NAMES[signal.name]


VESPA = Target("vespa", ENGINE.follows, ENGINE.says, write, form="text", layout="# query: $query\n$schema")
