"""Puts entries in the place of the directories they lie in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.finish.base import Stage, name_of
from steelyard.finish.ranking import Ranking, order
from steelyard.grammar import Item
from steelyard.table.signal_table import SignalTable


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
