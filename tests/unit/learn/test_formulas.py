"""Parts of the learner beside the same quantities by hand, in closed form, or by a general solver."""

import numpy as np
import pytest
from made_world import counted, made

from steelyard_eval.learn.counts import CODE, KINDS, PositionCounts
from steelyard_eval.learn.first_ten import PLACES
from steelyard_eval.learn.gains import Classes, fit
from steelyard_eval.learn.position_bias import joint


def test_the_same_place_of_an_entry_is_counted_together_and_its_acts_are_shows_at_most():
    lists, _ = made()
    found = counted(
        lists, [30, 5999, 5, 30, 30, -1], [9, 0, 2, 9, 8, 0], [4, 1, 7, 6, 2, 1], acts=[1, 0, 9, 6, 1, 5]
    )
    assert found.row.tolist() == [5, 30, 30, 5999]
    assert found.place.tolist() == [2, 8, 9, 0]
    assert found.shown.tolist() == [7, 2, 10, 1]
    assert found.positive.tolist() == [7, 1, 7, 0]  # 9 acts in 7 shows are 7
    assert found.query.tolist() == [0, 1, 1, 239]  # 25 candidates a query
    # a search that counts as a tenth keeps a tenth of its act
    assert counted(lists, [0], [0], [0.1], acts=[0.1]).positive.tolist() == [0.1]


def test_queries_with_a_single_act_count_for_the_exponent():
    lists, _ = made()
    at = np.arange(3)
    rows = np.concatenate([lists.pairs.offsets[q] + at for q in range(40)])
    own = counted(lists, rows, np.tile(at, 40), np.full(120, 10), acts=np.tile([1, 0, 0], 40))
    assert np.isfinite(joint(lists.pairs, own).error)


def test_rates_of_a_place_without_shows_stay_where_the_exponent_puts_them():
    lists, _ = made()
    classes = fit(lists.pairs, counted(lists, range(60), [0, 1, 2] * 20, [30] * 60, acts=[9, 1, 1] * 20), 2.0)
    kind = CODE["clicked"]
    for rates in (classes.relevant[:, kind], classes.other[:, kind]):
        assert rates[5] / rates[9] == pytest.approx((6 / 10) ** -2.0)
    assert (classes.relevant[3:, kind] / classes.other[3:, kind]).std() < 1e-9


def test_rare_acts_against_an_entry_are_expected_about_as_often_as_the_log_has_them():
    """Where nothing was shown the rates stay where they start: below the log's for relevant entries, and less than
    twice it for the others.
    """
    lists, _ = made()
    acts = np.zeros((60, len(KINDS)))
    acts[:, CODE["clicked"]], acts[::10, CODE["dismissed"]] = [9, 1, 1] * 20, 3
    own = PositionCounts.of(lists.pairs, np.arange(60), np.zeros(60, dtype=int), np.full(60, 30.0), acts)
    classes, kind = fit(lists.pairs, own, 1.0), CODE["dismissed"]
    rate = 18 / 1800 / 10  # six entries three times in 1800 shows; the tenth place is examined a tenth as often
    assert classes.relevant[9, kind] < rate < classes.other[9, kind] < 2 * rate


def test_the_strength_of_an_act_is_its_lift_over_the_first_five_places():
    lists, _ = made()
    relevant, other = np.zeros((PLACES, len(KINDS))), np.zeros((PLACES, len(KINDS)))
    lifts = {"clicked": [2, 4, 6, 8, 10, 99, 99, 99, 99, 99], "dismissed": [0.5] * 10}
    for kind, lift in lifts.items():
        other[:, CODE[kind]], relevant[:, CODE[kind]] = 0.01, 0.01 * np.array(lift)
    nothing = np.zeros(lists.pairs.rows)
    acts = np.zeros((2, len(KINDS)))
    acts[0, CODE["clicked"]] = acts[1, CODE["dismissed"]] = 1
    own = PositionCounts.of(lists.pairs, np.array([0, 1]), np.array([0, 1]), np.ones(2), acts)
    found = Classes(nothing, nothing, relevant, other)
    assert found.strengths(own) == pytest.approx({"clicked": 6.0, "dismissed": 0.5})
    assert found.lift == pytest.approx(6.0)
