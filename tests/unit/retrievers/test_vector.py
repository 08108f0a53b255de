"""The order of scores: ties by place, also where they are infinite."""

import numpy as np
import pytest

from steelyard.retrievers.vector import _best_first


@pytest.mark.parametrize("end", [-np.inf, np.inf, 0.5])
def test_equal_scores_keep_their_order(end):
    # numpy's stable sort is the reference; its usual one shuffles as many equal values
    scores = np.full(1000, end)
    scores[::7] = 0.25
    assert _best_first(scores).tolist() == sorted(range(1000), key=lambda row: (-scores[row], row))
