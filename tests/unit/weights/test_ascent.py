"""Coordinate ascent, and the entry point that chooses among the searches."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_forms import directly, form_of, measure, random_form

from steelyard.base.errors import ConfigError
from steelyard_eval.weights.exact.ascent import DIRECTIONS, Ascent, _along, ascend, line_of, wander
from steelyard_eval.weights.exact.objective import Objective
from steelyard_eval.weights.exact.optimise import movable, optimise
from steelyard_eval.weights.exact.sweep import segment

NDCG = measure("nDCG@3")


def mean(form, weights, name="nDCG@3"):
    return directly(form, name, weights).mean()


def test_a_line_keeps_the_proportions_of_the_rest():
    begin, end = line_of(np.array([0.5, 0.2, 0.3, 9.0]), np.array([0, 1, 2]), 0)

    np.testing.assert_allclose(begin, [0, 0.4, 0.6, 9.0])
    np.testing.assert_allclose(end, [1, 0, 0, 9.0])


def test_a_line_from_a_corner_gives_the_rest_equal_parts():
    begin, end = line_of(np.array([1.0, 0.0, 0.0]), np.array([0, 1, 2]), 0)

    assert (begin.tolist(), end.tolist()) == ([0, 0.5, 0.5], [1, 0, 0])


def test_of_equal_plateaus_on_a_line_the_nearer_one_is_taken():
    # With (1 + 3t, 1 - 3t, 1) / 3 the first query's relevant row leads from t = 0.2 on, because 1.6 = 4 * 0.4, and
    # the second one's up to t = -0.1, because 1.3 = 13 / 7 * 0.7.
    columns = [[1, 0, 0, 13 / 7], [0, 4, 1, 0], [0, 0, 0, 0]]
    objective = Objective.of(form_of(columns, [1, 0, 1, 0], [2, 2]), measure("RR"))
    start = np.full(3, 1 / 3)

    end = _along(objective, Ascent(start, objective.mean(start)), np.arange(3), np.array([1.0, -1.0, 0.0]))

    assert (objective.mean(start), end.value) == (0.5, 0.75)
    assert end.weights[0] < start[0] - 0.1


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(3, 6))
def test_where_an_ascent_ends_no_weight_alone_can_gain(seed, columns):
    rng = np.random.default_rng(seed)
    form = random_form(rng, columns=columns, queries=5, rows=10)
    objective, own, start = Objective.of(form, NDCG), np.arange(columns), rng.dirichlet(np.ones(columns))

    end = ascend(objective, Ascent(start, objective.mean(start)), own)

    assert end.value == pytest.approx(mean(form, end.weights), abs=1e-12)
    assert end.value >= mean(form, start) - 1e-12
    for s in own:
        begin, full = line_of(end.weights, own, s)
        assert segment(objective, begin, full).curve().best <= end.value + 1e-11


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from(["nDCG@3", "RR@3", "AP@4"]))
def test_what_is_found_is_what_it_says_and_no_worse_than_the_start(seed, columns, name):
    rng = np.random.default_rng(seed)
    form = random_form(rng, columns=columns, queries=4, rows=8)
    start = rng.dirichlet(np.ones(columns)) * 3

    found = optimise(form, measure(name), start, seed=1)

    assert found.value == pytest.approx(mean(form, found.weights, name), abs=1e-12)
    assert found.value >= mean(form, start, name) - 1e-12
    moving = [len(own) for own in movable(form)]
    assert found.certificate == ("exact" if not moving or (moving[0] <= 2 and name != "AP@4") else "best-found")
    if moving == [columns]:
        assert found.weights.sum() == pytest.approx(1)
        assert found.weights.min() >= 0
        for first in np.linspace(*found.plateau, 7)[1:-1]:
            rest = found.weights[1:] / found.weights[1:].sum() if found.weights[1:].sum() > 0 else 0
            rest = rest if np.ndim(rest) else np.full(columns - 1, 1 / (columns - 1))
            moved = np.concatenate([[first], rest * (1 - first)])
            if found.plateau[1] - found.plateau[0] > 1e-6 and not crossing_near(form, found, moved):
                assert mean(form, moved, name) == pytest.approx(found.value, abs=1e-12)


def crossing_near(form, found, weights):
    """Whether two rows of a query nearly tie there."""
    scores = form.scores(weights)
    parts = (np.sort(scores[a:b]) for a, b in itertools.pairwise(form.offsets))
    return any(np.diff(part).min(initial=1.0) < 1e-7 for part in parts)


def test_two_weights_are_found_exactly_in_the_middle_of_their_plateau():
    # The relevant row (1, 0) passes the other one (0.25, 0.5) at a first weight of 0.4, found by hand.
    form = form_of([[0.25, 1.0], [0.5, 0.0]], [0, 1], [2])

    found = optimise(form, measure("RR"), np.array([0.0, 2.0]))

    assert found.weights.tolist() == pytest.approx([0.7, 0.3])
    assert found.plateau == pytest.approx((0.4, 1.0))
    assert (found.value, found.certificate) == (1.0, "exact")


def test_of_equal_plateaus_the_one_nearest_to_the_start_is_taken():
    # One relevant row a query: the first leads up to t = 1/4, the second from 3/4 on; in between neither does.
    # 0.75 (1 - t) meets 3 t - 0.25 (1 - t) at t = 1/4, and t - 2 (1 - t) meets 1 - t at t = 3/4.
    form = form_of([[0.0, 3.0, 1.0, 0.0], [0.75, -0.25, -2.0, 1.0]], [1, 0, 1, 0], [2, 2])

    low = optimise(form, measure("RR"), np.array([0.05, 0.95]))
    high = optimise(form, measure("RR"), np.array([0.95, 0.05]))

    assert low.plateau == pytest.approx((0.0, 0.25))
    assert high.plateau == pytest.approx((0.75, 1.0))
    assert low.value == high.value == 0.75


def test_tiers_are_tuned_one_after_the_other_and_a_bare_one_keeps_its_weight():
    # Query 1 is answered by columns 0 and 1, query 2 by columns 2 and 3, query 3 by column 4 alone.
    columns = np.zeros((5, 6))
    columns[:2, :2] = [[0.25, 1.0], [0.5, 0.0]]
    columns[2:4, 2:4] = [[0.5, 0.0], [0.25, 1.0]]
    columns[4, 4:] = [1.0, 2.0]
    form = form_of(columns, [0, 1, 0, 1, 0, 1], [2, 2, 2], branch=[0, 0, 1, 1, 2])

    found = optimise(form, measure("RR"), np.array([0.1, 0.9, 0.9, 0.1, 1.0]))

    assert found.weights.tolist() == pytest.approx([0.7, 0.3, 0.3, 0.7, 1.0])
    assert found.value == 1.0
    assert found.certificate == "best-found"


def test_a_mask_of_queries_equals_a_form_of_those_queries():
    # The first query alone wants the first column, the second one the second.
    form = form_of([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]], [1, 0, 1, 0], [2, 2])

    first = optimise(form, measure("RR"), form.weights, queries_mask=np.array([True, False]))
    second = optimise(form, measure("RR"), form.weights, queries_mask=np.array([False, True]))

    assert (first.value, second.value) == (1.0, 1.0)
    # Ties at 1/2 go to the smaller index, the relevant row: a crossing, which no plateau holds.
    assert first.plateau == pytest.approx((0.5, 1.0))
    assert second.plateau == pytest.approx((0.0, 0.5))


def test_the_same_seed_finds_the_same_bits_and_nothing_else_is_asked_for_chance():
    form = random_form(np.random.default_rng(5), columns=5, queries=10, rows=20)

    one, two = (optimise(form, NDCG, form.weights, seed=7) for _ in range(2))

    assert one.weights.tobytes() == two.weights.tobytes()
    assert (one.value, one.plateau, one.lines) == (two.value, two.plateau, two.lines)


@pytest.mark.parametrize(
    ("weights", "rule"),
    [
        ([0.5], "1 weights for 2 columns"),
        ([-1.0, 1.0], "must all be at least 0"),
        ([np.nan, 1.0], "must all be at least 0"),
    ],
)
def test_weights_that_cannot_be_searched_from_are_refused(weights, rule):
    form = random_form(np.random.default_rng(0))
    with pytest.raises(ConfigError, match=rule):
        optimise(form, NDCG, np.array(weights))


def test_weights_that_are_all_0_start_in_equal_parts():
    form = form_of([[0.5, 0.1], [0.5, 0.2]], [1, 0], [2])

    assert optimise(form, NDCG, np.zeros(2)).weights.tolist() == [0.5, 0.5]


def test_a_column_that_is_the_same_for_all_rows_of_each_query_does_not_move():
    #      first query   second query
    same = [0.7, 0.7, 0.7, 0.2, 0.2]
    one, other = [0.9, 0.1, 0.5, 0.3, 0.4], [0.1, 0.9, 0.2, 0.6, 0.5]
    form = form_of([one, same, other], [1, 0, 0, 0, 1], [3, 2])

    assert [own.tolist() for own in movable(form)] == [[0, 2]]
    found = optimise(form, NDCG, np.array([0.2, 5.0, 0.2]))
    assert found.weights[1] == 5.0
    assert found.weights[[0, 2]].sum() == pytest.approx(1)
    assert movable(form_of([one, same], [1, 0, 0, 0, 1], [3, 2])) == []


def test_where_nothing_moves_the_value_is_known():
    form = form_of([[0.5, 0.9]], [1, 0], [2])
    found = optimise(form, measure("RR"), np.array([3.0]))

    assert (found.value, found.certificate, found.plateau) == (0.5, "exact", ())


def test_random_directions_end_after_so_many_in_a_row_without_a_gain():
    form = form_of([[0.5, 0.9], [0.1, 0.8], [0.2, 0.7]], [1, 0], [2])  # the relevant row is always second
    objective = Objective.of(form, measure("RR"))
    start = Ascent(np.full(3, 1 / 3), mean(form, np.full(3, 1 / 3), "RR"), 7)

    assert wander(objective, start, np.arange(3), np.random.default_rng(0)).lines == 7 + DIRECTIONS
