"""The pool: every pair of query and entry that decides between contenders, with what its label would tell."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.base.files import canonical
from steelyard.config.search_config import SearchConfig
from steelyard.memory.query import Query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.configurations import Named, Setting
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.labels import FAIR, Batch, JudgedPool, stated, with_batch
from steelyard_eval.datasets.manifest import FILE as MANIFEST
from steelyard_eval.measures.judgments import UNJUDGED
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace

PLACES = 10
"""The first places of every list are pooled."""
REST = 0.02
"""What a pair tells that the contenders place alike, beside the others."""


@dataclass(frozen=True)
class Pool:
    """P pairs, in the order of queries and then of ids.

    Attributes
    ----------
    dataset: Dataset.
    queries: The Q queries.
    labels: The C contenders; the first is what the others are compared with.
    query : int64[P]; entries : tuple of P ids. The pairs.
    gain: float64[C, P]. What the place that a contender gives the entry is worth: ``1 / log2(1 + rank)``, 0 beyond
        the first ten.
    value: float64[P]. How much its label would tell of the differences between the contenders, above 0.
    seed: Of the order.
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
        return sampling_keys(self.value[self.open], self.seed)

    @cached_property
    def order(self) -> Indices:
        """int64[n]: the open pairs in the order in which they are judged."""
        order: Indices = self.open[by_falling(self.keys)]
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
    """Pool what contenders rank among the first places.

    Raises ConfigError for a contender that the data set cannot supply, and without any query.
    """
    if not queries:
        raise ConfigError(f"{dataset.called} has no queries; add some to queries.jsonl")
    ranks = [firsts(contender, dataset, space, queries) for contender in contenders]
    return pooled(dataset, [contender.label for contender in contenders], queries, ranks, seed)


Pair = tuple[int, str]
"""The number of a query, and the id of an entry."""
Firsts = dict[Pair, int]
"""The ranks of the first places."""


def pooled(
    dataset: Dataset, labels: Sequence[str], queries: Sequence[Query], found: Sequence[Firsts], seed: int = 0
) -> Pool:
    """Pool the first places of contenders that are known already, by label."""
    pairs = sorted({pair for ranks in found for pair in ranks}, key=lambda p: (p[0], p[1].encode()))
    gain = np.array([[_worth(ranks.get(pair)) for pair in pairs] for ranks in found])
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
    """The first places of one contender."""
    if isinstance(one, ListContender):
        lists = one.answers(queries, PLACES, dataset).lists
        return {(q, id_): rank for q, row in enumerate(lists) for rank, (id_, _) in enumerate(row[:PLACES], 1)}
    if space is None:
        raise ValueError("configurations need a workspace")
    config = usable(space, Contender(one.label, one.config(Setting(PLACES, space.model)), one.kind))[0].config
    return searched(record(space, queries, [config]), config)


def searched(table: SignalTable, config: SearchConfig) -> Firsts:
    """The first places of a configuration over a recording."""
    ranked = replay(table, config).ranked
    ranks = {}
    for query, (begin, end) in enumerate(pairwise(ranked.offsets.tolist())):
        for rank, entry in enumerate(ranked.entry[begin:end][:PLACES].tolist(), 1):
            ranks[query, ranked.entries[entry]] = rank
    return ranks


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


def sampling_keys(values: Floats, seed: int) -> Floats:
    """float64[P]: the key of every pair, from its value (float64[P], above 0)."""
    return values / (1.0 - np.random.default_rng(seed).random(len(values)))


def by_falling(keys: Floats) -> Indices:
    """int64[P]: the pairs in the order in which they are judged."""
    return np.argsort(-keys, kind="stable").astype(np.int64)


def sampling_weights(values: Floats, keys: Floats, count: int) -> Floats:
    """float64[P]: how many pairs each stands for when the first `count` are judged; 0 for those that are not.

    >>> sampling_weights(np.array([1.0, 1.0]), np.array([2.0, 4.0]), 1).tolist()
    [0.0, 2.0]
    """
    order = by_falling(keys)
    weight = np.zeros(len(values))
    judged = order[:count]
    weight[judged] = 1.0
    if count < len(order):
        weight[judged] = 1.0 / np.minimum(1.0, values[judged] / keys[order[count]])
    return weight


STREAM = 3
"""Of the random numbers of a seed, those that draw queries; `Session` takes the second for a second judge."""
Grades = dict[str, dict[str, int]]


def drawn_queries(pool: Pool) -> Indices:
    """int64[D]: the queries in the order in which they are drawn, by the seed.

    Those with labels are drawn too, unless they were drawn fairly themselves.
    """
    keys = np.random.default_rng([pool.seed, STREAM]).random(len(pool.queries))
    fair = pool.dataset.drawn
    order = np.argsort(keys, kind="stable").astype(np.int64)
    queries: Indices = order[~np.array([query.id in fair for query in pool.queries])[order]]
    return queries


