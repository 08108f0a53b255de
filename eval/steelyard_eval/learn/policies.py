"""Does our replay give the lists that the log says were shown? A log that it does not give is foreign.

The share of places that are equal is printed for every policy. A policy whose configuration is known is replayed;
another one is looked for among the candidates: its lists are then *reconstructed* by the weights that agree most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.first_ten import PLACES, CandidateLists
from steelyard_eval.learn.reader import Log
from steelyard_eval.learn.tally import Tally
from steelyard_eval.recording.replay import replay

AGREES = 0.8
"""The share of equal places from which on a log counts as that of the policy."""


@dataclass(frozen=True)
class Policy:
    """One policy of a log.

    `how` is replayed (its configuration is known), reconstructed (found among the candidates), interleaved (all
    its lists were mixed with others') or foreign. `agreement` is the share of places that are equal, of the lists
    that were not mixed; of interleaved ones the share of entries that are candidates at all. `candidate` is the
    number of the reconstructing candidate, -1 otherwise.
    """

    name: str
    searches: int
    how: str
    agreement: float
    candidate: int = -1


@dataclass(frozen=True)
class Hits:
    """The counts of a log, matched to the rows of lists; M keys.

    Attributes
    ----------
    policy, query, entry, place : int64[M]; mixed : bool[M]
        `entry` is -1 for one that is in no recording; `query` -1 for one outside the lists.
    row : int64[M]
        The row of the lists; -1 where no candidate could show the entry.
    """

    policy: Indices
    mixed: Bools
    query: Indices
    entry: Indices
    place: Indices
    row: Indices
    tally: Tally

    def cells(self, lists: CandidateLists, kept: Bools) -> Cells:
        """The counts of some keys (bool[M]) as cells."""
        own = self.tally
        return Cells.of(lists, self.row[kept], self.place[kept], own.shown[kept], own.acts[kept])


def match(log: Log, tally: Tally, lists: CandidateLists, query_of: Indices, entry_of: Indices) -> Hits:
    """Translate a log's numbers: `query_of` to queries of the lists, `entry_of` to entries of the recording.

    Both are int64, -1 for what the lists lack; the last of `entry_of` stands for unknown entries.
    """
    policy, mixed, query, entry, place = log.axes.split(tally.key)
    own_query, own_entry = query_of[query], entry_of[entry]
    row = np.full(len(query), -1, dtype=np.int64)
    both = (own_query >= 0) & (own_entry >= 0)
    row[both] = lists.find(own_query[both], own_entry[both])
    return Hits(policy, mixed, own_query, own_entry, place, row, tally)


def recognise(
    log: Log, hits: Hits, lists: CandidateLists, table: SignalTable, configurations: Mapping[str, SearchConfig]
) -> list[Policy]:
    """Compare the lists of every policy with ours."""
    found = []
    for number, name in enumerate(log.policies):
        own = (hits.policy == number) & ~hits.mixed
        searches = log.searches.get(name, 0)
        shown = hits.tally.shown[own]
        if not own.any():
            found.append(_mixed(name, searches, hits, hits.policy == number))
            continue
        known = _replayed(hits, own, table, configurations.get(name))
        agreement = float((shown * known).sum() / shown.sum())
        if agreement >= AGREES:
            found.append(Policy(name, searches, "replayed", agreement))
            continue
        candidate, share = _nearest(hits, own, lists, shown)
        how = "reconstructed" if share >= AGREES else "foreign"
        found.append(Policy(name, searches, how, share, candidate if how == "reconstructed" else -1))
    return found


def _mixed(name: str, searches: int, hits: Hits, own: Bools) -> Policy:
    """A policy whose lists were all interleaved: their places are not ours alone, so its entries are compared."""
    shown = hits.tally.shown[own]
    share = float((shown * (hits.row[own] >= 0)).sum() / max(float(shown.sum()), 1e-12))
    return Policy(name, searches, "interleaved" if share >= AGREES else "foreign", share)


def _replayed(hits: Hits, own: Bools, table: SignalTable, config: SearchConfig | None) -> Floats:
    """float64[own]: 1 where our list of a configuration has the entry at the place; 0 everywhere without one."""
    if config is None:
        return np.zeros(int(own.sum()))
    try:
        run = replay(table, config)
    except ConfigError:
        return np.zeros(int(own.sum()))
    ours = _square(run.ranking.offsets, run.entry, len(table.queries))
    query, place, entry = hits.query[own], hits.place[own], hits.entry[own]
    equal = (query >= 0) & (entry >= 0) & (ours[np.maximum(query, 0), place] == entry)
    return np.asarray(equal, dtype=np.float64)


def _square(offsets: Indices, entry: Ints, queries: int) -> Indices:
    """int64[Q, PLACES]: the entries of the first places, -2 beyond the list."""
    found = np.full((queries, PLACES), -2, dtype=np.int64)
    for at in range(queries):
        own = entry[offsets[at] : offsets[at + 1]][:PLACES]
        found[at, : len(own)] = own
    return found


def _nearest(hits: Hits, own: Bools, lists: CandidateLists, shown: Floats) -> tuple[int, float]:
    """The candidate whose lists agree most with what was shown, and how far."""
    query, place, row = np.maximum(hits.query[own], 0), hits.place[own], hits.row[own]
    valid = row >= 0
    shares = [float((shown * (valid & (top[query, place] == row))).sum()) for top in lists.top]
    best = int(np.argmax(shares))
    return best, shares[best] / float(shown.sum())
