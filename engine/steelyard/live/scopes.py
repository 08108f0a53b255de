"""Scopes combine what the system searches with the filters of the query."""

from __future__ import annotations

from dataclasses import dataclass, field

from steelyard.memory.filters import EVERYTHING, Filters, Rule, valid_at
from steelyard.memory.query import Query
from steelyard.retrievers.cache import ScopeCache
from steelyard.retrievers.reading import Reading
from steelyard.stores.base import Readable

UNLIMITED = Filters.all_of((Rule("valid_from", "absent"),), (Rule("valid_until", "absent"),))


@dataclass(frozen=True)
class Scopes:
    """The scopes of one system over one store.

    A filter that excludes nothing is replaced by `EVERYTHING`, because filtering takes time.
    """

    store: Readable
    reading: Reading
    _counts: ScopeCache[int] = field(init=False)
    _covers: ScopeCache[bool] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_counts", ScopeCache(self.store, self.store.count))
        object.__setattr__(self, "_covers", ScopeCache(self.store, self.store.covers))

    def answers(self, query: Query) -> Filters:
        """Return the scope of the entries that may answer a query, which needs its clock."""
        return self._corpus() & self._asked(query)

    def searched(self, query: Query, name: str, aside: Filters | None, filtered: bool) -> Filters:
        """Return the scope that a retriever searches.

        Parameters
        ----------
        name : str
            The retriever.
        aside : Filters or None
            The entries of a retriever that does not search the corpus.
        filtered : bool
            Whether the query's own filters act in this retriever.
        """
        inside = aside
        if inside is None:
            inside = self._corpus() & self._limited(self.reading.hidden.get(name, EVERYTHING))
        return inside & self._asked(query) if filtered else inside

    def counted(self, query: Query) -> Filters:
        """Return the scope of the entries whose words TF-IDF counts."""
        return self._corpus() & (self._valid(query) if self.reading.valid_words else EVERYTHING)

    def any_of(self, filters: Filters) -> bool:
        """Whether any entry of the store passes the filters."""
        return self._counts(filters) > 0

    def _asked(self, query: Query) -> Filters:
        return query.filters & (self._valid(query) if self.reading.valid_only else EVERYTHING)

    def _corpus(self) -> Filters:
        return self._limited(self.reading.corpus)

    def _limited(self, scope: Filters) -> Filters:
        return EVERYTHING if not scope or self._covers(scope) else scope

    def _valid(self, query: Query) -> Filters:
        return EVERYTHING if self._covers(UNLIMITED) else valid_at(query.asked_at or 0.0)
