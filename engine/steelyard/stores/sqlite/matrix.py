"""The vectors of a space in memory: their products find those that may be the nearest.

How near they are is then for sqlite-vec to compute, so that the results are the same bits with and without the
matrix. Every row has bounds between which sqlite-vec's own result lies. Whatever belongs to the nearest k has an
upper bound that is not below the k-th largest of the lower bounds.

A product and sqlite-vec round differently. Of float32 vectors of length 1 and dimension n, with u = 2**-24, the
product is wrong by (n + 4) u at most, and sqlite-vec, which adds in order and divides by two lengths that it adds
up likewise, by (2n + 8) u (Higham, Accuracy and Stability, 2002, section 3.1).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import dropwhile, islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Indices, Vectors, dots
from steelyard.stores.base import COSINE

AHEAD = 2**25  # products that are kept at most of vectors that come next: 128 MB
SHORTEST_VECTOR, LONGEST_VECTOR = 1e-6, 1e6
"""Lengths between which the error bounds above are right; others would overflow or vanish in float32."""
UNIT = 2.0**-24  # how wrong one operation of float32 may be, relative to its result


@dataclass(frozen=True)
class VectorSegment:
    """Vectors of entries as they are: rowids int64[n], lengths float32[n], numbers float32[n, dim].

    The extension `int8` has another kind, which keeps rounded numbers.
    """

    rowids: Indices
    lengths: Vectors
    numbers: NDArray[Any]

    @classmethod
    def of(cls, rowids: Indices, vectors: Vectors) -> Self:
        """Measure the vectors, float32[n, dim], in float64."""
        return cls(rowids, np.sqrt(dots(vectors)).astype(np.float32), vectors)

    @staticmethod
    def size(dim: int) -> int:
        """Bytes that the vector of an entry takes."""
        return 4 * dim

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""
        return int(self.numbers.shape[1])

    def products(self, vectors: Sequence[Vectors]) -> NDArray[Any]:
        """What `cosines` needs of each vector and each row, [vectors, n]."""
        if len(vectors) == 1:  # which is slower as a product of matrices
            return (self.numbers @ vectors[0])[None]
        return np.asarray(np.array(vectors) @ self.numbers.T)

    def cosines(self, products: NDArray[Any], vector: Vectors) -> tuple[Vectors, Vectors]:
        """The cosines of a vector and each row, float32[n], and their largest errors, float32[n] or [1].

        Both are new arrays, which the caller may change.
        """
        length = np.float32(length_of(vector))
        return np.divide(products, self.lengths * length, dtype=np.float32), np.zeros(1, np.float32)

    def exact(self, rows: Indices) -> Vectors | None:
        """The vectors of some rows as they were given; None where they are not kept."""
        return self.numbers[rows]

    def bounds(self, products: NDArray[Any], vector: Vectors, metric: str) -> tuple[Vectors, Vectors]:
        """Between which bounds lies what is larger for nearer rows, float32[n] each.

        The cosine; or ``-|x - q|**2 = 2 x.q - |x|**2 - |q|**2``.
        """
        cosines, error = self.cosines(products, vector)
        # 3 (n + 4) u: once for our product and twice for sqlite-vec; 8 u for the roundings of these lines
        error += np.float32((3 * (self.dim + 4) + 8) * UNIT)
        if metric == COSINE:  # in place: new memory costs more than the sums
            high = cosines + error
            cosines -= error
            return cosines, high
        length = np.float32(length_of(vector))
        both, squares = 2 * self.lengths * length, np.square(self.lengths + length)
        near = cosines * both - (self.lengths * self.lengths + length * length)
        wrong = error * squares
        return near - wrong, near + wrong

    def __len__(self) -> int:
        return len(self.rowids)

    def changed(self, gone: Indices, new: Self) -> Self:
        """These without some entries, and others."""
        keep: Bools = ~np.isin(self.rowids, gone)
        both = zip(self._arrays(), new._arrays(), strict=True)
        return type(self)(*(np.concatenate([own[keep], other]) for own, other in both))

    @classmethod
    def gathered(cls, parts: Iterable[tuple[Indices, Vectors]], count: int, dim: int) -> Self:
        """Measure vectors that come part by part, `count` in all at most; they are in memory once."""
        empty = cls.of(np.zeros(0, np.int64), np.zeros((0, dim), np.float32))
        whole = [np.empty((count, *array.shape[1:]), array.dtype) for array in empty._arrays()]
        filled = 0
        for rowids, vectors in parts:
            for array, part in zip(whole, cls.of(rowids, vectors)._arrays(), strict=True):
                array[filled : filled + len(rowids)] = part
            filled += len(rowids)
        return cls(*(array[:filled] for array in whole))

    @cached_property
    def sound(self) -> bool:
        """Whether every vector has a direction and a length that a product can be trusted with."""
        return bool(((self.lengths > SHORTEST_VECTOR) & (self.lengths < LONGEST_VECTOR)).all())

    def _arrays(self) -> list[NDArray[Any]]:
        return [getattr(self, field.name) for field in fields(self)]


@dataclass(frozen=True, eq=False)
class Matrix:
    """The vectors of a space: `base` as it was read once, `tail` what changed since.

    `alive`, bool[n], is false for rows of the base that changed or are gone. Nothing is changed in place.
    """

    base: VectorSegment
    tail: VectorSegment
    alive: Bools
    _expected: dict[bytes, Vectors] = field(default_factory=dict)
    _ahead: dict[bytes, list[NDArray[Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, base: VectorSegment) -> "Matrix":
        """The matrix of what was read."""
        none = base.of(np.zeros(0, np.int64), np.zeros((0, base.dim), np.float32))
        return cls(base, none, np.ones(len(base), dtype=bool))

    def updated(self, changed: Indices, rowids: Indices, vectors: Vectors) -> "Matrix":
        """The matrix after these entries changed; `rowids` are those that have vectors."""
        alive = self.alive[: len(self.base)] & ~np.isin(self.base.rowids, changed)
        tail = self.tail.changed(changed, self.tail.of(rowids, vectors))
        return Matrix(self.base, tail, np.concatenate([alive, np.ones(len(tail), dtype=bool)]))

    def __len__(self) -> int:
        return len(self.alive)

    @cached_property
    def rowids(self) -> Indices:
        """Of both, also those that are not alive, int64[n]."""
        return np.concatenate([self.base.rowids, self.tail.rowids])

    def expect(self, vectors: Sequence[Vectors]) -> None:
        """Hint: these come next, in this order; their products are computed many at a time."""
        self._expected.clear()
        self._expected.update({v.tobytes(): v for v in vectors if SHORTEST_VECTOR < length_of(v) < LONGEST_VECTOR})

    def near(self, vector: Vectors, depth: int, metric: str, mask: Bools | None) -> Indices | None:
        """The rows among which the `depth` nearest are, ascending; None for a vector beyond the error bound.

        `mask`, bool[n], has the rows that count; None for all.
        """
        if not SHORTEST_VECTOR < length_of(vector) < LONGEST_VECTOR:
            return None
        parts = zip((self.base, self.tail), self._products(vector), strict=True)
        bounds = [part.bounds(products, vector, metric) for part, products in parts]
        counts = self.alive if mask is None else self.alive & mask
        size = int(counts.sum())
        if not size:
            return np.zeros(0, dtype=np.int64)
        low, high = map(np.concatenate, zip(*bounds, strict=True))
        if size < len(self):
            low[~counts], high[~counts] = -np.inf, -np.inf
        last = min(depth, size)
        return np.flatnonzero(high >= np.partition(low, -last)[-last])

    def chosen(self, rows: Indices) -> tuple[Indices, Vectors | None]:
        """The rowids and the vectors of some rows; None where the vectors are not kept."""
        size = len(self.base)
        parts = [(self.base, rows[rows < size]), (self.tail, rows[rows >= size] - size)]
        known = [vectors for part, local in parts if (vectors := part.exact(local)) is not None]
        rowids = np.concatenate([part.rowids[local] for part, local in parts])
        return rowids, np.concatenate(known) if known else None

    def _products(self, vector: Vectors) -> list[NDArray[Any]]:
        """Products of each part with a vector, computed together with those of the vectors expected next."""
        key = vector.tobytes()
        known = self._ahead.get(key)
        if known is None:
            later = dropwhile(lambda expected: expected != key, list(self._expected))
            keys = list(islice(later, max(1, AHEAD // max(1, len(self))))) or [key]
            asked = [self._expected.get(near, vector) for near in keys]
            by_part = [part.products(asked) for part in (self.base, self.tail)]
            fresh = {near: [products[row] for products in by_part] for row, near in enumerate(keys)}
            known = fresh[key]
            if len(keys) > 1:
                self._ahead.clear()
                self._ahead.update(fresh)
        return known


def length_of(vector: Vectors) -> float:
    """The length of one vector, by float64."""
    return float(np.sqrt(np.square(vector, dtype=np.float64).sum()))
