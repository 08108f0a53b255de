"""Which provider to ask: from explicit values or from the environment, resolved once into one value.

The order of providers and their dimensions follow spec-kit's document: Voyage 1024, OpenAI 1536,
else EMBEDDING_DIM, 768 by default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from steelyard.base.errors import ConfigError, nearest, quote
from steelyard.extensions.models.providers import COHERE, OPENAI, VOYAGE, Shape
from steelyard.extensions.network.endpoint import Secret, check_address

FALLBACK_DIMENSION = 768
MOST_DIMENSIONS = 100_000
OLLAMA_PORT = 11434
OLLAMA = f"http://localhost:{OLLAMA_PORT}/v1"


@dataclass(frozen=True)
class Provider:
    """What is known of a provider: its shape, its address, its default model and that model's dimension."""

    shape: Shape
    base_url: str
    model: str
    dimension: int
    key: str
    url: str
    """`key` and `url` are the environment variables that hold the key and another address."""


PROVIDERS = {
    "voyage": Provider(
        VOYAGE, "https://api.voyageai.com/v1", "voyage-3.5", 1024, "VOYAGE_API_KEY", "VOYAGE_BASE_URL"
    ),
    "openai": Provider(
        OPENAI, "https://api.openai.com/v1", "text-embedding-3-small", 1536, "OPENAI_API_KEY", "OPENAI_BASE_URL"
    ),
    "cohere": Provider(
        COHERE, "https://api.cohere.com/v2", "embed-v4.0", 1536, "COHERE_API_KEY", "COHERE_BASE_URL"
    ),
    "local": Provider(OPENAI, OLLAMA, "nomic-embed-text", FALLBACK_DIMENSION, "", "OPENAI_BASE_URL"),
}
"""In the order of detection. `local` is any OpenAI-compatible endpoint without a key, Ollama by default."""
NAMES = re.compile(
    "(?P<voyage>voyage/|(?=voyage-))|(?P<openai>openai/|(?=text-embedding-))|(?P<cohere>cohere/|(?=embed-))"
    "|(?P<local>(?:ollama|local)/)"
)
"""How names of models begin, by their provider; what ends in a slash is no part of the model's own name."""


@dataclass(frozen=True)
class ApiSettings:
    """One endpoint and model. `dimension` is checked against every answer; None takes the first answer's.

    Raises ConfigError for an unknown provider, and for an address that cannot be read or holds a key: the
    address is stored with the vectors, a key never is.
    """

    provider: str
    base_url: str
    model: str
    dimension: int | None = None
    key: Secret = field(default_factory=Secret, compare=False)

    def __post_init__(self) -> None:
        if self.provider not in PROVIDERS:
            raise ConfigError(f"unknown provider {quote(self.provider)}{nearest(self.provider, PROVIDERS)}")
        if self.dimension is not None and not (
            type(self.dimension) is int and 1 <= self.dimension <= MOST_DIMENSIONS
        ):
            raise ConfigError(f"{quote(self.dimension)} is not a number of dimensions; write one such as 768")
        check_address(self.base_url, self.key, "the embedding endpoint")
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))

    @property
    def about(self) -> Provider:
        """What is known of the provider."""
        return PROVIDERS[self.provider]

    @property
    def name(self) -> str:
        """The name vectors are stored under."""
        return f"{self.provider}/{self.model}"

    @property
    def is_ollama(self) -> bool:
        """Whether the endpoint is Ollama's, which loads a model when it is first asked."""
        return self.provider == "local" and urlsplit(self.base_url).port == OLLAMA_PORT

    def to_json(self) -> dict[str, Any]:
        """Everything but the key."""
        return {n: getattr(self, n) for n in ("provider", "base_url", "model", "dimension")}


def detect(environ: Mapping[str, str]) -> ApiSettings:
    """The settings that the environment asks for.

    EMBEDDING_MODEL names another model than the provider's default. EMBEDDING_PROVIDER names the provider; without
    it the model's name does (`voyage-3`, `ollama/nomic-embed-text`), else the first one whose key is set: Voyage,
    OpenAI, Cohere; else a local endpoint without a key. OPENAI_BASE_URL (VOYAGE_, COHERE_) is another address.
    The default model's dimension is known; of another model it is EMBEDDING_DIM, else that of the first answer.

    >>> detect({"OPENAI_API_KEY": "sk-1"})
    ApiSettings(provider='openai', base_url='https://api.openai.com/v1', model='text-embedding-3-small', \
dimension=1536, key=***)
    >>> detect({"EMBEDDING_DIM": "384"}).dimension
    384
    """
    model = environ.get("EMBEDDING_MODEL", "").strip()
    provider = environ.get("EMBEDDING_PROVIDER", "").strip().lower()
    if not provider and (named := NAMES.match(model)):
        provider = named.lastgroup or ""
        own = environ.get(PROVIDERS[provider].url) and provider != "local"  # a router's models have such names
        model = model if own else model.removeprefix(named[0])
    provider = provider or _first(environ)
    if provider not in PROVIDERS:
        raise ConfigError(f"EMBEDDING_PROVIDER {quote(provider)} is unknown{nearest(provider, PROVIDERS)}")
    about = PROVIDERS[provider]
    model = model or about.model
    usual, given = about.dimension if model == about.model else None, _dimension(environ)
    dimension = given if given and provider == "local" else usual or given
    return ApiSettings(provider, base_url_of(provider, environ), model, dimension, key_of(provider, environ))


def base_url_of(provider: str, environ: Mapping[str, str]) -> str:
    """Where the environment says the provider is, without a slash at the end."""
    about = PROVIDERS[provider]
    return (environ.get(about.url, "").strip() or about.base_url).rstrip("/")


def key_of(provider: str, environ: Mapping[str, str]) -> Secret:
    """The provider's key; ConfigError when its variable is not set."""
    name = PROVIDERS[provider].key
    if name and not environ.get(name, "").strip():
        raise ConfigError(f"{name} is not set; set it to your key of {provider}, or choose another provider")
    return Secret(environ.get(name, ""), name) if name else Secret()


def _first(environ: Mapping[str, str]) -> str:
    if not environ.get("VOYAGE_API_KEY") and not environ.get("OPENAI_API_KEY") and environ.get("OPENAI_BASE_URL"):
        return "local"  # an address given on purpose is not passed over for Cohere's key
    return next((name for name, about in PROVIDERS.items() if environ.get(about.key, "").strip()), "local")


def _dimension(environ: Mapping[str, str]) -> int | None:
    text = environ.get("EMBEDDING_DIM", "").strip()
    if not text:
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text) or int(text) > MOST_DIMENSIONS:
        raise ConfigError(
            f"EMBEDDING_DIM {quote(text)} is not a number of dimensions; set a whole number such as 768"
        )
    return int(text)
