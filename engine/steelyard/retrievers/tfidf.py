"""TF-IDF cosine of the query with each candidate (Soleri's semantic signal)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.entry import Entry, Query
from steelyard.filters import EVERYTHING
from steelyard.retrievers.scope import ScopeCache
from steelyard.stores.base import Store
from steelyard.table import Floats
from steelyard.text import clean_query, content, terms

Sparse = tuple[dict[str, float], float]
"""Weights by word, and their Euclidean length."""


class TfidfScorer:
    """Cosine of ``tf / length * idf`` vectors with ``idf = ln((N + 1) / (df + 1)) + 1``, in 0..1.

    The vocabulary is that of the whole store; query words outside it weigh nothing. 0 when either
    side has no known word. Source: Soleri's document.
    """

    def __init__(self, store: Store, text: Callable[[Entry], str] = content) -> None:
        self._vocabulary = ScopeCache(
            store, lambda filters: Vocabulary.of({e.id: terms(text(e)) for e in store.entries(filters)})
        )

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """See Scorer.score."""
        vocabulary = self._vocabulary(EVERYTHING)
        asked = vocabulary.weigh(terms(clean_query(query.text)))
        return np.array([_cosine(asked, vocabulary.vectors[id_]) for id_ in ids], dtype=np.float64)


@dataclass(frozen=True)
class Vocabulary:
    """IDF of every word of a corpus, and the vectors of its entries."""

    idf: dict[str, float]
    vectors: dict[str, Sparse] = field(default_factory=dict)

    @classmethod
    def of(cls, words: Mapping[str, list[str]]) -> Vocabulary:
        """From the words of every entry, by id."""
        df = Counter(word for found in words.values() for word in set(found))
        made = cls({word: math.log((len(words) + 1) / (count + 1)) + 1 for word, count in df.items()})
        made.vectors.update((id_, made.weigh(found)) for id_, found in words.items())
        return made

    def weigh(self, words: list[str]) -> Sparse:
        """TF-IDF weights of the words that the vocabulary knows."""
        weights = {w: n / len(words) * self.idf[w] for w, n in Counter(words).items() if w in self.idf}
        return weights, math.sqrt(sum(weight * weight for weight in weights.values()))


def _cosine(asked: Sparse, entry: Sparse) -> float:
    if not asked[1] or not entry[1]:
        return 0.0
    dot = sum(weight * entry[0].get(word, 0.0) for word, weight in asked[0].items())
    return dot / (asked[1] * entry[1])
