"""A store as a caller sees it who may see a part of it: as if there were nothing else.

FTS5 and TF-IDF count words over all entries they hold, and an entry may supersede another one. So what a caller
may see is copied into a vault in memory, and that is searched: no number, order or message depends on more.
The copy is kept until the store changes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import ConfigError
from steelyard.memory.entry import Entry
from steelyard.memory.filters import EVERYTHING, SUPERSEDED, Filters
from steelyard.stores.base import COSINE, Edge, Found, KeywordIndex, Readable, Space
from steelyard.stores.postings import Analysis, Counted


class Whole(Readable, Protocol):
    """A store that can be copied in part, as a vault can."""

    def copied(self, visible: Filters) -> tuple[int, Readable]:
        """The revision that was copied, and the entries of it that `visible` admits as a store of their own."""


class ScopedStore:
    """See Readable: the entries of a vault that `visible` admits. Threads may share it.

    Raises ConfigError for a scope that asks whether entries are superseded: that depends on all of them.
    """

    def __init__(self, vault: Whole, visible: Filters) -> None:
        if any(rule.field == SUPERSEDED for clause in visible.clauses for rule in clause):
            raise ConfigError("a scope cannot ask for superseded entries; filter by that instead")
        self._vault, self._visible = vault, Filters(visible.clauses)
        self._building = threading.Lock()
        self._copied: tuple[int, Readable] | None = None

    def _seen(self) -> Readable:
        """The copy of what is visible now."""
        known = self._copied
        if known is None or known[0] != self._vault.revision():
            with self._building:
                known = self._copied = self._vault.copied(self._visible)
        return known[1]

    def seen_by(self, visible: Filters) -> Readable:
        """See Readable.seen_by."""
        return ScopedStore(self._vault, self._visible & Filters(visible.clauses))

    def get(self, ids: Sequence[str], fields: Sequence[str] | None = None) -> list[Entry]:
        """See Readable.get."""
        return self._seen().get(ids) if fields is None else self._seen().get(ids, fields)

    def entries(self, filters: Filters = EVERYTHING) -> Iterator[Entry]:
        """See Readable.entries."""
        return self._seen().entries(filters)

    def places(self) -> Iterator[tuple[str, str, bool]]:
        """See Readable.places."""
        return self._seen().places()

    def within(self, ids: Sequence[str], filters: Filters) -> set[str]:
        """See Readable.within."""
        return self._seen().within(ids, filters)

    def recent(self, filters: Filters, limit: int) -> list[Entry]:
        """See Readable.recent."""
        return self._seen().recent(filters, limit)

    def count(self, filters: Filters = EVERYTHING) -> int:
        """See Readable.count."""
        return self._seen().count(filters)

    def covers(self, filters: Filters) -> bool:
        """See Readable.covers."""
        return self._seen().covers(filters)

    def revision(self) -> int:
        """See Readable.revision."""
        return self._vault.revision()

    def keyword(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[Found]:
        """See Readable.keyword; statistics are those of what is visible."""
        return self._seen().keyword(index, match, weights, filters, depth)

    def counted(self, analysis: Analysis, filters: Filters) -> Counted:
        """See Readable.counted; statistics are those of what is visible."""
        return self._seen().counted(analysis, filters)

    def edges(self, ids: Sequence[str]) -> list[Edge]:
        """See Readable.edges; those that visible entries state, to whatever they lead."""
        return self._seen().edges(ids)

    def spaces(self) -> list[tuple[Space, int]]:
        """See Readable.spaces; those in which something visible has a vector."""
        return self._seen().spaces()

    def without_vectors(self, spaces: Sequence[Space]) -> list[str]:
        """See Readable.without_vectors."""
        return self._seen().without_vectors(spaces)

    def nearest(
        self,
        space: Space,
        vector: NDArray[np.float32],
        filters: Filters,
        depth: int,
        filter_first: bool,
        metric: str = COSINE,
    ) -> list[Found]:
        """See Readable.nearest."""
        return self._seen().nearest(space, vector, filters, depth, filter_first, metric)

    def expect(self, space: Space, vectors: Sequence[NDArray[np.float32]]) -> None:
        """See Readable.expect."""
        self._seen().expect(space, vectors)

    def unembedded(self, spaces: Sequence[Space], filters: Filters) -> list[str]:
        """See Readable.unembedded."""
        return self._seen().unembedded(spaces, filters)

    def vectors(self, space: Space, filters: Filters) -> tuple[list[str], NDArray[np.float32]]:
        """See Readable.vectors."""
        return self._seen().vectors(space, filters)

    def vectors_of(self, space: Space, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """See Readable.vectors_of."""
        return self._seen().vectors_of(space, ids)
