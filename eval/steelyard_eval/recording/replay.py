"""Replays a recording under a configuration, by the engine's own fuse and finish."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.base.arrays import Bools, Floats, Ints
from steelyard.config.search_config import SearchConfig
from steelyard.finish import Ranking
from steelyard.live.identity import agree
from steelyard.live.search import rank_table
from steelyard.retrievers import DEPENDENT, EMBEDDING
from steelyard.table.signal_table import SignalTable
from steelyard_eval.measures.metrics import Judgments, Measure, evaluate
from steelyard_eval.measures.runs import Ranked


@dataclass(frozen=True)
class Replay:
    """Ranked lists of one configuration over a recording.

    `entry` (int32[R]) indexes the recording's ids; `embedded` (bool[Q]) is true for the queries that live
    search would have embedded.
    """

    table: SignalTable
    ranking: Ranking
    entry: Ints
    embedded: np.ndarray[Any, np.dtype[np.bool_]]

    @property
    def ranked(self) -> Ranked:
        """The ranked lists alone."""
        return Ranked(self.table.queries, self.table.entries, self.ranking.offsets, self.entry)

    def metrics(self, judgments: Judgments, measures: Iterable[Measure]) -> dict[Measure, Floats]:
        """Compute every measure for every query; float64[Q] each."""
        return evaluate(self.ranking.offsets, self.entry, judgments, measures)


def replay(table: SignalTable, config: SearchConfig) -> Replay:
    """Fuse and finish a recording under a configuration.

    Raises ConfigError when the configuration differs from what the recording has fixed.
    """
    agree(config, table.fingerprint)
    masked, ranking = rank_table(table, config, config.effective)
    return Replay(masked, ranking, table.entry[ranking.row], embedded(masked, config))


def embedded(masked: SignalTable, config: SearchConfig) -> Bools:
    """bool[Q]: the queries that live search would embed, over a recording at the configuration's depths."""
    mask = np.zeros(len(masked.queries), dtype=bool)
    for queries in _embedding(masked, config):
        mask |= queries
    return mask


def may_embed(masked: SignalTable, config: SearchConfig) -> bool:
    """Whether there are queries that live search would embed, be they none of these."""
    return any(True for _ in _embedding(masked, config))


def _embedding(masked: SignalTable, config: SearchConfig) -> Iterator[Bools]:
    """bool[Q] for each signal that reads a query's vector: the queries that need it."""
    for name, queries in config.effective.needs(masked, tuple(config.retrievers)).items():
        before = config.before(name) if name in DEPENDENT and name in config.retrievers else ()
        if EMBEDDING & {name, *before}:
            yield queries
