"""The pool: pairs of query and entry that decide between contenders, what labels would tell, and tell so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.memory.query import Query
from steelyard_eval.choose.duel import PLACES, DuelPairs
from steelyard_eval.common.configurations import Named
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.lists_and_latency import Arena
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.judgments import UNJUDGED
from steelyard_eval.measures.paired import POWER, mean_interval
from steelyard_eval.measures.spread import ALPHA
from steelyard_eval.notebook.label.judgment_file import GRADES, Pair
from steelyard_eval.recording.workspace import Workspace

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
    def keys(self) -> Floats:
        """float64[P]: by falling keys pairs are judged; 0 for those that the data set has a grade of."""
        keys, asked = np.zeros(len(self)), self.known < 0
        keys[asked] = sampling_keys(self.value[asked], self.seed)
        return keys

    @cached_property
    def order(self) -> Indices:
        """int64[n]: the pairs without a grade in the order in which they are judged."""
        return by_falling(self.keys)[: int((self.known < 0).sum())]

    def pair(self, at: int) -> Pair:
        """The ids of a pair: of its query and of its entry."""
        return self.queries[self.query[at]].id, self.entries[at]

    @cached_property
    def places(self) -> dict[Pair, int]:
        """Pair of ids -> its index."""
        return {self.pair(place): place for place in range(len(self))}


def pool_of(
    dataset: Dataset,
    contenders: Sequence[Named | ListContender],
    queries: Sequence[Query],
    seed: int,
    space: Callable[[], Workspace],
) -> Pool:
    """Pool what contenders rank among the first places.

    Raises ConfigError for a contender that the data set cannot supply, and without any query.
    """
    if not queries:
        raise ConfigError(f"{dataset.called} has no queries; add some to queries.jsonl")
    made = Arena.of(dataset, contenders, PLACES, None, space).run(contenders, queries, timed=False)
    return pooled(dataset, {one.label: one.ranked.lists() for one in made}, queries, seed)


def pooled(
    dataset: Dataset, lists: Mapping[str, Sequence[Sequence[str]]], queries: Sequence[Query], seed: int = 0
) -> Pool:
    """Pool lists of ids, of every query, by the label of who ranked them so."""
    pairs = DuelPairs.of(lists)
    gain = pairs.worth
    # How far the contenders differ from the first one in what the entry is worth to them, times the root of its
    # mean worth: entries that are ranked high are relevant more often, and an irrelevant one moves no difference.
    apart = np.sqrt(((gain[1:] - gain[0]) ** 2).mean(axis=0)) if len(gain) > 1 else gain[0]
    told: Floats = apart * np.sqrt(gain.mean(axis=0))
    value = told + REST * max(float(told.sum()) / max(1, told.size), 1e-9)  # also of no pair
    return Pool(dataset, tuple(queries), pairs.labels, pairs.query, pairs.entries, gain, value, seed)


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
    open_ = np.flatnonzero((pool.known < 0) & (turn[pool.query] >= 0))
    keys = np.random.default_rng([pool.seed, STREAM, 1]).random(len(pool))
    pairs: Indices = open_[np.lexsort((keys[open_], turn[pool.query[open_]]))]
    return pairs


def judged_whole(pool: Pool, grades: Indices) -> Indices:
    """int64[d]: the drawn queries up to the first that was not asked in full; for `grades` see Session."""
    queries = drawn_queries(pool)
    lacking = np.isin(queries, pool.query[grades == UNJUDGED])
    whole: Indices = queries[: int(np.argmax(lacking)) if lacking.any() else len(queries)]
    return whole


def judged_entries(pool: Pool, grades: Indices) -> dict[str, tuple[str, ...]]:
    """The entries with a grade of each query that is drawn and judged in full, without queries of none."""
    whole = set(judged_whole(pool, grades).tolist())
    entries: dict[str, tuple[str, ...]] = {}
    for pair in np.flatnonzero(grades >= 0).tolist():
        if int(pool.query[pair]) in whole:
            query, entry = pool.pair(pair)
            entries[query] = (*entries.get(query, ()), entry)
    return entries


ENOUGH = 30
"""Labels, below which no comparison is settled: what few stand for is a guess."""
LEAST, FEWEST = 2, 10
"""Whole queries, below which nothing is shown, and below which nothing is settled."""


@dataclass(frozen=True)
class Standing:
    """One comparison as the labels show it.

    Attributes
    ----------
    challenger, baseline: str.
    judged: Labels that it rests on.
    delta, low, high: The difference of the discounted gain of the first ten (DCG, grades as shares of the
        highest), challenger less baseline, mean over queries, with its 95% interval: for other queries, and for
        the labels not given.
    verdict: better or worse when the interval lies beside 0, else open.
    needed: Labels still to give until a difference of this size would show with 80% power, be it more than there
        are pairs; 0 when it shows, None when nothing can be said: a difference below its own standard error may be
        of either sign, and the number with it thousands or few.
    """

    challenger: str
    baseline: str
    judged: int
    delta: float
    low: float
    high: float
    verdict: str
    needed: int | None


def standings(pool: Pool, grades: Indices, queries: Indices | None = None) -> list[Standing]:
    """Each contender against the first one, from the grades of the pool (int64[P], see `Session.grades`).

    Labels count as far as the order of the pool has no gap, because only then it is known what they stand for; or
    those of whole `queries`, int64[d], which were drawn at random. While few are new, and where the data set says
    that all are there, pairs without one are not relevant, as in `compare`: else each new one would stand for
    hundreds. What the judge cannot say counts as not relevant.
    """
    weights = np.ones(len(pool))
    if queries is None:
        judged = grades[pool.order] != UNJUDGED
        count, known = len(judged) if judged.all() else int(np.argmin(judged)), int((pool.known >= 0).sum())
        total = known + int((grades[pool.order[:count]] >= 0).sum())
        if count >= min(ENOUGH, len(pool.order)) and not pool.dataset.complete:
            asked = pool.known < 0
            weights[asked] = sampling_weights(pool.value[asked], pool.keys[asked], count)
        queries, early = np.arange(len(pool.queries)), count + known < min(ENOUGH, len(pool))
    elif len(queries) < LEAST:
        return []
    else:
        count = total = int(np.isin(pool.query[grades >= 0], queries).sum())
        early = len(queries) < min(FEWEST, len(pool.queries))
    units = unit_numbers(pool.queries)[queries].tolist()
    found = []
    for label, gain in zip(pool.labels[1:], pool.gain[1:], strict=True):
        told = weights * np.maximum(grades, 0) / GRADES[-1] * (gain - pool.gain[0])
        mean = mean_interval(np.bincount(pool.query, told, len(pool.queries))[queries], units)
        beside = (mean.low > 0 or mean.high < 0) and not early
        verdict = "open" if not beside else "better" if mean.mean > 0 else "worse"
        needed = 0 if beside else None if early else _needed(mean.mean, mean.high - mean.mean, count)
        found.append(Standing(label, pool.labels[0], total, mean.mean, mean.low, mean.high, verdict, needed))
    return found


def _needed(mean: float, reach: float, judged: int) -> int | None:
    """Labels to come until the interval is so small: its reach falls with the root of their number."""
    error = reach / float(ndtri(1 - ALPHA / 2))
    if mean == 0 or abs(mean) < error:
        return None
    return max(1, math.ceil(judged * ((POWER * error / mean) ** 2 - 1)))
