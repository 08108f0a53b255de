"""A duel over the usual contenders: from their lists, with what public collections showed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.decide.duel import PLACES, Duels
from steelyard_eval.decide.public import class_of, features, public_table, reciprocal

TOP = 3.0
"""The grade that counts as relevant without a doubt, where none is higher."""
Lists = Mapping[str, Sequence[Sequence[str]]]
"""Label -> ids, best first, of every query."""


@dataclass(frozen=True)
class DuelPairs:
    """All pairs of a query and an entry among the first places of C lists, in the order of queries, then of ids.

    `query` int64[P] and `entries` are the pairs, `worth` float64[C, P] is as in `Duels`.
    """

    labels: tuple[str, ...]
    query: Indices
    entries: tuple[str, ...]
    worth: Floats

    @classmethod
    def of(cls, lists: Lists) -> DuelPairs:
        """From lists of the same queries."""
        found: dict[tuple[int, str], Floats] = {}
        for row, own in enumerate(lists.values()):
            for query, ids in enumerate(own):
                for place, id_ in enumerate(ids[:PLACES]):
                    worth = found.setdefault((query, id_), np.zeros(len(lists)))
                    worth[row] = 1.0 / np.log2(place + 2)
        pairs = sorted(found, key=lambda pair: (pair[0], pair[1].encode()))
        table = np.array([found[pair] for pair in pairs]).reshape(len(pairs), len(lists)).T
        numbers = np.array([query for query, _ in pairs], dtype=np.int64)
        return cls(tuple(lists), numbers, tuple(id_ for _, id_ in pairs), table)


def contest(labels: Sequence[str], worth: Floats, query: Indices, model: str) -> Duels:
    """The contest of contenders by label over pairs; the embedder's class decides what is known beforehand."""
    table = public_table()
    kind = class_of(model) if class_of(model) in table.means else "minilm"
    rows = {name: worth[labels.index(name)] for name in ("bm25", "fts", "vector") if name in labels}
    places = {name: reciprocal(rows.get(name, np.zeros(worth.shape[1]))) for name in ("bm25", "fts", "vector")}
    means = table.means[kind]
    known = np.array([float(means[label].mean()) if label in means else np.nan for label in labels])
    _, numbers = np.unique(query, return_inverse=True)  # queries without any pair have no number
    return Duels(worth, numbers.astype(np.int64), features(places, worth), table.relevance[kind], known)


def gains_of(grades: Indices) -> Floats:
    """float64[P]: grades as shares of the highest, NaN for -1."""
    top = max(TOP, float(grades.max(initial=0)))
    return np.where(grades >= 0, grades / top, np.nan)
