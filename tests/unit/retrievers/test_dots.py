"""Products in double precision: the compiled loop has the bits of numpy's own product and sum."""

import numpy as np
import pytest

from steelyard.retrievers import dots as module
from steelyard.retrievers.dots import BLOCK, LATER, dots


@pytest.fixture
def late(monkeypatch):
    """A process that has multiplied enough to compile."""
    monkeypatch.setattr(module._Work, "numbers", LATER)


def drawn(dim):
    rng = np.random.default_rng(dim)
    scale = 10.0 ** rng.integers(-6, 6, size=dim)  # so that the order of a sum shows in its last bits
    return (rng.normal(size=(BLOCK + 3, dim)) * scale).astype(np.float32), rng.normal(size=dim)


def expected(matrix, vector):
    return (matrix.astype(np.float64) * vector).sum(axis=1)


# Below 8 numpy adds in order, up to 128 in eight sums, beyond it halves; 129 and 264 leave unequal halves.
@pytest.mark.parametrize("dim", [1, 7, 8, 13, 127, 128, 129, 256, 264, 384, 385, 768, 1000, 1536, 3072])
def test_the_compiled_loop_has_the_bits_of_numpy(late, dim):
    matrix, vector = drawn(dim)
    assert dots(matrix, vector).tobytes() == expected(matrix, vector).tobytes()


def test_the_compiled_loop_is_used_late_alone(monkeypatch):
    asked = []
    monkeypatch.setattr(module, "compiled", lambda *_: lambda *given: asked.append(given))
    matrix, vector = drawn(8)
    monkeypatch.setattr(module._Work, "numbers", LATER - 2 * matrix.size)
    dots(matrix, vector)
    assert not asked
    dots(matrix, vector)
    assert asked


def test_a_numpy_that_sums_in_another_order_decides(late, monkeypatch):
    monkeypatch.setattr(module, "compiled", lambda *_: lambda *given: given[-1].fill(1.0))
    matrix, vector = drawn(8)
    assert dots(matrix, vector).tobytes() == expected(matrix, vector).tobytes()


def test_zeros_of_either_sign_are_zero(late):
    matrix = np.full((BLOCK + 1, 16), -0.0, dtype=np.float32)
    assert dots(matrix, np.ones(16)).tobytes() == np.zeros(BLOCK + 1).tobytes()
