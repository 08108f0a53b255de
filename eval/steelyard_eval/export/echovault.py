"""EchoVault: the parameters of its documented functions.

``tiered_search`` takes `limit` and `min_fts_results`, ``merge_results`` takes `fts_weight` and `vec_weight`.
Source: EchoVault's document, tiered search strategy and hybrid score merging. The two weights need not sum to 1,
so they stay as they are.
"""

from __future__ import annotations

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import RECIPROCAL, Expr, Fallback, Linear, Signal
from steelyard_eval.export.base import Lost, Parts, Target
from steelyard_eval.export.hybrid import weights_of

POOL = 2
"""Both lists are this many times the limit deep."""


def write(config: SearchConfig) -> Parts:
    """fts_weight, vec_weight, min_fts_results and limit of ``tiered(fts, then=weighted_sum(...))``."""
    tiered = config.effective.describe()
    if not isinstance(tiered, Fallback) or tiered.first != Signal("fts"):
        raise Lost("it searches keywords first, and merges only where they find too little: tiered(fts, ...)")
    weights = _merged(tiered.then)
    notes = [
        f"lists are {POOL} x limit = {POOL * config.limit} deep there; {name} was tuned at depth {depth}"
        for name, depth in config.depths.items()
        if name in weights and depth != POOL * config.limit
    ]
    parts = {
        "fts_weight": weights["fts"],
        "vec_weight": weights["vector"],
        "min_fts_results": tiered.min_results,
        "limit": config.limit,
    }
    return parts, notes


def _merged(then: Expr) -> dict[str, float]:
    merged = then.describe()
    if not isinstance(merged, Linear) or merged.scale == RECIPROCAL:
        raise Lost(f"{then} as the second tier: it merges by a weighted sum only")
    losses = []
    if merged.scale != "max":
        losses.append(f"normalize={merged.scale} has no counterpart: it divides every list by its maximum")
    weights = weights_of(merged.terms)
    if set(weights) != {"fts", "vector"}:
        losses.append(f"a sum of {', '.join(sorted(weights))}: it merges fts and vector, no more and no less")
    if losses:
        raise Lost(*losses)
    return weights


TARGET = Target(
    "echovault",
    "EchoVault's document, search: tiered_search and merge_results",
    "tune tiered(fts, min_results=3, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))",
    write,
)
