"""What every retriever promises."""

from __future__ import annotations

import math

from steelyard.base.errors import ConfigError
from steelyard.memory.entry import Entry
from steelyard.memory.query import Filters, Query
from steelyard.retrievers.kinds import Retriever

WORDS = ("auth", "token", "cache", "retry", "graph", "node", "index", "query")
QUERIES = ("auth token", "cache", "retry the index of a graph node", "query query auth", "nothing of this")
SCOPES = (Filters(), Filters.of({"project": "p1"}), Filters.of({"project": "p1", "type": "t0"}))
HOSTILE = (
    '"',
    "!!!",
    "NEAR(a b)",
    "NOT",
    "a AND",
    "^",
    "*",
    "{title}: x",
    "a\0b",
    "\U0001f600",
    "'; DROP",
    "the of",
)
DEPTHS = (1, 2, 3, 5, 8, 100)


def sample_entries() -> list[Entry]:
    """Thirty entries of which several say the same, in two projects and three types."""
    return [
        Entry(
            id=f"{'zam'[i % 3]}{i:02}",
            title=WORDS[i % 8],
            text=f"{WORDS[i % 5]} {WORDS[(i // 4) % 8]} {WORDS[i % 2]}",
            project=f"p{i % 2}",
            type=f"t{i % 3}",
        )
        for i in range(30)
    ]


class RetrieverContract:
    """Inherit, and give a fixture `retriever` over a store that holds `sample_entries`.

    Override `late` where filters act after the cut to the depth, so that lists may be short.
    """

    late = False

    def test_lists_are_finite_ordered_and_without_repeats(self, retriever: Retriever) -> None:
        """Score descending, then id ascending by bytes."""
        for query in self._queries():
            hits = retriever.retrieve(query, None)

            assert all(math.isfinite(f.score) for f in hits)
            assert len({f.id for f in hits}) == len(hits)
            assert list(hits) == sorted(hits, key=lambda f: (-f.score, f.id.encode()))

    def test_something_is_returned(self, retriever: Retriever) -> None:
        """Otherwise the other promises say nothing."""
        assert len(retriever.retrieve(Query("auth token"), None)) > 5

    def test_a_smaller_depth_is_a_prefix(self, retriever: Retriever) -> None:
        """The list of a depth is the deepest list down to that position, with the same bits."""
        for query in self._queries():
            whole = retriever.retrieve(query, 100)
            for depth in DEPTHS:
                assert retriever.retrieve(query, depth) == [f for f in whole if f.position <= depth]

    def test_positions_count_the_places_before_the_cut(self, retriever: Retriever) -> None:
        """From 1 without gaps, except where filters act late."""
        for query in self._queries():
            positions = [f.position for f in retriever.retrieve(query, 100)]

            if self.late and query.filters:
                assert positions == sorted(set(positions)) and min(positions, default=1) >= 1
            else:
                assert positions == list(range(1, len(positions) + 1))

    def test_only_entries_in_scope_are_returned(self, retriever: Retriever) -> None:
        """Every filter holds for every entry."""
        entries = {entry.id: entry for entry in sample_entries()}
        for query in self._queries():
            for hit in retriever.retrieve(query, None):
                entry = entries[hit.id]
                assert not query.filters.failed(entry)

    def test_the_same_query_gives_the_same_list(self, retriever: Retriever) -> None:
        """Whatever was asked in between."""
        for query in self._queries():
            first = retriever.retrieve(query, 10)
            retriever.retrieve(Query("cache"), 3)

            assert retriever.retrieve(query, 10) == first

    def test_hostile_text_is_text(self, retriever: Retriever) -> None:
        """No query syntax leaks through: a list comes back, or a ConfigError."""
        for text in HOSTILE:
            try:
                hits = retriever.retrieve(Query(text), 10)
            except ConfigError:
                continue
            assert len(hits) <= 10

    def _queries(self) -> list[Query]:
        return [Query(text, filters=scope) for text in QUERIES for scope in SCOPES]
