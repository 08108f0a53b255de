"""Judging by duel, simulated: sessions on logs of 60 queries of ten public collections, with their real labels."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pools import CHOSEN, POOL, TWINS

from steelyard_eval.choose.duel import PairSelection, fitted
from steelyard_eval.choose.public import DEFAULT, features, reciprocal

AT = POOL.index(DEFAULT)


@dataclass(frozen=True)
class Pairs:
    """All pairs of a collection's pool: query int64[P], worth float64[S, P], features, gains from 0 to 1."""

    lists: object

    @cached_property
    def _made(self):
        own = self.lists
        discount = 1 / np.log2(np.arange(2, 12))
        worth, query, gains = [], [], []
        for q in range(len(own.ideal)):
            ids = np.unique(own.lists[q])
            ids = ids[ids >= 0]
            table, gain = np.zeros((len(own.labels), len(ids))), np.zeros(len(ids))
            for s, found in enumerate(own.lists[q]):
                there = found >= 0
                at = np.searchsorted(ids, found[there])
                table[s, at] = discount[there]
                gain[at] = own.gains[q, s][there]
            worth.append(table)
            query.append(np.full(len(ids), q))
            gains.append(gain)
        whole = np.concatenate(worth, axis=1)
        inverse = {name: reciprocal(whole[own.labels.index(name)]) for name in ("bm25", "fts", "vector")}
        return whole, np.concatenate(query), features(inverse, whole), np.concatenate(gains)

    worth = property(lambda self: self._made[0])
    query = property(lambda self: self._made[1])
    features = property(lambda self: self._made[2])
    gains = property(lambda self: self._made[3])

    @cached_property
    def ends(self):
        """int64[Q + 1]: where the pairs of each query begin."""
        return np.searchsorted(self.query, np.arange(len(self.lists.ideal) + 1))

    def log(self, queries, prior, known):
        """A contest over some queries, which may repeat, with the gains of its pairs."""
        rows = np.concatenate([np.arange(self.ends[q], self.ends[q + 1]) for q in queries])
        number = np.repeat(np.arange(len(queries)), [self.ends[q + 1] - self.ends[q] for q in queries])
        gains = self.gains[rows] / max(1.0, self.gains[rows].max())
        return PairSelection(self.worth[:, rows], number, self.features[rows], prior, known), gains


def learned(pairs):
    """Coefficients of P(relevant), each collection worth 2,000 pairs."""
    x = np.concatenate([one.features for one in pairs])
    y = np.concatenate([(one.gains > 0) * 1.0 for one in pairs])
    weights = np.concatenate([np.full(len(one.gains), 2000 / len(one.gains)) for one in pairs])
    return fitted(x, y, np.zeros(x.shape[1]), 3.0, weights)


def others(name, every):
    """What a prior may know: the sets to choose on, without the set itself and without its twin."""
    return [one for key, one in every.items() if key in CHOSEN and key != name and key != TWINS.get(name)]
