"""A cross-encoder on this machine, through sentence-transformers: the extra ``minilm``."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from steelyard.base.arrays import Floats
from steelyard.base.errors import RerankError
from steelyard.base.extensions import installing
from steelyard.extensions.rerank.guard import checked_scores
from steelyard.finish import Document

BATCH = 50
"""Documents of one call, as in the code of system-spec-kit."""


class LocalReranker:
    """A cross-encoder in a folder, or one that sentence-transformers has kept on this machine.

    Nothing is downloaded. The model is loaded when it is first asked.
    """

    MODEL: ClassVar = "cross-encoder/ms-marco-MiniLM-L-6-v2"

    def __init__(self, model: str = MODEL) -> None:
        self._model, self._loading, self._loaded = model, threading.Lock(), None

    @property
    def name(self) -> str:
        """``local/MODEL``."""
        return f"local/{self._model}"

    def score(self, query: str, documents: Sequence[Document]) -> Floats:
        """See CrossEncoder.score."""
        pairs = [(query, document.text) for document in documents]
        try:
            scores = self._open().predict(pairs, batch_size=BATCH, show_progress_bar=False)
        except (OSError, RuntimeError, ValueError) as error:
            raise RerankError(f"{self.name} failed: {error}") from None
        return checked_scores(scores, len(documents), self.name)

    def _open(self) -> Any:  # noqa: ANN401 -- sentence-transformers publishes no types
        with self._loading:
            if self._loaded is None:
                self._loaded = _load(self._model)
            return self._loaded


def _load(model: str) -> Any:  # noqa: ANN401 -- as above
    try:
        from sentence_transformers import CrossEncoder
    except ImportError:
        raise RerankError(f"the local re-ranker needs the extra minilm: {installing('minilm')}") from None
    return CrossEncoder(model, local_files_only=True)
