"""Re-ranking: a cross-encoder reads query and document together and scores the first places of a list again.

What one promises, and which one a search asks for, within which limits; the adapters are an extension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.base.extensions import extension

RERANKERS = ("auto", "voyage", "cohere", "local")
KEYS = {"voyage": "VOYAGE_API_KEY", "cohere": "COHERE_API_KEY"}
"""In the order of detection; the local model, when no key is set."""
SLOW, MINUTES_5, LARGEST = 0.5, 300.0, 1000
"""Seconds that one call in twenty may exceed; how long and how many scores are kept."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a re-ranker reads of an entry."""

    id: str
    text: str


class CrossEncoder(Protocol):
    """Scores documents for a query."""

    @property
    def name(self) -> str:
        """The provider and model, as recordings keep it."""

    def score(self, query: str, documents: Sequence[Document]) -> Floats:
        """float64[len(documents)], finite, larger for a better match; RerankError when it cannot."""


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
        usual = vars(RerankConfig())
        return {name: value for name, value in vars(self).items() if value != usual[name]}


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
    opened: CrossEncoder = extension("rerank").opened(config, environ)
    return opened
