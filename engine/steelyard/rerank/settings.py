"""Which re-ranker to ask, and within which limits: resolved once, kept in the configuration of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.rerank.base import CrossEncoder
from steelyard.rerank.cache import LARGEST, MINUTES_5, CachedReranker
from steelyard.rerank.guard import SLOW, GuardedReranker

RERANKERS = ("auto", "voyage", "cohere", "local")
KEYS = {"voyage": "VOYAGE_API_KEY", "cohere": "COHERE_API_KEY"}
"""In the order of detection; the local model, when no key is set."""


@dataclass(frozen=True)
class RerankConfig:
    """The provider (auto: the first whose key is set, else local), the guard's limit, and the cache's.

    Raises ConfigError for an unknown provider or a limit below 0.
    """

    provider: str = "auto"
    p95_ms: float = SLOW * 1000
    cache_ttl_ms: float = MINUTES_5 * 1000
    cache_size: int = LARGEST

    def __post_init__(self) -> None:
        if self.provider not in RERANKERS:
            raise ConfigError(f"re-ranker {shown(self.provider)} is unknown{nearest(self.provider, RERANKERS)}")
        for name in ("p95_ms", "cache_ttl_ms", "cache_size"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} of the re-ranker is {getattr(self, name)}; it must be at least 0")

    def to_json(self) -> dict[str, Any]:
        """Only what differs from the defaults."""
        usual = RerankConfig()
        return {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if getattr(self, name) != getattr(usual, name)
        }


def reranker_asked(config: RerankConfig, environ: Mapping[str, str]) -> str:
    """The provider that a configuration stands for in an environment.

    >>> reranker_asked(RerankConfig(), {"COHERE_API_KEY": "k"}), reranker_asked(RerankConfig(), {})
    ('cohere', 'local')
    """
    if config.provider != "auto":
        return config.provider
    return next((name for name, key in KEYS.items() if environ.get(key, "").strip()), "local")


def open_reranker(config: RerankConfig, environ: Mapping[str, str]) -> CrossEncoder:
    """The re-ranker, guarded and cached. ConfigError for a provider that was named and has no key."""
    provider = reranker_asked(config, environ)
    inner: CrossEncoder
    if provider == "local":
        from steelyard.rerank.local import LocalReranker  # needs the extra minilm

        inner = LocalReranker(environ.get("RERANK_MODEL", "").strip() or LocalReranker.MODEL)
    else:
        from steelyard.rerank.api import ApiReranker  # needs the extra api

        inner = ApiReranker.of(provider, environ)
    guarded = GuardedReranker(inner, config.p95_ms / 1000)
    return CachedReranker(guarded, config.cache_ttl_ms / 1000, config.cache_size)
