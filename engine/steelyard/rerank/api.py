"""Re-ranking by Voyage or Cohere over HTTP, with the transport of the embedders.

Sources: the providers' API references (Voyage rerank; Cohere rerank, v2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import EmbedderError, RerankError, shown
from steelyard.embedders.api import ApiEmbedder
from steelyard.embedders.settings import PROVIDERS, ApiSettings, Provider, address, key_of
from steelyard.rerank.base import Document, checked

MODELS = {"voyage": "rerank-2", "cohere": "rerank-v3.5"}
MOST = 100
"""Documents of one call; more are asked for in turn, each scored by itself."""
LONGEST = 24_000
"""Characters of a document that are sent."""
ATTEMPTS = 2
"""A search waits for the answer, so a failure that may pass is tried again only once."""


@dataclass(frozen=True)
class RerankShape:
    """``/rerank`` of both providers: they differ in the name of the list that they answer with."""

    answers: str
    path: str = field(default="rerank", init=False)

    def scores(self, answer: Any, count: int) -> list[Any]:  # noqa: ANN401 -- whatever JSON held
        """One score a document, in their order; ValueError says what is wrong with the answer."""
        listed = answer.get(self.answers) if isinstance(answer, dict) else None
        if not isinstance(listed, list) or len(listed) != count:
            raise ValueError(f"no list {self.answers!r} of {count} scores")
        found: dict[int, Any] = {}
        for item in listed:
            index = item.get("index") if isinstance(item, dict) else None
            if type(index) is not int or not 0 <= index < count or index in found:
                raise ValueError(f"index {shown(index)} is repeated or not in 0..{count - 1}")
            score = item.get("relevance_score")
            if type(score) not in (int, float):
                raise ValueError(f"{shown(score)} where a score belongs")
            found[index] = score
        return [found[at] for at in range(count)]


SHAPES = {"voyage": RerankShape("data"), "cohere": RerankShape("results")}


class _Settings(ApiSettings):
    """An endpoint of the embedders' provider, asked for another thing."""

    @property
    def about(self) -> Provider:
        """The provider with the shape of re-ranking."""
        shape: Any = SHAPES[self.provider]
        return replace(PROVIDERS[self.provider], shape=shape)


class _Transport(ApiEmbedder):
    """The embedders' requests: time-outs, retries, keys in headers alone."""

    def ask(self, body: dict[str, Any]) -> Any:  # noqa: ANN401 -- whatever JSON held
        """The answer as JSON; EmbedderError when there is none."""
        return self._patiently(body)


class ApiReranker:
    """Asks the endpoint of `settings` for the relevance of documents, 100 a call."""

    def __init__(self, settings: ApiSettings, *, timeout: float = 15.0, attempts: int = ATTEMPTS) -> None:
        own = _Settings(settings.provider, settings.base_url, settings.model, None, settings.key)
        self._shape = SHAPES[settings.provider]
        self._transport = _Transport(own, timeout=timeout, attempts=attempts)

    @classmethod
    def of(cls, provider: str, environ: Mapping[str, str]) -> ApiReranker:
        """The provider's re-ranker, at the address and with the key that the environment names.

        RERANK_MODEL names another model than the provider's default. ConfigError without a key.
        """
        model = environ.get("RERANK_MODEL", "").strip() or MODELS[provider]
        return cls(ApiSettings(provider, address(provider, environ), model, None, key_of(provider, environ)))

    @property
    def name(self) -> str:
        """``provider/model``."""
        return self._transport.model

    def score(self, query: str, documents: Sequence[Document]) -> Floats:
        """See CrossEncoder.score. Raises MachineError when the extra `api` is not installed."""
        parts = [self._ask(query, documents[at : at + MOST]) for at in range(0, len(documents), MOST)]
        return np.concatenate([np.zeros(0), *parts])

    def _ask(self, query: str, documents: Sequence[Document]) -> Floats:
        texts = [document.text[:LONGEST] for document in documents]
        body = {"model": self._transport.settings.model, "query": query, "documents": texts}
        problem = ""
        try:
            return checked(self._shape.scores(self._transport.ask(body), len(texts)), len(texts), self.name)
        except EmbedderError as error:
            problem = str(error)
        except ValueError as error:
            problem = f"{self.name} answered with {error}"
        raise RerankError(problem)
