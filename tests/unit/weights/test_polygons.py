"""Pairs of rows over a polygon of weights, by hand."""

import numpy as np
import pytest

from steelyard_eval.weights.exact.polygons import contested_pairs, settle, sides, tally


@pytest.mark.parametrize(
    ("low", "high", "closed", "first", "order"),
    [
        (0.1, 0.5, False, False, 1),
        (0.0, 0.5, False, False, 1),  # a tie at a vertex does not matter inside
        (0.0, 0.5, True, False, 0),  # but on the closed boundary
        (-0.5, -0.1, True, True, -1),
        (-0.5, 0.0, False, True, -1),
        (-0.2, 0.3, False, False, 0),
        (0.0, 0.0, True, True, 1),  # alike everywhere: the smaller index
        (0.0, 0.0, True, False, -1),
        (-1e-14, 1e-14, False, True, 1),  # alike but for rounding
        (-1e-14, 1e-14, True, True, 0),
    ],
)
def test_a_pair_is_settled_by_its_extremes(low, high, closed, first, order):
    assert settle(low, high, closed, first) == order


def pairs(corners, relevant, graded=False, deepest=10):
    """Of one query: the differences as shares of the largest score, which are relevant, and the rows ahead."""
    corners = np.array(corners, dtype=float)
    ends = np.array([0, len(relevant)])
    found = contested_pairs(
        corners,
        np.array([0, corners.shape[1]]),
        np.array(relevant),
        ends,
        np.array([graded]),
        deepest,
        False,
    )
    difference, rival, count, counts, ahead = found
    return difference[:count].tolist(), rival[:count].tolist(), counts.tolist(), ahead.tolist()


def test_what_is_ahead_at_every_corner_is_counted_and_what_crosses_is_kept():
    # Row 0 is relevant. Row 1 is ahead at both corners, row 2 behind, row 3 ahead at one: 4 is the largest score.
    assert pairs([[2, 3, 0, 1], [2, 4, 1, 3]], [0]) == ([[-0.25, 0.25]], [False], [1], [[1], [1]])


def test_of_rows_alike_at_every_corner_the_smaller_index_is_ahead():
    assert pairs([[1, 1, 1], [2, 2, 2]], [1]) == ([], [], [0], [[1], [1]])


def test_two_relevant_rows_are_a_pair_only_where_gains_differ():
    corners = [[4, 1, 0], [1, 4, 0]]
    assert pairs(corners, [0, 1]) == ([], [], [0, 0], [[0, 0], [0, 0]])
    assert pairs(corners, [0, 1], graded=True) == (
        [[-0.75, 0.75], [0.75, -0.75]],
        [True, True],
        [1, 1],
        [[0, 0], [0, 0]],
    )


def test_a_relevant_row_behind_the_deepest_rank_has_no_pairs():
    corners = [[0, 2, 2, 1], [2, 3, 3, 1]]
    assert pairs(corners, [0])[2:] == ([1], [[2], [2]])
    assert pairs(corners, [0], deepest=2)[2:] == ([0], [[2], [2]])


def test_a_polygon_and_its_centre_lie_on_a_side_of_each_crossing():
    polygon = np.array([[1.0, 0.0], [0.25, 0.75]])
    forms = np.array([[0.4, -0.4], [0.4, 0.1], [-0.1, 0.5], [-0.4, -0.1]])
    orders, middle, even = sides(polygon, polygon.mean(axis=0), forms, np.array([0, 1, 2, 3]))

    assert orders.tolist() == [0, 1, 0, -1]
    assert middle.tolist() == [1, 1, 1, -1]  # at (5/8, 3/8): 0.1, and -0.1 * 5/8 + 0.5 * 3/8 = 0.125
    # From 0.4 to 0.1 - 0.3 = -0.2: a third behind; from -0.1 to 0.35: 1 of 4.5.
    assert even == pytest.approx([1 / 3, 0, 0.1 / 0.45, 0])


def test_settled_pairs_are_added_to_the_rows_ahead_and_relevant_ones_are_told_apart():
    ahead, counts, rival = np.array([[1, 0], [1, 0]]), np.array([2, 1]), np.array([False, True, False])
    pairs_, orders = np.array([0, 1, 2]), np.array([1, 1, 0])
    assert tally(ahead, counts, pairs_, rival, orders, 1).tolist() == [[3, 0], [2, 0]]
    assert tally(ahead, counts, pairs_, rival, orders, 0).tolist() == [[3, 1], [2, 1]]
    assert ahead.tolist() == [[1, 0], [1, 0]]
