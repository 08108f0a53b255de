"""Stages that cut, drop, append and merge: what is shown of a list that is ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools
from steelyard.finish.base import Ranking, Stage, name_of, order, whole_number
from steelyard.grammar import Item
from steelyard.table.signal_table import RETRIEVERS, SCORERS, SignalTable, count_rows, ranks


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


@dataclass(frozen=True, slots=True)
class Drop(Stage):
    """Drop the rows for which a signal is 0, without filling the list up (MoltNet's negation)."""

    keyword: ClassVar = "drop"
    FORM: ClassVar = f"one of {', '.join(sorted(SCORERS))}, as in drop(lexical)"

    signal: str

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        return ranking.keep(table.column(self.signal)[ranking.row] != 0)

    @property
    def needs(self) -> frozenset[str]:
        """The signal that decides."""
        return frozenset({self.signal})

    @classmethod
    def read(cls, signal: Item) -> Drop:
        """See Stage."""
        return cls(name_of(signal, SCORERS))


@dataclass(frozen=True, slots=True)
class AtLeast(Stage):
    """Drop what scores below `score`."""

    keyword: ClassVar = "at_least"
    FORM: ClassVar = "one number, as in at_least(0.5)"

    score: float

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        return ranking.keep(ranking.score >= self.score)

    @classmethod
    def read(cls, score: Item) -> AtLeast:
        """See Stage."""
        if score.weight is None or score.call.name:
            raise ValueError
        return cls(score.weight)


@dataclass(frozen=True, slots=True)
class Files(Stage):
    """What becomes of a directory in the list, an entry that others lie in and that has no text of its own.

    It is dropped, or with ``entries`` stands for the entries in it: those that are not ranked take its place
    and its score. (Cortex-Mem's full search returns directories too.)
    """

    keyword: ClassVar = "files"
    FORM: ClassVar = "none or entries: what stands for directories, as in files(entries)"

    instead: str

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        folder, home = self.folders(table), table.home
        if self.instead == "none":
            return ranking.keep(~folder[ranking.row])
        score = np.full(len(table), np.nan)
        score[ranking.row] = ranking.score
        lent = np.where((home >= 0) & folder[home] & ~folder, score[home], np.nan)
        score[folder] = np.nan
        return order(table, np.where(np.isnan(score), lent, score))

    @staticmethod
    def folders(table: SignalTable) -> Bools:
        """bool[N]: the rows of directories."""
        home, rows = table.home, np.arange(len(table))
        folder = np.zeros(len(table), dtype=bool)
        folder[home[(home >= 0) & (home != rows)]] = True
        return folder & np.isnan(table.columns["l2"]) if "l2" in table.columns else folder

    @property
    def needs(self) -> frozenset[str]:
        """The layer that a directory lacks."""
        return frozenset({"l2"})

    @classmethod
    def read(cls, instead: Item) -> Files:
        """See Stage."""
        return cls(name_of(instead, ("none", "entries")))


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
