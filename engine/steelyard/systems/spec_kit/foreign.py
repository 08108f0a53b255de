"""system-spec-kit's own `configs/search-weights.json`, which has our file's name: read and written.

The program reads only `smartRanking` and `maxTriggersPerMemory` of it; its own notes call the rest dead. We carry
those two along, and read and write the rest: what its document fuses and re-ranks by.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steelyard.config import SearchConfig
from steelyard.errors import ConfigError, shown
from steelyard.finish import reranked
from steelyard.fusion import Expr, parse_strategy
from steelyard.fusion.boost import Boost
from steelyard.fusion.rrf import Rrf
from steelyard.grammar import number_text
from steelyard.rerank.settings import RerankConfig
from steelyard.signals.types import DOCUMENT_TYPES
from steelyard.systems import find_system

KEPT = "imported"
"""The key of the provenance under which the imported file is kept, so that an export gives it back."""
PENALTY = {"threshold": 100, "minPenalty": 0.8, "maxPenalty": 1.0}
DEFAULTS: dict[str, Any] = {
    "_version": "1.8.0",
    "maxTriggersPerMemory": 10,
    "documentTypeMultipliers": DOCUMENT_TYPES,
    "smartRanking": {"recencyWeight": 0.5, "accessWeight": 0.3, "relevanceWeight": 0.2},
    "rrfFusion": {"k": 60, "convergenceBonus": 0.1, "graphWeightBoost": 1.5},
    "crossEncoder": {
        "maxCandidates": 20,
        "p95ThresholdMs": 500,
        "cacheTtlMs": 300000,
        "cacheMaxSize": 1000,
        "lengthPenalty": PENALTY,
    },
}
"""The file of the program's version 1.8.0, without its comments."""


def read_foreign(record: Mapping[str, Any]) -> SearchConfig:
    """The configuration that such a file stands for. ConfigError names every value of another kind."""
    problems: list[str] = []
    fusion, encoder = (_part(record, name, problems) for name in ("rrfFusion", "crossEncoder"))
    k, bonus, graph = (_number(fusion, "rrfFusion", name, problems) for name in DEFAULTS["rrfFusion"])
    names = ("p95ThresholdMs", "cacheTtlMs", "cacheMaxSize")
    p95, ttl, size = (_number(encoder, "crossEncoder", name, problems) for name in names)
    if dict(record.get("documentTypeMultipliers", DOCUMENT_TYPES)) != DOCUMENT_TYPES:
        problems.append(
            "documentTypeMultipliers differ from the program's own, which the signal document_type has"
        )
    if encoder.get("lengthPenalty", PENALTY) != PENALTY:
        problems.append("crossEncoder.lengthPenalty differs from the document's, which the signal length has")
    if problems:
        raise ConfigError("; ".join(problems))
    config = find_system("spec_kit").config()
    strategy = config.strategy
    if not isinstance(strategy, Boost):  # the preset is one
        raise ConfigError(f"{strategy} is no boost")
    fused = parse_strategy(
        f"rrf(vector, bm25, {graph}*graph, k={number_text(k)}, bonus=times({number_text(bonus)}))"
    )
    return replace(
        config,
        strategy=replace(strategy, expr=fused),
        rerank=RerankConfig("auto", p95, ttl, int(size)),
        provenance={KEPT: dict(record)},
    )


def write_foreign(config: SearchConfig) -> dict[str, Any]:
    """The file that says the same; ConfigError for a strategy that it has no words for."""
    fused = _fused(config.effective)
    record = copy.deepcopy(dict(config.provenance.get(KEPT, DEFAULTS)))
    bonus = fused.bonus.amount if fused.bonus else 0.0
    graph = next((term.weight for term in fused.terms if str(term.expr) == "graph"), 1.5)
    record["rrfFusion"] = {
        **record.get("rrfFusion", {}),
        "k": fused.k,
        "convergenceBonus": bonus,
        "graphWeightBoost": graph,
    }
    stage = reranked(config.finish)
    limits = config.rerank
    record["crossEncoder"] = {
        **DEFAULTS["crossEncoder"],
        **record.get("crossEncoder", {}),
        **({"maxCandidates": stage.top} if stage else {}),
        "p95ThresholdMs": limits.p95_ms,
        "cacheTtlMs": limits.cache_ttl_ms,
        "cacheMaxSize": limits.cache_size,
    }
    return record


def _fused(strategy: Expr) -> Rrf:
    inner = strategy.expr if isinstance(strategy, Boost) else strategy
    weights = {str(term.expr): term.weight for term in inner.terms} if isinstance(inner, Rrf) else {}
    known = weights.keys() <= {"vector", "bm25", "fts", "graph"}
    plain = all(weight == 1 for name, weight in weights.items() if name != "graph")
    kind = inner.bonus.kind if isinstance(inner, Rrf) and inner.bonus else "times"
    if not isinstance(inner, Rrf) or not known or not plain or kind != "times":
        raise ConfigError(
            f"{shown(str(strategy), 200)} cannot be said in its terms: it fuses vector, bm25 and graph by "
            "reciprocal rank, with k, a bonus that multiplies, and a weight for graph alone"
        )
    return inner


def _part(record: Mapping[str, Any], name: str, problems: list[str]) -> Mapping[str, Any]:
    value = record.get(name, DEFAULTS[name])
    if not isinstance(value, Mapping):
        problems.append(f"{name} is {shown(value)}; it must be an object")
        return {}
    return value


def _number(part: Mapping[str, Any], where: str, name: str, problems: list[str]) -> float:
    value = part.get(name, DEFAULTS[where][name])
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        problems.append(f"{where}.{name} is {shown(value)}; it must be a number of at least 0")
        return 0.0
    return float(value)
