"""The exact sweep: its values against replay's own evaluation, its plateaus, its folds."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from search_forms import MEASURES, directly, drawn_forms, form_of, measure, random_form
from shared import tabled

from steelyard_eval.candidates.curve import NARROWEST, Curve, Objective, sweep


def swept(form, name):
    """The line on which the first of two weights goes from 0 to 1, the second from 1 to 0."""
    return sweep(Objective.of(form, measure(name)), np.array([0.0, 1.0]), np.array([1.0, -1.0]))


def weights(t):
    return np.array([t, 1 - t])


def wide_intervals(curve):
    """(index, middle) of every interval that counts."""
    return [(at, (curve.edges[at] + curve.edges[at + 1]) / 2) for at in np.flatnonzero(curve.wide)]


class TestSweep:
    @given(drawn_forms(), st.sampled_from(MEASURES))
    def test_every_interval_and_both_ends_have_the_value_that_replay_finds_there(self, form, name):
        curve = swept(form, name)
        for at, middle in wide_intervals(curve):
            expected = directly(form, name, weights(middle))
            assert Objective.of(form, measure(name)).values(weights(middle)) == pytest.approx(expected, abs=1e-12)
            assert curve.values[at] == pytest.approx(expected.mean(), abs=1e-12)
        for t, value in zip((0.0, 1.0), curve.ends, strict=True):
            assert value == pytest.approx(directly(form, name, weights(t)).mean(), abs=1e-12)

    @given(st.integers(0, 2**32), st.sampled_from(MEASURES))
    def test_a_line_may_run_anywhere_between_any_two_values_of_t(self, seed, name):
        rng = np.random.default_rng(seed)
        form = random_form(rng, columns=4)
        start, direction = rng.normal(size=4), rng.normal(size=4)
        curve = sweep(Objective.of(form, measure(name)), start, direction, -2.0, 3.0)
        assert (curve.edges[0], curve.edges[-1]) == (-2.0, 3.0)
        for at, t in wide_intervals(curve):
            assert curve.values[at] == pytest.approx(directly(form, name, start + t * direction).mean(), abs=1e-12)

    @given(drawn_forms(), st.sampled_from(MEASURES))
    def test_the_best_is_chosen_and_a_plateau_is_level_inside_and_ends_where_it_says(self, form, name):
        curve = swept(form, name)
        assert curve.choose().value == curve.best == max([*curve.values[curve.wide], *curve.ends])
        for plateau in curve.plateaus():
            assert plateau.low <= plateau.t <= plateau.high
            assert directly(form, name, weights(plateau.t)).mean() == pytest.approx(plateau.value, abs=1e-12)
            if plateau.high == plateau.low:
                continue
            for end, inward in ((plateau.low, 1), (plateau.high, -1)):
                inside, outside = end + 2e-9 * inward, end - 2e-9 * inward
                near = np.abs(curve.edges[1:-1, None] - [inside, outside]).min(axis=0, initial=1.0)
                if near[0] > NARROWEST and plateau.high - plateau.low > 4e-9:
                    assert directly(form, name, weights(inside)).mean() == pytest.approx(plateau.value, abs=1e-12)
                if near[1] > NARROWEST and 0 < outside < 1:
                    assert directly(form, name, weights(outside)).mean() < plateau.value - 1e-12

    def test_a_crossing_lies_where_a_hand_finds_it(self):
        # The relevant row has (1, 0), the other one (0.25, 0.5): t = 0.5 (1 - t) + 0.25 t at t = 0.4.
        form = form_of([[0.25, 1.0], [0.5, 0.0]], [0, 1], [2])
        curve = swept(form, "RR")
        np.testing.assert_allclose(curve.edges, [0, 0.4, 1], rtol=0, atol=1e-15)
        np.testing.assert_allclose(curve.values, [0.5, 1.0])
        plateau = curve.choose()
        assert (plateau.low, plateau.high, plateau.t) == pytest.approx((0.4, 1.0, 0.7))

    def test_ties_at_an_end_go_to_the_smaller_index_there_and_to_the_line_inside(self):
        # All tie at t = 0. Inside, the relevant row with the larger score is ahead; at 0 itself the other is.
        form = form_of([[0.0, 1.0], [1.0, 1.0]], [0, 1], [2])
        curve = swept(form, "RR")
        assert curve.values.tolist() == [1.0]
        assert curve.ends == (0.5, 1.0)
        assert curve.choose() == curve.plateaus()[0]
        assert (curve.choose().low, curve.choose().high) == (0.0, 1.0)

    def test_an_end_point_alone_can_be_best(self):
        # At t = 1 the first two rows tie and the smaller index, the relevant one, wins; inside it is behind.
        form = form_of([[1.0, 1.0], [0.0, 1.0]], [1, 0], [2])
        plateau = swept(form, "RR").choose()
        assert (plateau.low, plateau.high, plateau.t, plateau.value) == (1.0, 1.0, 1.0, 1.0)

    @tabled
    @pytest.mark.parametrize("name", MEASURES)
    def test_hard_forms_have_their_ends_and_best_right(self, columns, grades, name):
        form = form_of(columns, grades, [len(grades)])
        curve = swept(form, name)
        assert np.isfinite(curve.edges).all()
        assert curve.ends == pytest.approx([directly(form, name, weights(t)).mean() for t in (0, 1)], abs=1e-12)
        for at, middle in wide_intervals(curve):
            assert curve.values[at] == pytest.approx(directly(form, name, weights(middle)).mean(), abs=1e-12)

    @tabled
    def test_a_plateau_is_chosen_in_its_middle(self, edges, values, ends, near, low, high, t):
        curve = Curve(np.array(edges), np.array(values), tuple(ends))
        plateau = curve.choose(**near)
        assert (plateau.low, plateau.high) == (low, high)
        assert t is None or plateau.t == pytest.approx(t)
        assert curve.best == plateau.value
