"""system-spec-kit's own `configs/search-weights.json`, which has our file's name: read and written.

The program reads only `smartRanking` and `maxTriggersPerMemory` of it; its own notes call the rest dead. We carry
those two along, and read and write the rest: what its document fuses and re-ranks by.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from steelyard.base.errors import ConfigError, quote
from steelyard.base.files import data
from steelyard.config import RerankConfig, SearchConfig
from steelyard.finish import reranked
from steelyard.fusion import parse_strategy
from steelyard.grammar import Call, Item, number_text, parse_call
from steelyard.signals.formulas import DOCUMENT_TYPES
from steelyard.systems import find_system
from steelyard.systems.spec_kit import FACTORS

IMPORTED_KEY = "imported"
"""The key of the provenance under which the imported file is kept, so that an export gives it back."""
DEFAULTS: dict[str, Any] = data(__package__, "defaults.json") | {"documentTypeMultipliers": DOCUMENT_TYPES}
"""The file of the program's version 1.8.0, without its comments."""
PENALTY = DEFAULTS["crossEncoder"]["lengthPenalty"]
EVERY_TYPE_ALIKE = dict.fromkeys(DOCUMENT_TYPES, 1.0)
FORM = (
    "its file fuses vector, bm25 and graph by reciprocal rank, with k, a bonus that multiplies and a weight for "
    "graph alone, and raises by promised and document_type; it cannot say:"
)


def read_foreign(record: Mapping[str, Any]) -> SearchConfig:
    """The configuration that such a file stands for. ConfigError names every value of another kind."""
    problems: list[str] = []
    fusion, encoder = (_part(record, name, problems) for name in ("rrfFusion", "crossEncoder"))
    k, bonus, graph = (_number(fusion, "rrfFusion", name, problems) for name in DEFAULTS["rrfFusion"])
    names = ("p95ThresholdMs", "cacheTtlMs", "cacheMaxSize")
    p95, ttl, size = (_number(encoder, "crossEncoder", name, problems) for name in names)
    types = _part(record, "documentTypeMultipliers", problems)
    if types not in (DOCUMENT_TYPES, EVERY_TYPE_ALIKE):
        problems.append(
            "documentTypeMultipliers are neither 1 throughout nor the program's own, which the signal "
            "document_type has"
        )
    if encoder.get("lengthPenalty", PENALTY) != PENALTY:
        problems.append("crossEncoder.lengthPenalty differs from the document's, which the signal length has")
    if problems:
        raise ConfigError("; ".join(problems))
    term = f", {number_text(graph)}*graph" if graph else ""
    extra = f", bonus=times({number_text(bonus)})" if bonus else ""
    factors = FACTORS if types == DOCUMENT_TYPES else FACTORS.replace(" document_type", " 0*document_type")
    fused = f"rrf(vector, bm25{term}, k={number_text(k)}{extra})"
    return replace(
        find_system("spec_kit").config().with_strategy(parse_strategy(f"boost({fused}, {factors})")),
        rerank=RerankConfig("auto", p95, ttl, int(size)),
        provenance={IMPORTED_KEY: dict(record)},
    )


def write_foreign(config: SearchConfig) -> dict[str, Any]:
    """The file that says the same; ConfigError names every part of the strategy that it has no words for."""
    call = parse_call(str(config.effective)).call
    fused, *factors = call.items if call.name == "boost" else (Item(None, call),)
    weights = _weights(factors)
    problems = [*_unsaid(fused.call), *_unsaid_factors(weights)]
    if problems:
        raise ConfigError(f"{FORM} {', '.join(problems)}")
    record = copy.deepcopy(dict(config.provenance.get(IMPORTED_KEY, DEFAULTS)))
    record["rrfFusion"] = {**record.get("rrfFusion", {}), **_fused(fused.call)}
    if "document_type" not in weights:
        record["documentTypeMultipliers"] = dict(EVERY_TYPE_ALIKE)
    elif record.get("documentTypeMultipliers") == EVERY_TYPE_ALIKE:
        record["documentTypeMultipliers"] = dict(DOCUMENT_TYPES)
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


def _weights(items: Iterable[Item]) -> dict[str, float]:
    """The weights of the terms that have one, by what they are written as."""
    return {str(item.call): 1.0 if item.weight is None else item.weight for item in items if item.weight != 0}


def _unsaid(fused: Call) -> list[str]:
    """The parts of a fusion that the file has no words for."""
    if fused.name != "rrf":
        return [f"{fused.name}(...)" if fused.items else f"{fused} alone"]
    weights, bonus = _weights(fused.items), dict(fused.options).get("bonus")
    unsaid = [name for name in weights if name not in ("vector", "bm25", "graph")]
    unsaid += ["a list with the weight 0, or twice"] if len(weights) < len(fused.items) else []
    unsaid += [f"a fusion without {name}" for name in ("vector", "bm25") if name not in weights]
    unsaid += [f"{number_text(weights[n])}*{n}" for n in ("vector", "bm25") if weights.get(n, 1.0) != 1.0]
    times = isinstance(bonus, Item) and bonus.call.name in ("times", "none")
    return unsaid if bonus is None or times else [*unsaid, f"bonus={bonus}"]


def _unsaid_factors(weights: Mapping[str, float]) -> list[str]:
    said = ("promised", "document_type")
    unsaid = [f"{number_text(w)}*{name}" for name, w in weights.items() if name not in said or w != 1.0]
    return unsaid if "promised" in weights else [*unsaid, "a score without promised"]


def _fused(call: Call) -> dict[str, float]:
    """The numbers of a reciprocal rank fusion, as it is written; 0 for a graph or a bonus that it lacks."""
    options = dict(call.options)
    bonus, k = options.get("bonus"), options.get("k")
    extra = bonus.call.items[0].weight if isinstance(bonus, Item) and bonus.call.items else None
    graph = _weights(call.items).get("graph", 0.0)
    return {"k": k if isinstance(k, float) else 60.0, "convergenceBonus": extra or 0.0, "graphWeightBoost": graph}


def _part(record: Mapping[str, Any], name: str, problems: list[str]) -> Mapping[str, Any]:
    value = record.get(name, DEFAULTS[name])
    if not isinstance(value, Mapping):
        problems.append(f"{name} is {quote(value)}; it must be an object")
        return {}
    return value


def _number(part: Mapping[str, Any], where: str, name: str, problems: list[str]) -> float:
    value = part.get(name, DEFAULTS[where][name])
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        problems.append(f"{where}.{name} is {quote(value)}; it must be a number of at least 0")
        return 0.0
    return float(value)
