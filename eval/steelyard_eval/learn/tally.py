"""Counts of a log while it is read: their size depends on what was shown, not on how long the log is.

What an act means is fixed here, how much it is worth is learned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.feedback.log import ACTIONS


def sums(numbers: NDArray[np.integer], weights: Floats, size: int = 0) -> Floats:
    """float64[max(size, highest number + 1)]: the sum of the weights of each number."""
    return np.bincount(numbers, weights, size).astype(np.float64, copy=False)


def column_sums(numbers: NDArray[np.integer], columns: Floats, size: int) -> Floats:
    """float64[size, A]: the same of every column of float64[n, A]."""
    summed = np.zeros((size, columns.shape[1]))
    for column in np.flatnonzero(columns.any(axis=0)).tolist():
        summed[:, column] = sums(numbers, columns[:, column], size)
    return summed


@dataclass(frozen=True)
class Tally:
    """Counts by key, ascending.

    Attributes
    ----------
    key : int64[M]; shown : float64[M]; acts : float64[M, A]
    """

    key: Indices
    shown: Floats
    acts: Floats

    @classmethod
    def empty(cls) -> Tally:
        """No counts."""
        none = np.zeros(0)
        return cls(none.astype(np.int64), none, np.zeros((0, len(KINDS))))

    @classmethod
    def of(cls, key: Indices, kind: NDArray[np.integer], weight: Floats) -> Tally:
        """Count hits: kind is -1 where nothing was done; `weight` float64[K] is what each counts as."""
        known, inverse = np.unique(key, return_inverse=True)
        acts = np.zeros((len(known), len(KINDS)))
        done = kind >= 0
        np.add.at(acts, (inverse[done], kind[done]), WORTH[kind[done]] * weight[done])
        return cls(known, sums(inverse, weight, len(known)), acts)

    @classmethod
    def sum(cls, parts: Iterable[Tally]) -> Tally:
        """Several tallies as one."""
        filled = [part for part in parts if len(part.key)]
        if len(filled) < 2:
            return filled[0] if filled else cls.empty()
        known, inverse = np.unique(np.concatenate([part.key for part in filled]), return_inverse=True)
        shown = sums(inverse, np.concatenate([part.shown for part in filled]), len(known))
        return cls(known, shown, column_sums(inverse, np.concatenate([part.acts for part in filled]), len(known)))


class SeenFilter:
    """Remembers hashes in bounded memory: a Bloom filter of 64 MB, filled in only as far as it is used.

    After ten million hashes it takes a new one for a known one in fewer than 1 of 1,000 cases; such an impression
    is then counted as a repetition, and lost.
    """

    BITS = 29
    FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)

    def __init__(self) -> None:
        self._bits = np.zeros(1 << (self.BITS - 3), dtype=np.uint8)

    def first(self, hashes: NDArray[np.uint64]) -> Bools:
        """bool[n]: which hashes are new, here and among all that were asked before; then they are known."""
        new = np.zeros(len(hashes), dtype=bool)
        new[np.unique(hashes, return_index=True)[1]] = True
        places = [(hashes * np.uint64(factor)) >> np.uint64(64 - self.BITS) for factor in self.FACTORS]
        known = np.ones(len(hashes), dtype=bool)
        for place in places:
            known &= (self._bits[place >> np.uint64(3)] >> (place & np.uint64(7)).astype(np.uint8)) & 1 == 1
        for place in places:
            bit = np.left_shift(np.uint8(1), (place & np.uint64(7)).astype(np.uint8))
            np.bitwise_or.at(self._bits, place >> np.uint64(3), bit)
        return np.asarray(new & ~known, dtype=np.bool_)


KINDS = ACTIONS
NEGATIVE_KINDS = frozenset({"dismissed", "failed", "thumbs_down", "none_useful"})
"""Acts that speak against an entry; all others speak for it."""
POSITIVE = np.array([kind not in NEGATIVE_KINDS for kind in KINDS])
"""bool[A]: which kinds speak for an entry."""
EVERYTHING_SHOWN = "none_useful"
"""The act on a whole list: nothing in it was of use."""
WORTH = np.array([1.0 if kind != EVERYTHING_SHOWN else 0.1 for kind in KINDS])
"""float64[A]: what one act counts as. That on a whole list is one act, shared by its ten places."""
CODE = {kind: at for at, kind in enumerate(KINDS)}
