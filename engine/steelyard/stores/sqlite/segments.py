"""Vectors in memory, in full precision or in 8 bits a number, with bounds on their cosine with a query.

A product and sqlite-vec round differently. Of float32 vectors of length 1 and dimension n, with u = 2**-24, the
product is wrong by (n + 4) u at most, and sqlite-vec, which adds in order and divides by two lengths that it adds
up likewise, by (2n + 8) u (Higham, Accuracy and Stability, 2002, section 3.1).

In 8 bits a vector x is s c + e: a step s, whole numbers c from -127 to 127, and the rest e, whose length is kept.
A query q is likewise t d + f, with whole numbers d of 16 bits. The product of c and d is exact, so s t (c d)
differs from x q by |s c| |f| + |e| |q| at most, by the inequality of Cauchy and Schwarz.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Indices, Vectors
from steelyard.base.compiled import compiled
from steelyard.base.machine import PRECISIONS
from steelyard.stores.base import COSINE
from steelyard.stores.sqlite.scan import SIGNATURE, add_products

SHORTEST, LONGEST = 1e-6, 1e6
"""Lengths between which the error bounds above are right; others would overflow or vanish in float32."""
UNIT = 2.0**-24
"""How wrong one operation of float32 may be, relative to its result."""
CODE, LEVEL = 127, 2**15 - 1
"""The largest numbers of 8 and of 16 bits."""


@dataclass(frozen=True)
class VectorSegment(ABC):
    """Vectors of entries: rowids int64[n], lengths float32[n], and what each kind keeps of them, row by row."""

    rowids: Indices
    lengths: Vectors

    @classmethod
    @abstractmethod
    def of(cls, rowids: Indices, vectors: Vectors) -> Self:
        """Measure the vectors, float32[n, dim], in float64."""

    @staticmethod
    @abstractmethod
    def size(dim: int) -> int:
        """Bytes that the vector of an entry takes."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """How many numbers a vector has."""

    @abstractmethod
    def products(self, vectors: Sequence[Vectors]) -> NDArray[Any]:
        """What `cosines` needs of each vector and each row, [vectors, n]."""

    @abstractmethod
    def cosines(self, products: NDArray[Any], vector: Vectors) -> tuple[Vectors, Vectors]:
        """The cosines of a vector and each row, float32[n], and their largest errors, float32[n] or [1].

        Both are new arrays, which the caller may change.
        """

    @abstractmethod
    def exact(self, rows: Indices) -> Vectors | None:
        """The vectors of some rows as they were given; None where they are not kept."""

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

    def without(self, rowids: Indices) -> Self:
        """The others."""
        keep: Bools = ~np.isin(self.rowids, rowids)
        return type(self)(*(array[keep] for array in self._arrays()))

    def with_(self, other: Self) -> Self:
        """These and others."""
        return type(self)(*(np.concatenate(both) for both in zip(self._arrays(), other._arrays(), strict=True)))

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
        return bool(((self.lengths > SHORTEST) & (self.lengths < LONGEST)).all())

    def _arrays(self) -> list[NDArray[Any]]:
        return [getattr(self, field.name) for field in fields(self)]


@dataclass(frozen=True)
class Rows(VectorSegment):
    """Vectors as they are, float32[n, dim]."""

    vectors: Vectors

    @classmethod
    def of(cls, rowids: Indices, vectors: Vectors) -> Self:
        """See VectorSegment.of."""
        return cls(rowids, _lengths(vectors).astype(np.float32), vectors)

    @staticmethod
    def size(dim: int) -> int:
        """See VectorSegment.size."""
        return 4 * dim

    @property
    def dim(self) -> int:
        """See VectorSegment.dim."""
        return int(self.vectors.shape[1])

    def products(self, vectors: Sequence[Vectors]) -> NDArray[Any]:
        """The products, float32: one vector alone is not multiplied as a matrix, which is slower."""
        if len(vectors) == 1:
            return (self.vectors @ vectors[0])[None]
        product: Vectors = np.array(vectors) @ self.vectors.T
        return product

    def cosines(self, products: NDArray[Any], vector: Vectors) -> tuple[Vectors, Vectors]:
        """See VectorSegment.cosines."""
        length = np.float32(length_of(vector))
        return np.divide(products, self.lengths * length, dtype=np.float32), np.zeros(1, np.float32)

    def exact(self, rows: Indices) -> Vectors | None:
        """See VectorSegment.exact."""
        return self.vectors[rows]


@dataclass(frozen=True)
class Codes(VectorSegment):
    """Vectors in 8 bits a number, int8[n, dim].

    `steps` are how much of its own length a 1 is worth in each, `errors` how much of its length each lacks,
    float32[n].
    """

    codes: NDArray[np.int8]
    steps: Vectors
    errors: Vectors

    @classmethod
    def of(cls, rowids: Indices, vectors: Vectors) -> Self:
        """See VectorSegment.of."""
        lengths = _lengths(vectors)
        with np.errstate(all="ignore"):  # a file may hold anything; see `sound`
            steps = (np.abs(vectors).max(axis=1, initial=0) / CODE / lengths).astype(np.float32)
            worth = (steps * lengths).astype(np.float32)[:, None]
            codes = np.rint(vectors / worth)
            rest = vectors - worth * codes
            errors = np.sqrt(np.einsum("ij,ij->i", rest, rest)) / lengths
            errors = errors * (1 + (vectors.shape[1] + 4) * UNIT) + 4 * UNIT  # what these lines round
            above = np.nextafter(errors.astype(np.float32), np.float32(np.inf))
            return cls(rowids, lengths.astype(np.float32), codes.astype(np.int8), steps, above)

    @staticmethod
    def size(dim: int) -> int:
        """See VectorSegment.size."""
        return dim + 12

    @property
    def dim(self) -> int:
        """See VectorSegment.dim."""
        return int(self.codes.shape[1])

    def products(self, vectors: Sequence[Vectors]) -> NDArray[Any]:
        """The products of the whole numbers, int32."""
        levels = np.array([_levels(vector)[0] for vector in vectors])
        products = np.empty((len(vectors), len(self)), dtype=np.int32)
        compiled(add_products, SIGNATURE)(self.codes, levels, products)
        return products

    def cosines(self, products: NDArray[Any], vector: Vectors) -> tuple[Vectors, Vectors]:
        """See VectorSegment.cosines."""
        _, step, lacks = _levels(vector)
        cosines: Vectors = np.multiply(products, self.steps, dtype=np.float32)
        cosines *= np.float32(step)
        errors: Vectors = self.errors * np.float32(1 + lacks)
        errors += np.float32(lacks)
        return cosines, errors

    def exact(self, rows: Indices) -> Vectors | None:
        """See VectorSegment.exact."""
        return None


KINDS: dict[str, type[VectorSegment]] = dict(zip(PRECISIONS, (Rows, Codes), strict=True))


def length_of(vector: Vectors) -> float:
    """The length of one vector, by float64."""
    return float(np.sqrt(np.square(vector, dtype=np.float64).sum()))


def _levels(vector: Vectors) -> tuple[NDArray[np.int16], float, float]:
    """A query in whole numbers, int16[dim], what share of its length a 1 is worth, and what share they lack.

    They are so small that no product with codes leaves int32.
    """
    most = min(LEVEL, (2**31 - 1) // (CODE * len(vector)))
    wide = vector.astype(np.float64) / length_of(vector)
    step = float(np.abs(wide).max()) / most
    levels = np.rint(wide / step)
    return levels.astype(np.int16), step, float(np.sqrt(np.square(wide - step * levels).sum()))


def _lengths(vectors: NDArray[Any], block: int = 4096) -> Floats:
    """float64[n]."""
    lengths = [
        np.sqrt(np.square(vectors[begin : begin + block], dtype=np.float64).sum(axis=1))
        for begin in range(0, len(vectors), block)
    ]
    return np.concatenate([np.zeros(0), *lengths])
