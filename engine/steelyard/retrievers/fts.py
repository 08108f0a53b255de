"""Keyword search by SQLite's FTS5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.query import Query
from steelyard.stores.base import Found, KeywordIndex, Readable
from steelyard.text import MatchBuilder, clean_query


@dataclass(frozen=True)
class FtsRetriever:
    """BM25 of FTS5 with a weight a field; the scope is a condition in SQL, before the cut.

    FTS5 counts its statistics over the whole vault, whatever the scope.
    """

    store: Readable
    index: KeywordIndex
    match: MatchBuilder
    weights: Sequence[float]

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve."""
        expression = self.match(clean_query(query.text))
        return self.store.keyword(
            self.index, expression, self.weights, query.filters, -1 if depth is None else depth
        )
