"""Embedders that need an extra: providers over HTTP, all-MiniLM-L6-v2 and WordLlama on this machine.

Nothing is imported from an extra before it is used; what is missing is named with the command that installs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.base.errors import ConfigError, quote
from steelyard.extensions.models.api import ApiEmbedder
from steelyard.extensions.models.local import LocalEmbedder
from steelyard.extensions.models.minilm import MiniLmEmbedder, MiniLmInt8Embedder
from steelyard.extensions.models.provider_client import LIVE_ATTEMPTS, LIVE_TIMEOUT
from steelyard.extensions.models.settings import PROVIDERS, ApiSettings, base_url_of, detect, key_of
from steelyard.extensions.models.wordllama import WordLlamaEmbedder
from steelyard.extensions.network.endpoint import Secret

__all__ = [
    "ApiEmbedder",
    "ApiSettings",
    "MiniLmEmbedder",
    "MiniLmInt8Embedder",
    "Secret",
    "WordLlamaEmbedder",
    "detect",
    "opened",
    "restored",
]

LOCAL: dict[str, type[LocalEmbedder]] = {
    each.model: each for each in (MiniLmInt8Embedder, MiniLmEmbedder, WordLlamaEmbedder)
}
"""Kind -> the embedder that runs on this machine."""


def opened(kind: str, environ: Mapping[str, str]) -> ApiEmbedder | LocalEmbedder:
    """An embedder by kind; ConfigError for incomplete settings."""
    return ApiEmbedder(detect(environ)) if kind == "api" else LOCAL[kind]()


def restored(kind: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> ApiEmbedder | LocalEmbedder:
    """The embedder that a vault remembers, less patient than one that indexes.

    A vault may come from anywhere, so the texts of queries and the key are only sent to the address that the
    environment names; ConfigError where it names another, or none.
    """
    if kind in LOCAL:
        return LOCAL[kind]()
    provider, base_url, model = (str(settings.get(name, "")) for name in ("provider", "base_url", "model"))
    if provider not in PROVIDERS:
        raise ConfigError(f"unknown provider {quote(provider)}; upgrade Steelyard")
    if base_url != base_url_of(provider, environ):
        raise ConfigError(
            f"the vault was indexed with the endpoint {quote(base_url)}, which the environment does not name; "
            f"set {PROVIDERS[provider].url} to it if you trust it"
        )
    asked = ApiSettings(provider, base_url, model, settings.get("dimension"), key_of(provider, environ))
    return ApiEmbedder(asked, timeout=LIVE_TIMEOUT, attempts=LIVE_ATTEMPTS)
