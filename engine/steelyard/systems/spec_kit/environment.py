"""The environment variables of system-spec-kit's document, resolved once into a configuration.

EMBEDDING_DIM, the tenth, is the embedders' (`steelyard.extensions.models.settings`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from steelyard.base.errors import ConfigError, shown
from steelyard.config.search_config import SearchConfig
from steelyard.finish import Rerank
from steelyard.fusion import parse_strategy
from steelyard.rerank import RerankConfig

TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def resolve(config: SearchConfig, environ: Mapping[str, str]) -> SearchConfig:
    """The configuration as the environment asks for it. ConfigError names every variable with a value of another
    kind.
    """
    problems: list[str] = []
    fuses = _flag(environ, "ENABLE_RRF_FUSION", True, problems)
    bm25 = _flag(environ, "ENABLE_BM25", True, problems)
    fuzzy = _flag(environ, "ENABLE_FUZZY_MATCH", True, problems)
    reranks = _flag(environ, "ENABLE_CROSS_ENCODER", False, problems)
    usual = RerankConfig()
    numbers = {
        "top": _number(environ, "MAX_RERANK_CANDIDATES", 20, 1, problems),
        "p95_ms": _number(environ, "RERANK_P95_THRESHOLD", usual.p95_ms, 0, problems),
        "cache_ttl_ms": _number(environ, "RERANK_CACHE_TTL", usual.cache_ttl_ms, 0, problems),
        "cache_size": _number(environ, "RERANK_CACHE_SIZE", usual.cache_size, 0, problems),
    }
    if problems:
        raise ConfigError("; ".join(problems))
    provider = environ.get("CROSS_ENCODER_PROVIDER", "").strip().lower() or usual.provider
    limits = (numbers["p95_ms"], numbers["cache_ttl_ms"], int(numbers["cache_size"]))
    config = replace(config, rewrite=config.rewrite and fuzzy, rerank=RerankConfig(provider, *limits))
    if not bm25:
        config = _without_bm25(config)
    if not fuses:
        config = config.with_strategy(parse_strategy("vector"))
    if reranks:
        config = replace(config, finish=(Rerank(int(numbers["top"]), penalty="length"), *config.finish))
    return config


def _without_bm25(config: SearchConfig) -> SearchConfig:
    """FTS5 stands in; what starts from BM25's list starts from FTS5's."""
    left = {name: settings for name, settings in config.retrievers.items() if name != "bm25"}
    moved = {
        name: replace(settings, after=tuple("fts" if other == "bm25" else other for other in settings.after))
        for name, settings in left.items()
    }
    return replace(config.standing_in({"bm25": "fts"}), retrievers=moved)


def _flag(environ: Mapping[str, str], name: str, default: bool, problems: list[str]) -> bool:
    value = environ.get(name, "").strip().lower()
    if value and value not in (*TRUE, *FALSE):
        problems.append(f"{name} is {shown(value)}; it must be true or false")
    return value in TRUE if value else default


def _number(environ: Mapping[str, str], name: str, default: float, least: int, problems: list[str]) -> float:
    text = environ.get(name, "").strip()
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or int(text) < least:
        problems.append(f"{name} is {shown(text)}; it must be a whole number of at least {least}")
        return default
    return float(text)
