"""Whose lists does a log hold? The share of places that our replay gives again is printed for every policy.

Nothing is refused for it: what is learned from a list are its entries, their places and what was done with them,
whatever engine made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.learn.cells import PositionCounts
from steelyard_eval.learn.reader import Log
from steelyard_eval.learn.top10 import MISSING_ROW, PLACES, LoggedPairs, rows_of, top10_rows
from steelyard_eval.result.structs import Cell

AGREES = 0.8
"""The share of equal places from which on a log counts as that of the policy."""

DEEPER = 40
"""Places that our lists are longer where entries are newer than the log, and are taken out."""


@dataclass(frozen=True)
class MatchedImpressions:
    """The counts of a log, matched to queries and entries of a recording; M keys.

    Attributes
    ----------
    policy, query, fold, entry, place : int64[M]; mixed, largest, busiest, earlier : bool[M]
        `Log.columns`; `entry` is -1 for one that is in no recording, `query` for one that was not recorded.
    shown : float64[M]; acts : float64[M, A]
    """

    policy: Indices
    mixed: Bools
    query: Indices
    fold: Indices
    largest: Bools
    busiest: Bools
    earlier: Bools
    entry: Indices
    place: Indices
    shown: Floats
    acts: Floats

    @classmethod
    def of(cls, log: Log, query_of: Indices, entry_of: Indices) -> MatchedImpressions:
        """Translate a log's numbers: `query_of` to queries of a recording, `entry_of` to its entries.

        Both are int64, -1 for what it lacks; the last of `entry_of` stands for unknown entries.
        """
        policy, mixed, query, fold, largest, busiest, earlier, entry, place = log.columns
        return cls(
            policy,
            mixed > 0,
            query_of[query],
            fold,
            largest > 0,
            busiest > 0,
            earlier > 0,
            entry_of[entry],
            place,
            log.tally.shown,
            log.tally.acts,
        )

    @property
    def known(self) -> Bools:
        """bool[M]: whose query and entry are known."""
        return np.asarray((self.query >= 0) & (self.entry >= 0), dtype=np.bool_)

    @property
    def listless(self) -> bool:
        """Whether every list is one entry that was acted upon: a tally, such as Soleri keeps, and no lists."""
        acted = self.acts.sum(axis=1) >= self.shown - 1e-9
        return bool(len(acted)) and bool(acted.all()) and not self.place.any()

    def cells(self, pairs: LoggedPairs, part: Bools | slice = slice(None)) -> PositionCounts:
        """The counts, or a part of them, by rows of the pairs."""
        row = pairs.find(self.query[part], self.entry[part])
        return PositionCounts.of(pairs, row, self.place[part], self.shown[part], self.acts[part])


def recognise(
    log: Log,
    hits: MatchedImpressions,
    pairs: LoggedPairs,
    table: SignalTable,
    configurations: Mapping[str, SearchConfig],
    current: SearchConfig,
    grown: Indices,
) -> list[list[Cell]]:
    """Compare the lists of every policy with those of its configuration, or with those of what is used today.

    A row has its name, its searches, the share of places that are equal, of the lists that were not mixed, and how
    far it is known: replayed (our lists of its configuration, or of what is used today, are those that were
    shown), interleaved (all its lists were mixed with others') or another engine's. `grown` are the numbers of
    entries that are newer than the log: our lists are compared without them.
    """
    rows: list[list[Cell]] = []
    row_of = rows_of(pairs, table)
    newer = np.isin(table.entry, grown)
    row = pairs.find(hits.query, hits.entry)
    for number, name in enumerate(log.policies):
        searches, every = log.searches.get(name, 0), hits.policy == number
        alone = every & ~hits.mixed
        if not alone.any():
            rows.append([name or None, searches, 0.0, "interleaved"])
            continue
        config = configurations.get(name, current)
        deep = config.with_limit(config.limit + int(newer.sum() > 0) * DEEPER)
        try:
            ours = top10_rows(table, deep, np.where(np.append(newer, False), MISSING_ROW, row_of))
        except ConfigError:
            ours = np.full((len(table.queries), PLACES), -1)
        shown = hits.shown[alone]
        equal = (row[alone] >= 0) & (ours[np.maximum(hits.query[alone], 0), hits.place[alone]] == row[alone])
        agreement = float((shown * equal).sum() / max(float(shown.sum()), 1e-12))
        rows.append([name or None, searches, agreement, "replayed" if agreement >= AGREES else "other_engine"])
    return rows
