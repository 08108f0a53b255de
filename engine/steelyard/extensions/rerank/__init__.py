"""Re-rankers: `api` asks Voyage or Cohere, `local` runs a model here, `cache` and `guard` wrap either."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.config import RerankConfig, requested_reranker
from steelyard.extensions.rerank.cache import CachedReranker
from steelyard.extensions.rerank.guard import GuardedReranker
from steelyard.finish import CrossEncoder

__all__ = ["CachedReranker", "GuardedReranker", "opened"]


def opened(config: RerankConfig, environ: Mapping[str, str]) -> CrossEncoder:
    """The re-ranker, guarded and cached. ConfigError for a provider that was named and has no key."""
    provider = requested_reranker(config, environ)
    inner: CrossEncoder
    if provider == "local":
        from steelyard.extensions.rerank.local import LocalReranker  # needs the extra minilm

        inner = LocalReranker(environ.get("RERANK_MODEL", "").strip() or LocalReranker.MODEL)
    else:
        from steelyard.extensions.rerank.api import ApiReranker  # needs the extra api

        inner = ApiReranker.of(provider, environ)
    guarded = GuardedReranker(inner, config.p95_ms / 1000)
    return CachedReranker(guarded, config.cache_ttl_ms / 1000, config.cache_size)
