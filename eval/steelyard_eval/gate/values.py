"""What the gate measures of every list: nDCG@10, nDCG@100, the geometric gain, and the promises that it breaks.

Promises are scope, validity and exclusion. Systems document different ones (bm25 returns what has expired, soleri
as shipped filters no vectors), and lists of other engines none. So a promise counts where no list of the baseline
broke it; breaking it then fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.memory.entry import Entry
from steelyard.memory.filters import valid_at
from steelyard.memory.query import Query
from steelyard.memory.text import content
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.metrics import Judgments, Measure, evaluate
from steelyard_eval.measures.runs import Ranked, Scored

DEEPEST = 100
"""How far lists are looked at."""
SHALLOW = 10
PERSISTENCE = 0.9
NDCG10, NDCG100 = Measure("nDCG", SHALLOW), Measure("nDCG", DEEPEST)
GAIN = "gain@100"
NAMES = (str(NDCG10), str(NDCG100), GAIN)
"""The three values, in the order of `Values.matrix`."""


@dataclass(frozen=True)
class Values:
    """float64[3, Q]: nDCG@10, nDCG@100 and the geometric gain; `deep` when a list has more than 10 places."""

    matrix: Floats
    deep: bool

    @property
    def ndcg(self) -> Floats:
        """float64[Q]: nDCG@10."""
        ndcg: Floats = self.matrix[0]
        return ndcg


def measure(lists: Ranked, deep: Ranked, qrels: Mapping[str, Mapping[str, int]]) -> Values:
    """Measure lists: nDCG@10 of those that users see, the other two of the same lists down to place 100."""
    judgments = Judgments.of(qrels, deep.queries, deep.entries)
    ndcg = lists.metrics(qrels, [NDCG10])[NDCG10]
    far = evaluate(deep.offsets, deep.entry, judgments, [NDCG100])[NDCG100]
    longest = int(np.diff(deep.offsets).max(initial=0))
    return Values(np.array([ndcg, far, geometric_gain(deep, judgments)]), longest > SHALLOW)


def geometric_gain(lists: Ranked, judgments: Judgments) -> Floats:
    """float64[Q]: (1/R) times the sum of .9^(rank - 1) over the relevant entries of a list; 0 without any.

    Rank-biased precision (Moffat and Zobel, TOIS 2008) without its factor 1 - p, over the R relevant entries.
    """
    size = np.diff(lists.offsets)
    query = np.repeat(np.arange(size.size), size)
    place = np.arange(query.size) - np.repeat(lists.offsets[:-1], size)
    relevant = judgments.grades(query, lists.entry) >= 1
    gains = np.where(relevant & (place < DEEPEST), PERSISTENCE**place, 0.0)
    return np.bincount(query, gains, size.size) / np.maximum(judgments.relevant, 1)


def composite(matrix: Floats, deep: bool) -> Floats:
    """float64[..., Q]: the mean of the three values (or differences) in float64[..., 3, Q]; nDCG@10 if shallow."""
    mean: Floats = matrix.mean(axis=-2) if deep else matrix[..., 0, :]
    return mean


_EXCLUDED = re.compile(r"(?:^|\s)-(\w+)")


def broken(
    dataset: Dataset, queries: Sequence[Query], lists: Sequence[Sequence[Scored]]
) -> Iterator[dict[str, int]]:
    """For every query how many entries of its list break each promise; kept promises are left out."""
    entries = {entry.id: entry for entry in dataset.entries}
    for query, ranking in zip(queries, lists, strict=True):
        listed = [entries[id_] for id_, _ in ranking if id_ in entries]
        counts = {name: sum(map(test, listed)) for name, test in _tests(query, dataset.clock(query))}
        yield {name: count for name, count in counts.items() if count}


def _tests(query: Query, clock: float) -> Iterator[tuple[str, Callable[[Entry], bool]]]:
    valid = valid_at(clock)
    yield "validity", lambda entry: bool(valid.failed(entry))
    if query.filters:
        yield "scope", lambda entry: bool(query.filters.failed(entry))
    words = {word.lower() for word in _EXCLUDED.findall(query.text)}
    if words:
        yield "exclusion", lambda entry: not words.isdisjoint(re.findall(r"\w+", content(entry).lower()))
