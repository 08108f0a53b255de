"""What a re-ranker promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import RerankError


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


class WrappedReranker:
    """A re-ranker around another one, under its name."""

    def __init__(self, inner: CrossEncoder) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """That of the model."""
        return self._inner.name


def checked_scores(scores: Any, count: int, name: str) -> Floats:  # noqa: ANN401 -- what an endpoint or a model gave
    """The scores as float64[count]; RerankError unless there are so many finite numbers."""
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise RerankError(f"{name} gave scores that are no numbers") from None
    if array.shape != (count,) or not np.isfinite(array).all():
        raise RerankError(f"{name} gave {array.size} scores for {count} documents, or one that is not finite")
    return array
