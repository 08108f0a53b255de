"""Vectors from an embedding endpoint over HTTP: batches, time-outs, retries, and distrust of the answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from steelyard.base.errors import quote
from steelyard.embedders.embed import Kind, Vectors, unit
from steelyard.extensions.models.provider_client import ATTEMPTS, TIMEOUT, ProviderClient
from steelyard.extensions.models.settings import ApiSettings
from steelyard.extensions.network.endpoint import Endpoint, EndpointError

PROBE = 0.5
"""Seconds within which Ollama has to list its loaded models. Source: EchoVault's program."""


class ApiEmbedder:
    """Asks the endpoint of `settings` as `ProviderClient` does. Blank texts are zeros and are not sent."""

    recipe: str | None = None

    def __init__(
        self,
        settings: ApiSettings,
        *,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.settings = settings
        self.model = settings.name
        self.identity = json.dumps(settings.to_json(), sort_keys=True)
        path = settings.about.shape.path
        self._client = ProviderClient(settings, path, timeout=timeout, attempts=attempts, sleep=sleep)
        self._dimension = settings.dimension

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed. Raises MachineError when the extra `api` is not installed."""
        shape = self.settings.about.shape
        spoken = {i: text[: shape.longest] for i, text in enumerate(texts) if text.strip()}
        rows = [self._ask(batch, kind) for batch in _batches(list(spoken.values()), shape.batch, shape.characters)]
        result = np.zeros((len(texts), self._dimension or 1), dtype=np.float32)
        if spoken:
            result[list(spoken)] = np.concatenate(rows)
        return unit(result)

    def warm(self) -> bool:
        """True; for Ollama, whether the model is in memory, and False when it does not say so within 0.5 s."""
        if not self.settings.is_ollama:
            return True
        try:
            listed = Endpoint(self.settings.base_url.removesuffix("/v1"), what=self.model, timeout=PROBE)
            models = listed.ask("/api/ps").json()["models"]
            loaded = {str(model["name"]).split(":")[0] for model in models}
        except (EndpointError, ValueError, KeyError, TypeError):
            return False
        return self.settings.model.split(":")[0] in loaded

    # Inside

    def _ask(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """float32[len(texts), dim] of one request."""
        shape = self.settings.about.shape
        answer = self._client.ask(shape.request(self.settings.model, texts, kind))
        problem = ""
        try:
            rows = _matrix(shape.rows(answer, len(texts)))
        except ValueError as error:
            problem = str(error)
        if problem:
            raise self._client.failure(
                f"answered with {problem}", "check that it is an embedding endpoint of this kind"
            )
        expected = self._dimension or rows.shape[1]
        if rows.shape[1] != expected:
            raise self._client.failure(
                f"gave vectors of dimension {rows.shape[1]}, expected {expected}",
                f"set EMBEDDING_DIM={rows.shape[1]} and EMBEDDING_MODEL if that is the model you mean",
            )
        self._dimension = expected
        return rows


def _batches(texts: Sequence[str], count: int, characters: int) -> Iterator[list[str]]:
    """Runs of at most `count` texts and `characters` characters; a longer text stands alone."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == count or size + len(text) > characters):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _matrix(rows: Sequence[Any]) -> Vectors:
    """float32[rows, dim]; ValueError unless all rows are equally long lists of finite numbers."""
    for i, row in enumerate(rows):
        if not isinstance(row, list) or not row or any(type(value) not in (int, float) for value in row):
            raise ValueError(f"{quote(row)} instead of the vector of text {i + 1}")
        if len(row) != len(rows[0]):
            raise ValueError(f"vectors of different dimensions, {len(rows[0])} and {len(row)}")
    with np.errstate(over="ignore"):
        matrix = np.array(rows, dtype=np.float64).astype(np.float32)
    if not np.isfinite(matrix).all():
        raise ValueError("a vector that holds NaN or infinity")
    return matrix
