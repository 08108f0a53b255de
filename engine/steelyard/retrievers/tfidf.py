"""TF-IDF cosine similarity of the query and each candidate (Soleri's semantic signal)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.memory.query import Filters, Query
from steelyard.retrievers.cache import ScopeCache
from steelyard.retrievers.kinds import ScorerKind
from steelyard.retrievers.reading import Words
from steelyard.stores.base import Readable
from steelyard.stores.postings import Counted

Sparse = tuple[dict[str, float], float]
"""Weights by word, and their Euclidean length."""


class TfidfScorer:
    """Cosine of ``tf / length * idf`` vectors with ``idf = ln((N + 1) / (df + 1)) + 1``, in 0..1.

    The vocabulary is taken from the entries in the `corpus` of a query; words outside it have no weight.
    The score is 0 when either side has no known word. Source: Soleri's document.
    """

    def __init__(self, store: Readable, words: Words, corpus: Callable[[Query], Filters]) -> None:
        self._store, self._words, self._corpus = store, words, corpus
        self._vocabulary = ScopeCache(store, lambda filters: Vocabulary(store.counted(words.analysis, filters)))

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """See Scorer.score."""
        vocabulary = self._vocabulary(self._corpus(query))
        unknown = [id_ for id_ in ids if id_ not in vocabulary.vectors]
        entries = self._store.get(unknown, self._words.analysis.fields)
        texts = [self._words.split(query.keywords), *map(self._words.of, entries)]
        (asked, length), *weighed = vocabulary.weigh(texts)
        vocabulary.vectors.update(zip((entry.id for entry in entries), weighed, strict=True))
        scores = np.zeros(len(ids))
        for row, id_ in enumerate(ids):
            weights, other = vocabulary.vectors.get(id_, ({}, 0.0))
            if length and other:
                scores[row] = sum(w * weights.get(word, 0.0) for word, w in asked.items()) / (length * other)
        return scores


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """IDF of the words of a corpus, and the vectors of the entries scored so far."""

    counted: Counted
    vectors: dict[str, Sparse] = field(default_factory=dict)
    _idf: dict[str, float] = field(default_factory=dict)

    def weigh(self, texts: Sequence[Sequence[str]]) -> list[Sparse]:
        """Weigh the words of texts by TF-IDF; those outside the vocabulary are left out."""
        size = len(self.counted.numbers)
        new = list({word: 0 for words in texts for word in words if word not in self._idf})
        for word, count in zip(new, self.counted.frequencies(new), strict=True):
            self._idf[word] = math.log((size + 1) / (count + 1)) + 1 if count else 0.0
        weighed = []
        for words in texts:
            weights = {w: n / len(words) * idf for w, n in Counter(words).items() if (idf := self._idf[w])}
            weighed.append((weights, math.sqrt(sum(weight * weight for weight in weights.values()))))
        return weighed


TFIDF = ScorerKind(
    name="tfidf",
    build=lambda parts: TfidfScorer(parts.store, parts.reading.words, parts.counted),
    ends=(0.0, 1.0),
    counts=lambda reading: reading.words.analysis,
)
