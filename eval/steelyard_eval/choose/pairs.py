"""Sets up a duel of the usual contenders from their lists and from what public collections showed of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.memory.query import Query
from steelyard_eval.choose.pair_selection import PLACES, PairSelection, PairSelectionState
from steelyard_eval.choose.public import class_of, features, public_table, reciprocal
from steelyard_eval.datasets import Dataset

TOP = 3.0
"""The grade that counts as relevant without a doubt, where none is higher."""
Lists = Mapping[str, Sequence[Sequence[str]]]
"""Label -> ids, best first, of every query."""


@dataclass(frozen=True)
class DuelPairs:
    """All pairs of a query and an entry among the first places of C lists, in the order of queries, then of ids.

    `query` int64[P] and `entries` are the pairs, `worth` float64[C, P] is as in `PairSelection`.
    """

    labels: tuple[str, ...]
    query: Indices
    entries: tuple[str, ...]
    worth: Floats

    @classmethod
    def of(cls, lists: Lists) -> DuelPairs:
        """From lists of the same queries."""
        worths: dict[tuple[int, str], Floats] = {}
        for row, ranked in enumerate(lists.values()):
            for query, ids in enumerate(ranked):
                for place, id_ in enumerate(ids[:PLACES]):
                    worth = worths.setdefault((query, id_), np.zeros(len(lists)))
                    worth[row] = 1.0 / np.log2(place + 2)
        pairs = sorted(worths, key=lambda pair: (pair[0], pair[1].encode()))
        table = np.array([worths[pair] for pair in pairs]).reshape(len(pairs), len(lists)).T
        numbers = np.array([query for query, _ in pairs], dtype=np.int64)
        return cls(tuple(lists), numbers, tuple(id_ for _, id_ in pairs), table)


def build_pair_selection(
    labels: Sequence[str], worth: Floats, query: Indices, model: str, sha256: str
) -> PairSelection:
    """The contest of contenders by label over pairs.

    The embedder's class decides what is known beforehand. `sha256` is that of the data set: a public collection
    says nothing about itself.
    """
    table, kind = public_table(), class_of(model)
    others = table.others(sha256)
    rows = {name: worth[labels.index(name)] for name in ("bm25", "fts", "vector") if name in labels}
    places = {name: reciprocal(rows.get(name, np.zeros(worth.shape[1]))) for name in ("bm25", "fts", "vector")}
    means = table.means[kind]
    known = np.array([float(means[label][others].mean()) if label in means else np.nan for label in labels])
    _, numbers = np.unique(query, return_inverse=True)  # queries without any pair have no number
    return PairSelection(worth, numbers.astype(np.int64), features(places, worth), table.relevance[kind], known)


def graded(grades: Indices, query: Indices, queries: Sequence[Query], dataset: Dataset) -> Indices:
    """int64[P]: the grades of pairs, -1 for none, and 0 for what the data set's labels leave out and mean.

    They do where dataset.json says that they are complete, and where they have no grade of 0, for then only what
    is relevant was written down. Taken as unknown, the rest would look as relevant as what was. Labels of a duel
    are of single pairs, whatever else is said: what they leave out is unknown. `query` is int64[P].
    """
    qrels = dataset.qrels
    whole = dataset.complete or not any(grade == 0 for labels in qrels.values() for grade in labels.values())
    whole = whole and dataset.sampled != "duel"
    labelled = np.array([whole and asked.id in qrels for asked in queries], dtype=bool)
    return np.where((grades < 0) & labelled[query], 0, grades)


def gains_of(grades: Indices) -> Floats:
    """float64[P]: grades as shares of the highest, NaN for -1."""
    top = max(TOP, float(grades.max(initial=0)))
    return np.where(grades >= 0, grades / top, np.nan)


def pairwise_estimate(lists: Lists, queries: Sequence[Query], dataset: Dataset, model: str) -> PairSelectionState:
    """Where contenders stand by the labels of a data set that were chosen one by one, over these queries."""
    pairs = DuelPairs.of(lists)
    known = [dataset.qrels.get(query.id, {}) for query in queries]
    grades = [known[q].get(entry, -1) for q, entry in zip(pairs.query.tolist(), pairs.entries, strict=True)]
    made = build_pair_selection(pairs.labels, pairs.worth, pairs.query, model, dataset.sha256)
    return made.standing(gains_of(graded(np.array(grades), pairs.query, queries, dataset)))
