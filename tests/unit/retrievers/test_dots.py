"""Products in double precision: blocks have the bits of numpy's own product and sum of the whole matrix."""

import numpy as np
import pytest

from steelyard.retrievers.dots import BLOCK, dots


# Below 8 numpy adds in order, up to 128 in eight sums, beyond it halves; 129 and 264 leave unequal halves.
@pytest.mark.parametrize("dim", [1, 7, 8, 13, 127, 128, 129, 264, 384, 1536])
def test_blocks_have_the_bits_of_the_whole(dim):
    rng = np.random.default_rng(dim)
    scale = 10.0 ** rng.integers(-6, 6, size=dim)  # so that the order of a sum shows in its last bits
    matrix, vector = (rng.normal(size=(BLOCK + 3, dim)) * scale).astype(np.float32), rng.normal(size=dim)

    assert dots(matrix, vector).tobytes() == (matrix.astype(np.float64) * vector).sum(axis=1).tobytes()
    assert dots(matrix).tobytes() == np.square(matrix.astype(np.float64)).sum(axis=1).tobytes()
