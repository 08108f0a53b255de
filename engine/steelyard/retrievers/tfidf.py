"""TF-IDF cosine similarity of the query and each candidate (Soleri's semantic signal)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.memory.filters import Filters
from steelyard.memory.query import Query
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
        self._store = store
        self._words = words
        self._corpus = corpus
        self._vocabulary = ScopeCache(store, lambda filters: Vocabulary(store.counted(words.analysis, filters)))

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """See Scorer.score."""
        vocabulary = self._vocabulary(self._corpus(query))
        unknown = [id_ for id_ in ids if id_ not in vocabulary.vectors]
        read = {e.id: self._words.of(e) for e in self._store.get(unknown, self._words.analysis.fields)}
        words = self._words.split(query.keywords)
        vocabulary.learn(chain(words, *read.values()))
        vocabulary.vectors.update((id_, vocabulary.weigh(entry_words)) for id_, entry_words in read.items())
        asked = vocabulary.weigh(words)
        nothing: Sparse = ({}, 0.0)
        return np.array([_cosine(asked, vocabulary.vectors.get(id_, nothing)) for id_ in ids], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """IDF of the words of a corpus, and the vectors of the entries scored so far."""

    counted: Counted
    vectors: dict[str, Sparse] = field(default_factory=dict)
    _idf: dict[str, float] = field(default_factory=dict)

    def learn(self, words: Iterable[str]) -> None:
        """Compute the IDF of words, all at once; 0 for those that are not in the vocabulary."""
        new = list(dict.fromkeys(word for word in words if word not in self._idf))
        for word, count in zip(new, self.counted.frequencies(new), strict=True):
            self._idf[word] = math.log((self._size + 1) / (count + 1)) + 1 if count else 0.0

    @cached_property
    def _size(self) -> int:
        return len(self.counted.numbers)

    def weigh(self, words: list[str]) -> Sparse:
        """Weigh words that were learned by TF-IDF, with the length of the result; those outside are left out."""
        weights = {w: n / len(words) * idf for w, n in Counter(words).items() if (idf := self._idf[w])}
        return weights, math.sqrt(sum(weight * weight for weight in weights.values()))


def _cosine(asked: Sparse, entry: Sparse) -> float:
    if not asked[1] or not entry[1]:
        return 0.0
    dot = sum(weight * entry[0].get(word, 0.0) for word, weight in asked[0].items())
    return dot / (asked[1] * entry[1])


TFIDF = ScorerKind(
    name="tfidf",
    build=lambda parts: TfidfScorer(parts.store, parts.reading.words, parts.counted),
    ends=(0.0, 1.0),
    counts=lambda reading: reading.words.analysis,
)
