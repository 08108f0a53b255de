"""The pool: every pair of query and entry that decides between contenders, with what its label would tell."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.memory.query import Query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.configurations import Named, Setting
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets import Dataset
from steelyard_eval.notebook.label import sampling
from steelyard_eval.notebook.label.possible_hits import reachable
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace

PLACES = 10
"""The first places of every list are pooled."""
REST = 0.02
"""What a pair tells that the contenders place alike, or that only other weights would show, beside the others."""


@dataclass(frozen=True)
class Pool:
    """P pairs, in the order of queries and then of ids.

    Attributes
    ----------
    dataset : Dataset
    queries : tuple of Query
        The Q queries.
    labels : tuple of str
        The C contenders; the first is what the others are compared with.
    query : int64[P]; entries : tuple of P ids
        The pairs.
    gain : float64[C, P]
        What the place that a contender gives the entry is worth: ``1 / log2(1 + rank)``, 0 beyond the first ten.
    value : float64[P]
        How much its label would tell of the differences between the contenders, above 0.
    seed : int
        Of the order.
    """

    dataset: Dataset
    queries: tuple[Query, ...]
    labels: tuple[str, ...]
    query: Indices
    entries: tuple[str, ...]
    gain: Floats
    value: Floats
    seed: int

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def known(self) -> Indices:
        """int64[P]: the grades that the data set has; -1 for none."""
        qrels = self.dataset.qrels
        pairs = zip(self.query.tolist(), self.entries, strict=True)
        return np.array([qrels.get(self.queries[q].id, {}).get(id_, -1) for q, id_ in pairs], dtype=np.int64)

    @cached_property
    def open(self) -> Indices:
        """int64[n]: the pairs that the data set has no grade of."""
        return np.flatnonzero(self.known < 0)

    @cached_property
    def keys(self) -> Floats:
        """float64[n]: the keys of the open pairs."""
        return sampling.keys(self.value[self.open], self.seed)

    @cached_property
    def order(self) -> Indices:
        """int64[n]: the open pairs in the order in which they are judged."""
        order: Indices = self.open[sampling.falling(self.keys)]
        return order

    def pair(self, at: int) -> tuple[str, str]:
        """The ids of a pair: of its query and of its entry."""
        return self.queries[self.query[at]].id, self.entries[at]

    @cached_property
    def places(self) -> dict[tuple[str, str], int]:
        """Pair of ids -> its index."""
        return {self.pair(place): place for place in range(len(self))}

    def without(self, labels: Collection[tuple[str, str]]) -> Pool:
        """The same pool, of a data set that lacks some labels."""
        left = {
            query: {id_: grade for id_, grade in grades.items() if (query, id_) not in labels}
            for query, grades in self.dataset.qrels.items()
        }
        qrels = {query: grades for query, grades in left.items() if grades}
        return replace(self, dataset=replace(self.dataset, qrels=qrels))


def pool(
    dataset: Dataset,
    contenders: Sequence[Named | ListContender],
    space: Workspace | None,
    queries: Sequence[Query],
    seed: int = 0,
) -> Pool:
    """Pool what contenders rank among the first places, and what other weights of theirs would bring there.

    Raises ConfigError for a contender that the data set cannot supply, and without any query.
    """
    if not queries:
        raise ConfigError(f"{dataset.called} has no queries; add some to queries.jsonl")
    ranks = [firsts(contender, dataset, space, queries) for contender in contenders]
    return pooled(dataset, [contender.label for contender in contenders], queries, ranks, seed)


Pair = tuple[int, str]
"""The number of a query, and the id of an entry."""
Firsts = tuple[dict[Pair, int], Iterable[Pair]]
"""The ranks of the first places, and the pairs that other weights would bring there."""


def pooled(
    dataset: Dataset, labels: Sequence[str], queries: Sequence[Query], found: Sequence[Firsts], seed: int = 0
) -> Pool:
    """Pool the first places of contenders that are known already, by label."""
    pairs = sorted(
        {pair for ranks, more in found for pair in (*ranks, *more)}, key=lambda p: (p[0], p[1].encode())
    )
    gain = np.array([[_worth(ranks.get(pair)) for pair in pairs] for ranks, _ in found])
    return Pool(
        dataset=dataset,
        queries=tuple(queries),
        labels=tuple(labels),
        query=np.array([query for query, _ in pairs], dtype=np.int64),
        entries=tuple(id_ for _, id_ in pairs),
        gain=gain,
        value=_value(gain),
        seed=seed,
    )


def firsts(
    one: Named | ListContender, dataset: Dataset, space: Workspace | None, queries: Sequence[Query]
) -> Firsts:
    """The first places of one contender; other weights are known of configurations alone."""
    if isinstance(one, ListContender):
        lists = one.answers(queries, PLACES, dataset).lists
        return {(q, id_): rank for q, row in enumerate(lists) for rank, (id_, _) in enumerate(row[:PLACES], 1)}, ()
    if space is None:
        raise ValueError("configurations need a workspace")
    config = usable(space, Contender(one.label, one.config(Setting(PLACES, space.model)), one.kind))[0].config
    return searched(record(space, queries, [config]), config)


def searched(table: SignalTable, config: SearchConfig) -> Firsts:
    """The first places of a configuration over a recording, and what other weights of it would bring there."""
    ranked = replay(table, config).ranked
    ranks = {}
    for query, (begin, end) in enumerate(pairwise(ranked.offsets.tolist())):
        for rank, entry in enumerate(ranked.entry[begin:end][:PLACES].tolist(), 1):
            ranks[query, ranked.entries[entry]] = rank
    rows = np.flatnonzero(reachable(table, config, PLACES))
    more = zip(table.query[rows].tolist(), table.entry[rows].tolist(), strict=True)
    return ranks, [(query, table.entries[entry]) for query, entry in more]


def _worth(rank: int | None) -> float:
    return 0.0 if rank is None else float(1.0 / np.log2(1.0 + rank))


def _value(gain: Floats) -> Floats:
    """float64[P]: how far the contenders differ from the first one in what the entry is worth to them.

    Times the root of its mean worth, because entries that are ranked high are relevant more often, and an
    irrelevant one moves no difference.
    """
    apart = np.sqrt(((gain[1:] - gain[0]) ** 2).mean(axis=0)) if len(gain) > 1 else gain[0]
    told: Floats = apart * np.sqrt(gain.mean(axis=0))
    return told + REST * max(float(told.sum()) / max(1, told.size), 1e-9)  # also of no pair
