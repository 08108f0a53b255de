"""BM25 in memory, with the statistics of the query's own scope (Robertson and Zaragoza, 2009).

``sum of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length))`` with
``idf = ln(1 + (N - n + 0.5) / (n + 0.5))``, over the terms of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Bools, Floats
from steelyard.filters import EVERYTHING, Filters
from steelyard.query import Query
from steelyard.reading import Words
from steelyard.retrievers.cache import ScopeCache
from steelyard.retrievers.kinds import Parameter, Parts, RetrieverConfig, RetrieverKind
from steelyard.stores.base import Found, Readable

K1 = Parameter("k1", 1.2, 0, 1000, "How much further occurrences of a term add; at 0 only the first one counts")
B = Parameter("b", 0.75, 0, 1, "How much long entries are penalised: from 0, not at all, to 1, in full")


@dataclass(frozen=True)
class Bm25Index:
    """Impacts of every term: the entries ``postings[t][0]`` contain term t and score ``postings[t][1]``."""

    ids: tuple[str, ...]
    postings: dict[str, tuple[NDArray[np.int64], Floats]]

    @classmethod
    def of(cls, documents: Iterable[tuple[str, list[str]]], k1: float, b: float) -> Bm25Index:
        """Index (id, terms) pairs; ids must ascend, because ties are broken by position.

        Parameters
        ----------
        documents : iterable of (str, list of str)
            Ids with the terms of each entry, repeated terms included.
        k1, b : float
            See `K1` and `B`.
        """
        ids: list[str] = []
        sizes: list[int] = []
        found: dict[str, dict[int, int]] = {}
        for at, (id_, words) in enumerate(documents):
            ids.append(id_)
            sizes.append(len(words))
            for word in words:
                counts = found.setdefault(word, {})
                counts[at] = counts.get(at, 0) + 1
        length = np.array(sizes, dtype=np.float64)
        norm = k1 * (1 - b + b * length / max(float(length.mean()), 1e-9)) if ids else length
        return cls(tuple(ids), {word: _impacts(counts, norm, len(ids), k1) for word, counts in found.items()})

    def scores(self, words: Iterable[str]) -> Floats:
        """Score every entry, float64[entries]; 0 where no term occurs, and a repeated term counts again."""
        total = np.zeros(len(self.ids))
        for word in words:
            if word in self.postings:
                at, impact = self.postings[word]
                total[at] += impact
        return total


def _impacts(counts: dict[int, int], norm: Floats, size: int, k1: float) -> tuple[NDArray[np.int64], Floats]:
    at = np.fromiter(counts, dtype=np.int64, count=len(counts))
    tf = np.fromiter(counts.values(), dtype=np.float64, count=len(counts))
    idf = np.log(1 + (size - len(at) + 0.5) / (len(at) + 0.5))
    return at, idf * tf * (k1 + 1) / (tf + norm[at])


class Bm25Retriever:
    """BM25 over the words of an entry; one index a scope, built on first use.

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
    ) -> None:
        K1.checked(k1)
        B.checked(b)
        self._store, self._corpus = store, corpus
        self._words = words or Words()
        self._index = ScopeCache(store, lambda filters: Bm25Index.of(self._documents(filters), k1, b))
        self._inside = ScopeCache(store, self._mask)

    def _documents(self, filters: Filters) -> Iterator[tuple[str, list[str]]]:
        for entry in self._store.entries(filters):
            words = self._words.of(entry)
            if len(words) >= self._words.least:
                yield entry.id, words

    def _mask(self, scopes: tuple[Filters, Filters]) -> Bools:
        """bool[entries]: which entries of the index over one scope are in the other, too."""
        corpus, filters = scopes
        ids = self._index(corpus).ids
        inside = self._store.within(ids, filters)
        return np.fromiter((id_ in inside for id_ in ids), dtype=bool, count=len(ids))

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve; entries without any term of the query are not returned."""
        corpus = self._corpus(query) if self._words.whole else query.filters
        index = self._index(corpus)
        scores = index.scores(self._words.split(query.keywords))
        found = scores > 0
        if self._words.whole and query.filters:
            found &= self._inside((corpus, query.filters))
        at = np.flatnonzero(found)
        best = at[np.argsort(-scores[at], kind="stable")][:depth]
        return [Found(index.ids[i], float(scores[i]), place) for place, i in enumerate(best, 1)]


def _bm25(parts: Parts, settings: RetrieverConfig) -> Bm25Retriever:
    values = BM25.values(settings)
    return Bm25Retriever(parts.store, values["k1"], values["b"], parts.reading.bm25_words, parts.counted)


BM25 = RetrieverKind(name="bm25", build=_bm25, parameters=(K1, B))
