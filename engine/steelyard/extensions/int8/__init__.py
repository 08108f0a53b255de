"""Vectors in 8 bits a number, in a quarter of the memory, with bounds on their cosine with a query.

A vector x is s c + e: a step s, whole numbers c from -127 to 127, and the rest e, whose length is kept.
A query q is likewise t d + f, with whole numbers d of 16 bits. The product of c and d is exact, so s t (c d)
differs from x q by |s c| |f| + |e| |q| at most, by the inequality of Cauchy and Schwarz.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Indices, Vectors, compiled, dots
from steelyard.extensions.int8.scan import SIGNATURE, add_products
from steelyard.stores.sqlite.matrix import UNIT, VectorSegment, length_of

CODE, LEVEL = 127, 2**15 - 1
"""The largest numbers of 8 and of 16 bits."""


@dataclass(frozen=True)
class Codes(VectorSegment):
    """Vectors whose numbers are int8[n, dim].

    `steps` are how much of its own length a 1 is worth in each, `errors` how much of its length each lacks,
    float32[n].
    """

    steps: Vectors
    errors: Vectors

    @classmethod
    def of(cls, rowids: Indices, vectors: Vectors) -> Self:
        """See VectorSegment.of."""
        lengths = np.sqrt(dots(vectors))
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

    def products(self, vectors: Sequence[Vectors]) -> NDArray[Any]:
        """The products of the whole numbers, int32."""
        levels = np.array([_levels(vector)[0] for vector in vectors])
        products = np.empty((len(vectors), len(self)), dtype=np.int32)
        compiled(add_products, SIGNATURE)(self.numbers, levels, products)
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
        """None: the vectors are not kept."""
        return None


def _levels(vector: Vectors) -> tuple[NDArray[np.int16], float, float]:
    """A query in whole numbers, int16[dim], what share of its length a 1 is worth, and what share they lack.

    They are so small that no product with codes leaves int32.
    """
    most = min(LEVEL, (2**31 - 1) // (CODE * len(vector)))
    wide = vector.astype(np.float64) / length_of(vector)
    step = float(np.abs(wide).max()) / most
    levels = np.rint(wide / step)
    return levels.astype(np.int16), step, float(np.sqrt(np.square(wide - step * levels).sum()))
