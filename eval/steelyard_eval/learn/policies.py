"""Whose lists does a log hold? The share of places that our replay gives again is printed for every policy.

Nothing is refused for it: what is learned from a list are its entries, their places and what was done with them,
whatever engine made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Bools, Indices
from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.documents.learn import PolicyRecord
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.first_ten import GONE, PLACES, LoggedPairs, rows_of, rows_shown
from steelyard_eval.learn.reader import Log
from steelyard_eval.learn.tally import Tally

AGREES = 0.8
"""The share of equal places from which on a log counts as that of the policy."""

DEEPER = 40
"""Places that our lists are longer where entries are newer than the log, and are taken out."""


@dataclass(frozen=True)
class Hits:
    """The counts of a log, matched to queries and entries of a recording; M keys.

    Attributes
    ----------
    policy, query, entry, place : int64[M]; mixed : bool[M]
        `entry` is -1 for one that is in no recording; `query` -1 for one that was not recorded.
    """

    policy: Indices
    mixed: Bools
    query: Indices
    entry: Indices
    place: Indices
    tally: Tally

    @classmethod
    def of(cls, log: Log, tally: Tally, query_of: Indices, entry_of: Indices) -> Hits:
        """Translate a log's numbers: `query_of` to queries of a recording, `entry_of` to its entries.

        Both are int64, -1 for what it lacks; the last of `entry_of` stands for unknown entries.
        """
        policy, mixed, query, entry, place = log.axes.split(tally.key)
        return cls(policy, mixed, query_of[query], entry_of[entry], place, tally)

    @property
    def known(self) -> Bools:
        """bool[M]: whose query and entry are known."""
        return np.asarray((self.query >= 0) & (self.entry >= 0), dtype=np.bool_)

    def row(self, pairs: LoggedPairs) -> Indices:
        """int64[M]: the row of the pairs; -1 for none."""
        return pairs.find(self.query, self.entry)

    def cells(self, pairs: LoggedPairs) -> Cells:
        """The counts as cells."""
        return Cells.of(pairs, self.row(pairs), self.place, self.tally.shown, self.tally.acts)


def recognise(
    log: Log,
    hits: Hits,
    pairs: LoggedPairs,
    table: SignalTable,
    configurations: Mapping[str, SearchConfig],
    current: SearchConfig,
    grown: Indices,
) -> list[PolicyRecord]:
    """Compare the lists of every policy with those of its configuration, or with those of what is used today.

    `how` is replayed (our lists of its configuration, or of what is used today, are those that were shown),
    interleaved (all its lists were mixed with others') or another engine's. `agreement` is the share of places
    that are equal, of the lists that were not mixed. `grown` are the numbers of entries that are newer than the
    log: our lists are compared without them.
    """
    records: list[PolicyRecord] = []
    row_of = rows_of(pairs, table)
    newer = np.isin(table.entry, grown)
    row = hits.row(pairs)
    for number, name in enumerate(log.policies):
        searches, every = log.searches.get(name, 0), hits.policy == number
        alone = every & ~hits.mixed
        if not alone.any():
            records.append({"name": name, "searches": searches, "how": "interleaved", "agreement": 0.0})
            continue
        config = configurations.get(name, current)
        deep = config.with_limit(config.limit + int(newer.sum() > 0) * DEEPER)
        try:
            ours = rows_shown(table, deep, np.where(np.append(newer, False), GONE, row_of))
        except ConfigError:
            ours = np.full((len(table.queries), PLACES), -1)
        shown = hits.tally.shown[alone]
        equal = (row[alone] >= 0) & (ours[np.maximum(hits.query[alone], 0), hits.place[alone]] == row[alone])
        agreement = float((shown * equal).sum() / max(float(shown.sum()), 1e-12))
        how = "replayed" if agreement >= AGREES else "another engine's"
        records.append({"name": name, "searches": searches, "how": how, "agreement": agreement})
    return records
