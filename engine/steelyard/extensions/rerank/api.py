"""Re-ranking by Voyage or Cohere over HTTP, with the transport of the embedders.

Sources: the providers' API references (Voyage rerank; Cohere rerank, v2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import EmbedderError, RerankError, quote
from steelyard.extensions.models.provider_client import ProviderClient
from steelyard.extensions.models.providers import by_index
from steelyard.extensions.models.settings import ApiSettings, base_url_of, key_of
from steelyard.extensions.rerank.guard import checked_scores
from steelyard.finish import Document

MODELS = {"voyage": "rerank-2", "cohere": "rerank-v3.5"}
AT_ONCE = 100
"""Documents of one call; more are asked for in turn, each scored by itself."""
LONGEST_DOCUMENT = 24_000
"""Characters of a document that are sent."""
ATTEMPTS, TIMEOUT = 2, 15.0
"""A search waits for the answer, so a failure that may pass is tried again only once."""


SCORES_KEY = {"voyage": "data", "cohere": "results"}
"""The key under which a provider lists its scores; ``/rerank`` of both is the same otherwise."""


class ApiReranker:
    """Asks the endpoint of `settings` for the relevance of documents, 100 a call."""

    def __init__(self, settings: ApiSettings, *, timeout: float = TIMEOUT, attempts: int = ATTEMPTS) -> None:
        self._model, self._scores_key = settings.model, SCORES_KEY[settings.provider]
        self._client = ProviderClient(settings, "rerank", timeout=timeout, attempts=attempts)
        self.name = settings.name

    @classmethod
    def of(cls, provider: str, environ: Mapping[str, str]) -> ApiReranker:
        """The provider's re-ranker, at the address and with the key that the environment names.

        RERANK_MODEL names another model than the provider's default. ConfigError without a key.
        """
        model = environ.get("RERANK_MODEL", "").strip() or MODELS[provider]
        return cls(ApiSettings(provider, base_url_of(provider, environ), model, None, key_of(provider, environ)))

    def score(self, query: str, documents: Sequence[Document]) -> Floats:
        """See CrossEncoder.score. Raises MachineError when the extra `api` is not installed."""
        parts = [
            self._ask(query, documents[start : start + AT_ONCE]) for start in range(0, len(documents), AT_ONCE)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def _ask(self, query: str, documents: Sequence[Document]) -> Floats:
        texts = [document.text[:LONGEST_DOCUMENT] for document in documents]
        body = {"model": self._model, "query": query, "documents": texts}
        problem = ""
        try:
            return checked_scores(
                _scores(self._client.ask(body), self._scores_key, len(texts)), len(texts), self.name
            )
        except EmbedderError as error:
            problem = str(error)
        except ValueError as error:
            problem = f"{self.name} answered with {error}"
        raise RerankError(problem)


def _scores(answer: Any, name: str, count: int) -> list[Any]:  # noqa: ANN401 -- whatever JSON held
    """One score a document, in their order; ValueError says what is wrong with the answer."""
    listed = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(listed, list) or len(listed) != count:
        raise ValueError(f"no list {name!r} of {count} scores")
    scores = by_index(listed, "relevance_score")
    if odd := [score for score in scores if type(score) not in (int, float)]:
        raise ValueError(f"{quote(odd[0])} instead of a score")
    return scores
