"""Retrievers find candidates (query -> entries with scores); scorers give a number to every candidate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from steelyard.query import Query
from steelyard.stores.base import Found
from steelyard.table import Floats


class Retriever(Protocol):
    """Finds candidates for a query."""

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """The entries in the query's scope, best first, down to `depth` (None: all there are).

        Ties are by ascending id, also at the cut. Scores are finite.
        """


class Scorer(Protocol):
    """Gives every candidate of a query a number."""

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """float64[len(ids)], finite; the value of an id does not depend on the other ids."""
