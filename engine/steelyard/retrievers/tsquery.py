"""Keyword search by PostgreSQL's rules for English, and its match as a scorer (MoltNet)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError
from steelyard.memory.entry import Entry
from steelyard.memory.filters import EVERYTHING
from steelyard.memory.query import Query
from steelyard.retrievers.cache import ScopeCache
from steelyard.retrievers.kinds import Parts, ScorerKind
from steelyard.retrievers.tsearch import TsIndex, flat, has_negation, matches, tsvector, websearch
from steelyard.stores.base import Found, Readable, TextSearch
from steelyard.stores.postings import Analysis


class TsRetriever:
    """Searches by web-search syntax and ranks by ts_rank; the scope acts before the cut.

    ts_rank uses no statistics of the corpus, so one index serves every scope.
    """

    def __init__(self, store: Readable, search: TextSearch) -> None:
        counting = analysis(search)
        self._index = ScopeCache(store, lambda scope: TsIndex(store.counted(counting, scope)))

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve; a query of stop words and signs alone finds nothing."""
        asked = websearch(query.keywords)
        if asked is None:
            return []
        best = self._index(EVERYTHING).best(asked, query.filters, depth)
        return [Found(id_, score, place) for place, (id_, score) in enumerate(best, 1)]


def analysis(search: TextSearch) -> Analysis:
    """How a store counts the lexemes of its entries: with their positions."""
    text = search.text
    name = f"tsearch {text.__module__}.{text.__qualname__}"
    return Analysis(name, lambda entry: flat(tsvector(text(entry))), search.fields)


class LexicalScorer:
    """Scores 1 for a candidate that matches the whole query, or when the query excludes nothing; else 0.

    A negation is a lexical constraint: it also drops what only the vectors found, unless the positive
    part matches too. Source: MoltNet's document, negation tradeoff.
    """

    def __init__(self, store: Readable, text: Callable[[Entry], str]) -> None:
        self._store = store
        self._text = text

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """See Scorer.score."""
        asked = websearch(query.keywords)
        if asked is None or not has_negation(asked):
            return np.ones(len(ids))
        held = {e.id for e in self._store.get(ids) if matches(asked, tsvector(self._text(e)))}
        return np.array([float(id_ in held) for id_ in ids], dtype=np.float64)


def _lexical(parts: Parts) -> LexicalScorer:
    index = parts.reading.index
    if not isinstance(index, TextSearch):
        raise ConfigError(f"{parts.name} has no exclusions, so it has no signal lexical; drop the stage")
    return LexicalScorer(parts.store, index.text)


LEXICAL = ScorerKind(name="lexical", build=_lexical)
