"""Cuts lists to a length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools
from steelyard.finish.base import Stage, name_of, whole_number
from steelyard.finish.ranking import Ranking
from steelyard.grammar import Item
from steelyard.table.signal_table import RETRIEVERS, SignalTable, count_rows


@dataclass(frozen=True, slots=True)
class Cut(Stage):
    """Keep the first `limit` places of every list.

    Attributes
    ----------
    limit : int
        At least 1.
    all_below : int
        A list of fewer candidates than this is not cut if the cut would drop more than half of it
        (Soleri's small-corpus guard).
    counting : str
        The retriever whose candidates are counted for this; empty to count all that are ranked.
    """

    keyword: ClassVar = "cut"
    FORM: ClassVar = "a whole number from 1 to 1000000000, as in cut(10) or cut(10, all_below=50, counting=fts)"

    limit: int
    all_below: int = 0
    counting: str = ""

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        size = np.diff(ranking.offsets)
        place = np.arange(len(ranking.row)) - np.repeat(ranking.offsets[:-1], size)
        return ranking.keep(place < np.repeat(np.where(self._whole(table, size), size, self.limit), size))

    def _whole(self, table: SignalTable, size: NDArray[np.int64]) -> Bools:
        """The lists that are not cut; bool[Q]."""
        count = count_rows(table, ~np.isnan(table.column(self.counting))) if self.counting else size
        whole: Bools = (count < self.all_below) & (size > 2 * self.limit)
        return whole

    @property
    def needs(self) -> frozenset[str]:
        """The retriever whose candidates are counted."""
        return frozenset({self.counting} - {""})

    @classmethod
    def read(cls, limit: Item, all_below: float = 0.0, counting: Item | None = None) -> Cut:
        """See Stage."""
        counted = "" if counting is None else name_of(counting, RETRIEVERS)
        return cls(whole_number(limit.weight), whole_number(all_below, 0), counted)