def drawn_order(pool: Pool) -> Indices:
    """int64[n]: the open pairs of drawn queries, query by query, shuffled within each."""
    turn = np.full(len(pool.queries), -1)
    queries = drawn_queries(pool)
    turn[queries] = np.arange(len(queries))
    open_ = np.flatnonzero(_asked(pool) & (pool.known < 0) & (turn[pool.query] >= 0))
    keys = np.random.default_rng([pool.seed, STREAM, 1]).random(len(pool))
    pairs: Indices = open_[np.lexsort((keys[open_], turn[pool.query[open_]]))]
    return pairs


def judged_whole(pool: Pool, grades: Indices) -> Indices:
    """int64[d]: the drawn queries up to the first that was not asked in full; for `grades` see Session."""
    queries = drawn_queries(pool)
    lacking = np.isin(queries, pool.query[_asked(pool) & (grades == UNJUDGED)])
    whole: Indices = queries[: int(np.argmax(lacking)) if lacking.any() else len(queries)]
    return whole


def with_drawn(pool: Pool, given: Mapping[tuple[str, str], int], grades: Indices) -> Grades:
    """The labels that the data set has, with those that are given of queries that are drawn and judged in full."""
    fair = pool.dataset.drawn | {pool.queries[query].id for query in judged_whole(pool, grades).tolist()}
    labels = {query: dict(row) for query, row in pool.dataset.qrels.items()}
    for (query, entry), grade in given.items():
        if query in fair:
            labels.setdefault(query, {})[entry] = grade
    return labels


def judged_entries(pool: Pool, grades: Indices) -> dict[str, tuple[str, ...]]:
    """The entries with a grade of each query that is drawn and judged in full, without queries of none."""
    whole = set(judged_whole(pool, grades).tolist())
    entries: dict[str, tuple[str, ...]] = {}
    for pair in np.flatnonzero(_asked(pool) & (grades >= 0)).tolist():
        if int(pool.query[pair]) in whole:
            query, entry = pool.pair(pair)
            entries[query] = (*entries.get(query, ()), entry)
    return entries


def to_state(
    pool: Pool,
    random: bool,
    given: Iterable[tuple[str, str]] = (),
    judged: Mapping[str, tuple[str, ...]] | None = None,
    judge: str = "",
) -> dict[str, object]:
    """What dataset.json should say of the labels that are collected, where it says nothing.

    Labels that came about in another way keep what is said of them: beside them `provenance` says which queries
    were drawn (`judged`, at `random`, by whom), or which had been drawn before single pairs of others got labels.
    What a set without labels says of them is of none.
    """
    dataset = pool.dataset
    way = Batch("random" if random else "duel", judged or {}, JudgedPool(pool.labels, PLACES), judge)
    collected, said = stated(way.sampled, way.pool), stated(dataset.sampled, dataset.pool)
    mixed = any(query not in dataset.qrels for query, _ in given)
    if dataset.qrels and not random:
        if not mixed or (dataset.sampled and dataset.sampled not in FAIR):
            return {}
        before = {query: tuple(row) for query, row in dataset.qrels.items() if query in dataset.drawn}
        named = {query for batch in dataset.provenance for query in batch.labels}
        kept = Batch(dataset.sampled, {q: ids for q, ids in before.items() if q not in named}, dataset.pool)
        earlier = {"provenance": with_batch(dataset.provenance, kept)} if kept.labels else {}
        return {"sampled": way.sampled, **earlier}
    if dataset.qrels and dataset.sampled not in FAIR:
        return {"provenance": with_batch(dataset.provenance, way)} if judged else {}
    first, unfair = mixed and not dataset.qrels, random and dataset.sampled not in FAIR
    untrue = {
        "sampled": unfair or (first and (dataset.complete or not random)),
        "pool": unfair or (first and dataset.complete),  # the lists of an earlier session stay
    }
    return {name: value for name, value in collected.items() if said[name] is None or untrue[name]}


def statement(pool: Pool, random: bool) -> dict[Path, str]:
    """dataset.json with it, where there is one and these are the first labels of the set; else nothing."""
    dataset, said = pool.dataset, to_state(pool, random)
    if not said or dataset.qrels or dataset.in_memory:
        return {}
    record = FolderReader(dataset.path).json_object(MANIFEST)
    return {} if record is None else {dataset.path / MANIFEST: canonical({**record, **said})}


def _asked(pool: Pool) -> Bools:
    """bool[P]: what a contender ranks among the first."""
    asked: Bools = pool.gain.max(axis=0) > 0
    return asked
