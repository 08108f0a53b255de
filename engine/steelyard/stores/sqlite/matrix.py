"""The vectors of a space in memory. A product finds those that may be the nearest; how near they are is then for
sqlite-vec to compute, so that the results are the same bits with and without the matrix.

A product and sqlite-vec round differently. Of float32 vectors of length 1 and dimension n, with u = 2**-24, the
product is wrong by (n + 4) u at most, and sqlite-vec, which adds in order and divides by two lengths that it adds
up likewise, by (2n + 8) u (Higham, Accuracy and Stability, 2002, section 3.1). Whatever belongs to the nearest k
therefore has a product within twice the sum of both of the k-th largest one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Bools, Indices
from steelyard.filters import Filters
from steelyard.stores.base import COSINE

Vectors = NDArray[np.float32]
MASKS = 64
"""Scopes whose masks are kept."""
AHEAD = 2**25
"""How many products are kept of vectors that come next: 128 MB."""
SHORTEST, LONGEST = 1e-6, 1e6
"""Lengths between which the error bound above is right; others would overflow or vanish in float32."""


@dataclass(frozen=True)
class Rows:
    """Vectors of entries: rowids int64[n], float32[n, dim], and their lengths float32[n]."""

    rowids: Indices
    vectors: Vectors
    lengths: Vectors

    @classmethod
    def of(cls, rowids: Indices, vectors: Vectors) -> Rows:
        """Measure the vectors, in float64."""
        lengths = [np.sqrt(np.square(part, dtype=np.float64).sum(axis=1)) for part in _blocks(vectors)]
        return cls(rowids, vectors, np.concatenate([np.zeros(0), *lengths]).astype(np.float32))

    def without(self, rowids: Indices) -> Rows:
        """The others."""
        keep = ~np.isin(self.rowids, rowids)
        return Rows(self.rowids[keep], self.vectors[keep], self.lengths[keep])

    def with_(self, other: Rows) -> Rows:
        """These and others."""
        return Rows(
            np.concatenate([self.rowids, other.rowids]),
            np.concatenate([self.vectors, other.vectors]),
            np.concatenate([self.lengths, other.lengths]),
        )

    def sound(self) -> bool:
        """Whether every vector has a direction and a length that a product can be trusted with."""
        return bool(((self.lengths > SHORTEST) & (self.lengths < LONGEST)).all())


@dataclass(frozen=True, eq=False)
class Matrix:
    """The vectors of a space at a revision: `base` as it was read once, `tail` what changed since.

    `alive` is false for rows of the base that changed or are gone. Nothing is changed in place.
    """

    revision: int
    base: Rows
    tail: Rows
    alive: Bools
    _masks: dict[Filters, Bools] = field(default_factory=dict)
    _ahead: dict[bytes, Vectors] = field(default_factory=dict)

    @classmethod
    def of(cls, revision: int, base: Rows) -> Matrix:
        """The matrix of what was read."""
        tail = Rows.of(np.zeros(0, np.int64), np.zeros((0, base.vectors.shape[1]), np.float32))
        return cls(revision, base, tail, np.ones(len(base.rowids), dtype=bool))

    def updated(self, revision: int, changed: Indices, rows: Rows) -> Matrix:
        """The matrix at a later revision: these entries changed; `rows` are those that have vectors."""
        alive = self.alive & ~np.isin(self.base.rowids, changed)
        tail = self.tail.without(changed).with_(rows)
        return replace(self, revision=revision, tail=tail, alive=alive, _masks={}, _ahead={})

    def expect(self, vectors: Sequence[Vectors]) -> None:
        """Compute the products with vectors that are asked for next, all at once; kept until the next call."""
        some = vectors[: max(1, AHEAD // max(1, len(self.alive)))]
        products = np.concatenate([np.array(some) @ rows.vectors.T for rows in (self.base, self.tail)], axis=1)
        self._ahead.clear()
        self._ahead.update(zip((vector.tobytes() for vector in some), products, strict=True))

    def near(self, vector: Vectors, depth: int, metric: str, mask: Bools | None) -> tuple[Indices, Vectors] | None:
        """The rowids and vectors among which the `depth` nearest are; None for a vector beyond the error bound.

        Parameters
        ----------
        mask : bool[n] or None
            The rows that count, of `mask`; None for all.
        """
        length = float(np.sqrt(np.square(vector, dtype=np.float64).sum()))
        if not SHORTEST < length < LONGEST:
            return None
        scores, scale = self._scores(vector, length, metric)
        counts = np.concatenate([self.alive, np.ones(len(self.tail.rowids), dtype=bool)])
        if mask is not None:
            counts &= mask
        scores[~counts] = -np.inf
        at = np.flatnonzero(scores >= self._least(scores, min(depth, int(counts.sum())), scale))
        inner, outer = at[at < len(self.alive)], at[at >= len(self.alive)] - len(self.alive)
        rowids = np.concatenate([self.base.rowids[inner], self.tail.rowids[outer]])
        return rowids, np.concatenate([self.base.vectors[inner], self.tail.vectors[outer]])

    def mask(self, filters: Filters, inside: Callable[[Filters], Indices]) -> Bools:
        """The rows in a scope, bool[n]; `inside` gives its rowids."""
        known = self._masks.get(filters)
        if known is None:
            known = np.isin(np.concatenate([self.base.rowids, self.tail.rowids]), inside(filters))
            if len(self._masks) >= MASKS:
                self._masks.clear()
            self._masks[filters] = known
        return known

    def _least(self, scores: Vectors, depth: int, scale: float) -> float:
        """The score below which nothing is among the `depth` best."""
        if depth == 0:
            return float(np.inf)
        cut = float(np.partition(scores, len(scores) - depth)[len(scores) - depth])
        margin: float = 6 * (self.base.vectors.shape[1] + 4) * 2.0**-24 * scale
        return cut - margin

    def _scores(self, vector: Vectors, length: float, metric: str) -> tuple[Vectors, float]:
        """Larger for what is nearer, float32[n], and the scale of the error.

        The cosine; or ``-|x - q|**2 = 2 x.q - |x|**2 - |q|**2``, whose error grows with ``(|x| + |q|)**2``.
        """
        lengths = np.concatenate([self.base.lengths, self.tail.lengths])
        known = self._ahead.get(vector.tobytes())
        if known is None:
            known = np.concatenate([rows.vectors @ vector for rows in (self.base, self.tail)])
        if metric == COSINE:
            cosines: Vectors = np.divide(known, lengths * np.float32(length), dtype=np.float32)
            return cosines, 1.0
        largest = float(lengths.max(initial=0)) + length
        sums: Vectors = lengths * lengths + np.float32(length * length)
        near: Vectors = np.float32(2) * known - sums
        return near, largest * largest


def _blocks(vectors: Vectors, size: int = 4096) -> list[Vectors]:
    return [vectors[at : at + size] for at in range(0, len(vectors), size)]
