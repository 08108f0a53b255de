"""BM25 in memory, with the statistics of the query's own scope (Robertson and Zaragoza, 2009).

``sum of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length))`` with
``idf = ln(1 + (N - n + 0.5) / (n + 0.5))``, over the terms of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.memory.query import EVERYTHING, Filters, Query
from steelyard.node import Option
from steelyard.retrievers.cache import ScopeCache
from steelyard.retrievers.kinds import Parts, RetrieverConfig, RetrieverKind, ScorerKind
from steelyard.retrievers.reading import Words
from steelyard.stores.base import Found, Readable
from steelyard.stores.postings import Counted

K1 = Option("k1", 1.2, 0, 1000, "How much further occurrences of a term add; at 0 only the first one counts")
B = Option("b", 0.75, 0, 1, "How much long entries are penalised: from 0, not at all, to 1, in full")
LENGTH = Option(
    "mean_length", 0, 0, 1_000_000, "The length in words that counts as average; at 0 that of the entries searched"
)


@dataclass(frozen=True, eq=False)
class Bm25Index:
    """BM25 over the texts of a scope."""

    counted: Counted
    k1: float
    b: float
    mean_length: float = LENGTH.default

    def scores(self, words: Iterable[str]) -> Floats:
        """Score every entry, float64[entries]; 0 where no term occurs, and a repeated term counts again."""
        total = np.zeros(len(self.counted.lengths))
        for word in words:
            texts, counts, _ = self.counted.posting(word)
            tf = counts.astype(np.float64)
            total[texts] += self.idf(len(texts)) * tf * (self.k1 + 1) / (tf + self._norm[texts])
        return total

    def idf(self, holding: int) -> float:
        """The weight of a term that so many entries hold."""
        return float(np.log(1 + (len(self.counted.numbers) - holding + 0.5) / (holding + 0.5)))

    @cached_property
    def _norm(self) -> Floats:
        """float64[entries]: how much more often a term has to occur in a longer entry."""
        lengths = self.counted.lengths.astype(np.float64)
        mean = max(self.mean_length or self.counted.mean_length, 1e-9)
        norm: Floats = self.k1 * (1 - self.b + self.b * lengths / mean)
        return norm


class Bm25Retriever:
    """BM25 over the words of an entry, with the statistics of each scope.

    Where the words say `whole`, statistics are those of the `corpus` of a query, and its scope acts on what is
    found, before the cut.
    """

    def __init__(
        self,
        store: Readable,
        k1: float = K1.default,
        b: float = B.default,
        words: Words | None = None,
        corpus: Callable[[Query], Filters] = lambda query: EVERYTHING,
        mean_length: float = LENGTH.default,
    ) -> None:
        K1.checked(k1)
        B.checked(b)
        LENGTH.checked(mean_length)
        self._corpus, self._words = corpus, words or Words()
        analysis, least, self._most = self._words.analysis, self._words.least, k1 + 1

        def index(filters: Filters) -> Bm25Index:
            counted = store.counted(analysis, filters)
            return Bm25Index(counted.only(counted.lengths >= least) if least else counted, k1, b, mean_length)

        self._index = ScopeCache(store, index)

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve; entries without any term of the query are not returned."""
        index = self._index_of(query)
        scores = index.scores(self._words.split(query.keywords))
        matching = scores > 0
        if self._words.whole and query.filters:
            matching &= index.counted.within(query.filters)
        best = index.counted.best(scores, np.flatnonzero(matching), depth)
        return [Found(id_, score, place) for place, (id_, score) in enumerate(best, 1)]

    def ends(self, query: Query) -> tuple[float, float]:
        """See Bounded.ends: from 0 to the sum of ``idf * (k1 + 1)``, terms that no entry has included."""
        index = self._index_of(query)
        terms = self._words.split(query.keywords)
        return 0.0, float(sum(index.idf(len(index.counted.posting(term).at)) for term in terms)) * self._most

    def _index_of(self, query: Query) -> Bm25Index:
        return self._index(self._corpus(query) if self._words.whole else query.filters)


def _bm25(parts: Parts, settings: RetrieverConfig) -> Bm25Retriever:
    return Bm25Retriever(
        parts.store, words=parts.reading.bm25_words, corpus=parts.counted, **BM25.values(settings)
    )


BM25 = RetrieverKind(
    name="bm25",
    build=_bm25,
    bounded=True,
    parameters=(K1, B, LENGTH),
    counts=lambda reading: reading.bm25_words.analysis,
    seeks=lambda reading, text: ", ".join(dict.fromkeys(reading.bm25_words.split(text))),
)


@dataclass(frozen=True)
class TermCounter:
    """How many terms of the query BM25 counts, the same for every candidate."""

    words: Words

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """See Scorer.score."""
        return np.full(len(ids), float(len(self.words.split(query.keywords))))


TERMS = ScorerKind(name="terms", build=lambda parts: TermCounter(parts.reading.bm25_words))
