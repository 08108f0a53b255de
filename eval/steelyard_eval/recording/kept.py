"""Recordings of a workspace, for the next command that asks the same of the same queries, or of some of them."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.memory.query import Query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.recording.select import only

NUMBERS = 20_000_000
"""How many numbers are kept, about 160 MB: the recordings of all families on some hundreds of queries."""


class KeptTables:
    """The last recordings, each under all that it depends on beside its queries."""

    def __init__(self) -> None:
        self._held: list[tuple[object, dict[str, Query], SignalTable]] = []

    def find(self, key: object, queries: Sequence[Query]) -> SignalTable | None:
        """The recording of these queries, in their order; None where there is none of all of them."""
        for held, known, table in self._held:
            if held == key and all(known.get(query.id) == query for query in queries):
                return only(table, [query.id for query in queries])
        return None

    def keep(self, key: object, queries: Sequence[Query], table: SignalTable) -> None:
        """Keep a recording, if it is no larger than all that may be kept; the oldest give way to it."""
        if _numbers(table) > NUMBERS:
            return
        self._held.append((key, {query.id: query for query in queries}, table))
        while sum(_numbers(own) for *_, own in self._held) > NUMBERS:
            del self._held[0]


def _numbers(table: SignalTable) -> int:
    return len(table) * (len(table.columns) + len(table.positions))
