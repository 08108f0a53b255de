"""The pool: what contenders find for each query, and the order in which it is judged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.memory.query import Query
from steelyard_eval.choose.duel import PLACES, DuelPairs
from steelyard_eval.common.configurations import NamedConfig
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.lists_and_latency import Runner
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.judgments import UNJUDGED
from steelyard_eval.notebook.label.judgment_file import Pair
from steelyard_eval.recording.workspace import Workspace


@dataclass(frozen=True)
class Pool(DuelPairs):
    """The pairs of the Q queries of a data set, and the seed of the order in which they are judged."""

    dataset: Dataset
    queries: tuple[Query, ...]
    seed: int

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def known(self) -> Indices:
        """int64[P]: the grades that the data set has; -1 for none."""
        qrels = self.dataset.qrels
        pairs = zip(self.query.tolist(), self.entries, strict=True)
        return np.array([qrels.get(self.queries[q].id, {}).get(id_, -1) for q, id_ in pairs], dtype=np.int64)

    def lots(self, stream: int) -> Floats:
        """float64[Q]: by rising lots queries are drawn."""
        return np.random.default_rng([self.seed, stream]).random(len(self.queries))

    def pair(self, at: int) -> Pair:
        """The ids of a pair: of its query and of its entry."""
        return self.queries[self.query[at]].id, self.entries[at]

    @cached_property
    def places(self) -> dict[Pair, int]:
        """Pair of ids -> its index."""
        return {self.pair(place): place for place in range(len(self))}


def pool_of(
    dataset: Dataset,
    contenders: Sequence[NamedConfig | ListContender],
    queries: Sequence[Query],
    seed: int,
    space: Callable[[], Workspace],
) -> Pool:
    """Pool what contenders rank among the first places.

    Raises ConfigError for a contender that the data set cannot supply, and without any query.
    """
    if not queries:
        raise ConfigError(f"{dataset.called} has no queries; add some to queries.jsonl")
    source = Source.needed_by(contenders, dataset, space)
    made = Runner(source, PLACES).run(contenders, queries, timed=False)
    return pooled(dataset, {one.label: one.ranked.lists() for one in made}, queries, seed)


def pooled(
    dataset: Dataset, lists: Mapping[str, Sequence[Sequence[str]]], queries: Sequence[Query], seed: int = 0
) -> Pool:
    """Pool lists of ids, of every query, by the label of who ranked them so."""
    return Pool(**vars(DuelPairs.of(lists)), dataset=dataset, queries=tuple(queries), seed=seed)


STREAM, SECOND = 3, 2
"""Of the random numbers of a seed, those that order queries and pairs, and those for a second judge."""


def drawn_queries(pool: Pool) -> Indices:
    """int64[D]: the queries in the order in which they are drawn, by the seed.

    Those with labels are drawn too, unless they were drawn fairly themselves.
    """
    drawn = pool.dataset.random_queries
    fair = np.array([query.id in drawn for query in pool.queries], dtype=bool)
    order = np.argsort(pool.lots(STREAM), kind="stable").astype(np.int64)
    queries: Indices = order[~fair[order]]
    return queries


def fully_labelled(pool: Pool, grades: Indices) -> Indices:
    """int64[d]: the drawn queries up to the first that was not asked in full; for `grades` see Session."""
    queries = drawn_queries(pool)
    lacking = np.isin(queries, pool.query[grades == UNJUDGED])
    whole: Indices = queries[: int(np.argmax(lacking)) if lacking.any() else len(queries)]
    return whole


def judged_entries(pool: Pool, grades: Indices) -> dict[str, tuple[str, ...]]:
    """The entries with a grade of each query that is drawn and judged in full, without queries of none."""
    whole = set(fully_labelled(pool, grades).tolist())
    entries: dict[str, tuple[str, ...]] = {}
    for pair in np.flatnonzero(grades >= 0).tolist():
        if int(pool.query[pair]) in whole:
            query, entry = pool.pair(pair)
            entries[query] = (*entries.get(query, ()), entry)
    return entries
