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

from steelyard.base.errors import ConfigError, shown
from steelyard.config.search_config import SearchConfig
from steelyard.finish import reranked
from steelyard.fusion import parse_strategy
from steelyard.grammar import Item, amount_of, number_text, parse_call
from steelyard.rerank.settings import RerankConfig
from steelyard.signals.types import DOCUMENT_TYPES
from steelyard.systems import find_system
from steelyard.systems.spec_kit import FACTORS

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
    weight, after, extra = map(number_text, (graph, k, bonus))
    fused = f"rrf(vector, bm25, {weight}*graph, k={after}, bonus=times({extra}))"
    return replace(
        find_system("spec_kit").config().with_strategy(parse_strategy(f"boost({fused}, {FACTORS})")),
        rerank=RerankConfig("auto", p95, ttl, int(size)),
        provenance={KEPT: dict(record)},
    )


def write_foreign(config: SearchConfig) -> dict[str, Any]:
    """The file that says the same; ConfigError for a strategy that it has no words for."""
    record = copy.deepcopy(dict(config.provenance.get(KEPT, DEFAULTS)))
    record["rrfFusion"] = {**record.get("rrfFusion", {}), **_fused(str(config.effective))}
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


def _fused(strategy: str) -> dict[str, float]:
    """The numbers of a reciprocal rank fusion, as it is written, inside its factors or without any."""
    call = parse_call(strategy).call
    inner = call.items[0].call if call.name == "boost" else call
    options = dict(inner.options)
    weights = {item.call.name: 1.0 if item.weight is None else item.weight for item in inner.items}
    graph = weights.pop("graph", 1.5)
    bonus, k = options.get("bonus"), options.get("k")
    extra = amount_of(bonus) if isinstance(bonus, Item) and bonus.call.name == "times" else None
    said = (bonus is None or extra is not None) and weights.keys() <= {"vector", "bm25", "fts"}
    if inner.name != "rrf" or not said or any(weight != 1 for weight in weights.values()):
        raise ConfigError(
            "its file fuses vector, bm25 and graph by reciprocal rank, with k, a bonus that multiplies, and a "
            "weight for graph alone"
        )
    return {"k": k if isinstance(k, float) else 60.0, "convergenceBonus": extra or 0.0, "graphWeightBoost": graph}


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
