"""Scores are kept for some minutes, so that the same search is not paid for twice."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from steelyard.base.arrays import Floats
from steelyard.extensions.rerank.guard import WrappedReranker
from steelyard.finish import CrossEncoder, Document

TENTH = 10


def cache_key(name: str, query: str, documents: Sequence[Document]) -> str:
    """SHA-256 of the model, the query and the documents, in their order, as hexadecimal digits.

    The document of system-spec-kit hashes ids; ours hashes texts too, so that a changed entry is scored again.
    """
    parts = [name, query, *(part for document in documents for part in (document.id, document.text))]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class CachedReranker(WrappedReranker):
    """Wraps a re-ranker; a full cache drops the oldest tenth. `clock` gives seconds that never run backwards.

    Threads may share it. Source: the document and the JavaScript code of system-spec-kit.
    """

    def __init__(
        self,
        inner: CrossEncoder,
        seconds: float = 300.0,
        size: int = 1000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(inner)
        self._seconds, self._size, self._clock = seconds, size, clock
        self._kept: OrderedDict[str, tuple[float, Floats]] = OrderedDict()
        self._lock = threading.Lock()
        self.hits = 0

    def score(self, query: str, documents: Sequence[Document]) -> Floats:
        """See CrossEncoder.score."""
        key = cache_key(self.name, query, documents)
        with self._lock:
            known = self._kept.get(key)
            if known is not None and self._clock() - known[0] < self._seconds:
                self.hits += 1
                return known[1]
        scores = self._inner.score(query, documents)
        with self._lock:
            self._keep(key, scores)
        return scores

    def _keep(self, key: str, scores: Floats) -> None:
        self._kept.pop(key, None)
        if self._size and len(self._kept) >= self._size:
            for _ in range(max(1, self._size // TENTH)):
                self._kept.popitem(last=False)
        if self._size:
            self._kept[key] = (self._clock(), scores)
