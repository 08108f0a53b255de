"""A retriever in one file: the share of the query's words that are in an entry's title."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.memory.query import Query
from steelyard.memory.text import terms
from steelyard.node import Option
from steelyard.retrievers.kinds import Parts, RetrieverConfig, RetrieverKind
from steelyard.stores.base import Found, Readable

LEAST = Option("least", 0.5, 0, 1, "The smallest share of the query's words for which an entry is returned")


@dataclass(frozen=True)
class TitleRetriever:
    """Compares stems; an entry without any word of the query is never returned."""

    store: Readable
    least: float

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve."""
        asked = set(terms(query.keywords))
        shares = {
            e.id: len(asked & set(terms(e.title))) / len(asked) for e in self.store.entries(query.filters) if asked
        }
        found = [id_ for id_, share in shares.items() if share > 0 and share >= self.least]
        best = sorted(found, key=lambda id_: (-shares[id_], id_.encode()))[:depth]
        return [Found(id_, shares[id_], place) for place, id_ in enumerate(best, 1)]


def _build(parts: Parts, settings: RetrieverConfig) -> TitleRetriever:
    return TitleRetriever(parts.store, TITLE.values(settings)["least"])


TITLE = RetrieverKind(name="title", build=_build, parameters=(LEAST,))
