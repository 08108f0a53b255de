"""Adds what another retriever found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.finish.base import Stage, name_of, whole_number
from steelyard.finish.ranking import Ranking
from steelyard.grammar import Item
from steelyard.table.signal_table import RETRIEVERS, SignalTable, count_rows, ranks


@dataclass(frozen=True, slots=True)
class Merge(Stage):
    """Add what a separate retriever found, all at one score (Soleri's memories at 0.5).

    Rows that are already ranked keep their score, and come before added rows of the same score. With `if_none`
    at most so many are added, and only to lists that have none of them (system-spec-kit's constitutional entries).
    """

    keyword: ClassVar = "merge"
    FORM: ClassVar = "a retriever and a number, as in merge(memory, score=0.5)"

    retriever: str
    score: float
    if_none: int = 0

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        returned = ~np.isnan(table.column(self.retriever))
        added = returned & self._admitted(table, ranking, returned) if self.if_none else returned
        added[ranking.row] = False
        extra = np.flatnonzero(added)
        extra = extra[np.lexsort((-table.column(self.retriever)[extra], table.query[extra]))]
        row = np.concatenate((ranking.row, extra))
        score = np.concatenate((ranking.score, np.full(len(extra), self.score)))
        best = np.lexsort((-score, table.query[row]))  # stable: ranked rows come first, memories by their own rank
        offsets = np.searchsorted(table.query[row][best], np.arange(len(table.queries) + 1)).astype(np.int64)
        return Ranking(offsets, row[best], score[best])

    def _admitted(self, table: SignalTable, ranking: Ranking, found: Bools) -> Bools:
        """bool[N]: the first rows of its list, in the queries whose ranking has none of them."""
        listed = np.zeros(len(table), dtype=bool)
        listed[ranking.row] = found[ranking.row]
        place = ranks(table, table.column(self.retriever), found)
        admitted: Bools = (count_rows(table, listed) == 0)[table.query] & (place <= self.if_none)
        return admitted

    @property
    def needs(self) -> frozenset[str]:
        """The retriever whose rows are added."""
        return frozenset({self.retriever})

    @classmethod
    def read(cls, retriever: Item, score: float, if_none: float = 0.0) -> Merge:
        """See Stage."""
        if not isinstance(score, float):
            raise ValueError
        return cls(name_of(retriever, RETRIEVERS), score, whole_number(if_none, 0))
