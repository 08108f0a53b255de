"""The vectors of a space in memory. Products find those that may be the nearest; how near they are is then for
sqlite-vec to compute, so that the results are the same bits with and without the matrix.

Every row has bounds between which sqlite-vec's own result lies (see segments.py). Whatever belongs to the nearest
k has an upper bound that is not below the k-th largest of the lower bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Indices, Vectors
from steelyard.stores.sqlite.segments import LONGEST, SHORTEST, VectorSegment, length_of

AHEAD = 2**25
"""How many products are kept of vectors that come next: 128 MB."""
EMPTY: Vectors = np.zeros(0, np.float32)
BLOCK = 256
"""Rows of which the largest value is looked at before the others."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """The vectors of a space at a revision: `base` as it was read once, `tail` what changed since.

    `alive` is false for rows of the base that changed or are gone. Nothing is changed in place.
    """

    revision: int
    base: VectorSegment
    tail: VectorSegment
    alive: Bools
    _expected: dict[bytes, Vectors] = field(default_factory=dict)
    _ahead: dict[bytes, list[NDArray[Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, revision: int, base: VectorSegment) -> Matrix:
        """The matrix of what was read."""
        return cls(revision, base, base.without(base.rowids), np.ones(len(base), dtype=bool))

    def updated(self, revision: int, changed: Indices, rowids: Indices, vectors: Vectors) -> Matrix:
        """The matrix at a later revision: these entries changed; `rowids` are those that have vectors."""
        alive = self.alive & ~np.isin(self.base.rowids, changed)
        tail = self.tail.without(changed).with_(self.tail.of(rowids, vectors))
        return replace(self, revision=revision, tail=tail, alive=alive, _expected={}, _ahead={})

    def __len__(self) -> int:
        return len(self.base) + len(self.tail)

    @property
    def rowids(self) -> Indices:
        """Of both, also those that are not alive, int64[n]."""
        return np.concatenate([self.base.rowids, self.tail.rowids])

    def sound(self) -> bool:
        """See VectorSegment.sound."""
        return self.base.sound and self.tail.sound

    def expect(self, vectors: Sequence[Vectors]) -> None:
        """These are asked for next, in this order: their products are computed many at a time."""
        self._expected.clear()
        self._expected.update({v.tobytes(): v for v in vectors if SHORTEST < length_of(v) < LONGEST})

    def near(self, vector: Vectors, depth: int, metric: str, mask: Bools | None) -> Indices | None:
        """The rows among which the `depth` nearest are, ascending; None for a vector beyond the error bound.

        Parameters
        ----------
        mask : bool[n] or None
            The rows that count, of `mask`; None for all.
        """
        if not SHORTEST < length_of(vector) < LONGEST:
            return None
        low, high = self._bounds(vector, metric)
        counts = self._counts(mask)
        if counts is not None:
            low[~counts], high[~counts] = -np.inf, -np.inf
        size = len(low) if counts is None else int(counts.sum())
        return np.flatnonzero(high >= _largest(low, min(depth, size))) if size else np.zeros(0, dtype=np.int64)

    def chosen(self, rows: Indices) -> tuple[Indices, Vectors | None]:
        """The rowids and the vectors of some rows; None where the vectors are not kept."""
        size = len(self.base)
        parts = [(self.base, rows[rows < size]), (self.tail, rows[rows >= size] - size)]
        known = [vectors for part, local in parts if (vectors := part.exact(local)) is not None]
        rowids = np.concatenate([part.rowids[local] for part, local in parts])
        return rowids, np.concatenate(known) if known else None

    def of_entries(self, rowids: Indices) -> tuple[Indices, Vectors | None]:
        """As `chosen`, of those of these entries that have vectors."""
        rows, alive = np.flatnonzero(np.isin(self.rowids, rowids)), self._counts(None)
        return self.chosen(rows if alive is None else rows[alive[rows]])

    @property
    def _parts(self) -> list[VectorSegment]:
        return [part for part in (self.base, self.tail) if len(part)]

    def _counts(self, mask: Bools | None) -> Bools | None:
        """The rows that are alive and count; None for all."""
        if mask is None and self.alive.all():
            return None
        alive = np.concatenate([self.alive, np.ones(len(self.tail), dtype=bool)])
        return alive if mask is None else alive & mask

    def _bounds(self, vector: Vectors, metric: str) -> tuple[Vectors, Vectors]:
        """Bounds on the similarity of every row to a vector; see VectorSegment.bounds."""
        parts = self._parts
        products = zip(parts, self._products(vector), strict=True)
        bounds = [part.bounds(product, vector, metric) for part, product in products]
        if len(bounds) == 1:  # nothing is copied
            return bounds[0]
        low, high = zip((EMPTY, EMPTY), *bounds, strict=True)
        return np.concatenate(low), np.concatenate(high)

    def _products(self, vector: Vectors) -> list[NDArray[Any]]:
        """Products of each part with a vector, computed together with those of the vectors expected next."""
        key = vector.tobytes()
        known = self._ahead.get(key)
        if known is None:
            later = dropwhile(lambda expected: expected != key, list(self._expected))
            keys = list(islice(later, max(1, AHEAD // max(1, len(self))))) or [key]
            by_part = [part.products([self._expected.get(near, vector) for near in keys]) for part in self._parts]
            fresh = {near: [products[row] for products in by_part] for row, near in enumerate(keys)}
            known = fresh[key]
            if len(keys) > 1:
                self._ahead.clear()
                self._ahead.update(fresh)
        return known


def _largest(values: Vectors, depth: int) -> np.float32:
    """The `depth`-th largest, from 1; it is none below the `depth`-th largest maximum of blocks."""
    maxima = values[: len(values) // BLOCK * BLOCK].reshape(-1, BLOCK).max(axis=1)
    values = values[values >= _largest(maxima, depth)] if len(maxima) > depth else values
    largest: np.float32 = np.partition(values, -depth)[-depth]
    return largest
