"""A re-ranker that is too slow switches itself off, and what one may answer."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import RerankError
from steelyard.finish import CrossEncoder, Document

WINDOW = 100
"""The calls that are looked at."""
LEAST_TIMED = 20
"""The calls after which there is a judgement."""


class WrappedReranker:
    """A re-ranker around another one, under its name."""

    def __init__(self, inner: CrossEncoder) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """That of the model."""
        return self._inner.name


class GuardedReranker(WrappedReranker):
    """Wraps a re-ranker; off for good once the 95th percentile of its last 100 calls exceeds `seconds`.

    Judged from 20 calls on, by the sorted call number floor(0.95 n) from 0. Source: the document and the
    JavaScript code of system-spec-kit.
    """

    def __init__(
        self, inner: CrossEncoder, seconds: float = 0.5, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        super().__init__(inner)
        self._seconds, self._clock = seconds, clock
        self._taken: deque[float] = deque(maxlen=WINDOW)
        self._lock = threading.Lock()
        self.disabled = ""

    def score(self, query: str, documents: Sequence[Document]) -> Floats:
        """See CrossEncoder.score; RerankError, with the way back, once it is switched off."""
        if self.disabled:
            raise RerankError(self.disabled)
        begun = self._clock()
        scores = self._inner.score(query, documents)
        with self._lock:
            self._taken.append(self._clock() - begun)
            self._judge()
        return scores

    @property
    def p95(self) -> float:
        """The 95th percentile of the last calls, in seconds; 0 before the first."""
        taken = sorted(self._taken)
        return taken[int(0.95 * len(taken))] if taken else 0.0

    def _judge(self) -> None:
        if len(self._taken) >= LEAST_TIMED and self.p95 > self._seconds:
            self.disabled = (
                f"re-ranking switched itself off: one call in twenty took {self.p95 * 1000:.0f} ms or longer, "
                f"more than {self._seconds * 1000:.0f}; start again, raise RERANK_P95_THRESHOLD, or lower "
                "MAX_RERANK_CANDIDATES"
            )


def checked_scores(scores: Any, count: int, name: str) -> Floats:  # noqa: ANN401 -- what an endpoint or a model gave
    """The scores as float64[count]; RerankError unless there are so many finite numbers."""
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise RerankError(f"{name} returned scores that are not numbers") from None
    if array.shape != (count,) or not np.isfinite(array).all():
        raise RerankError(f"{name} returned {array.size} scores for {count} documents, or one that is not finite")
    return array
