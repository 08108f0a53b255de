"""Keyword search by SQLite's FTS5, or by PostgreSQL's rules in systems that use those."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.memory.query import Filters, Query
from steelyard.retrievers.kinds import Parts, Retriever, RetrieverConfig, RetrieverKind
from steelyard.retrievers.reading import MatchBuilder
from steelyard.retrievers.tsearch import TsRetriever, analysis
from steelyard.stores.base import Found, KeywordIndex, Readable, TextSearch


@dataclass(frozen=True)
class FtsRetriever:
    """FTS5's BM25 with a weight for each field; the scope is a condition in SQL, before the cut.

    FTS5 computes its statistics over the whole vault, whatever the scope.
    """

    store: Readable
    index: KeywordIndex
    match: MatchBuilder
    weights: Sequence[float]

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve."""
        most = -1 if depth is None else depth
        return self.store.keyword(self.index, self.match(query.keywords), self.weights, query.filters, most)

    def ends(self, query: Query) -> tuple[float, float]:
        """See Bounded.ends; SQLite tells no upper end."""
        return 0.0, math.nan


def _keywords(parts: Parts, settings: RetrieverConfig, match: MatchBuilder) -> Retriever:
    index = parts.reading.index
    fields = () if isinstance(index, TextSearch) else index.fields
    if unknown := [name for name in settings.field_weights if name not in fields]:
        named = ", ".join(f"{shown(name)}{nearest(name, fields)}" for name in unknown)
        raise ConfigError(f"field_weights of {parts.name}: unknown field {named}")
    if isinstance(index, TextSearch):
        return TsRetriever(parts.store, index)
    return FtsRetriever(parts.store, index, match, [settings.field_weights.get(name, 1.0) for name in fields])


FTS = RetrieverKind(
    name="fts",
    build=lambda parts, settings: _keywords(parts, settings, parts.reading.match),
    weighs_fields=True,
    counts=lambda reading: analysis(reading.index) if isinstance(reading.index, TextSearch) else None,
    seeks=lambda reading, text: None if isinstance(reading.index, TextSearch) else reading.match(text),
)
MEMORY = RetrieverKind(
    name="memory",
    build=lambda parts, settings: _keywords(parts, settings, parts.reading.match_memory),
    weighs_fields=True,
    aside=Filters.of({"kind": "memory"}),
)
