"""Parts of the learner beside the same quantities by hand, in closed form, or by a general solver."""

from dataclasses import replace

import numpy as np
import pytest
from made_world import made
from scipy.optimize import minimize

from steelyard_eval.learn.acts import CODE, KINDS
from steelyard_eval.learn.cells import Cells, joined
from steelyard_eval.learn.classes import Classes, fit
from steelyard_eval.learn.examination import Examination, joint
from steelyard_eval.learn.first_ten import PLACES
from steelyard_eval.learn.rivals import doubly_robust


def cells(lists, row, place, shown, clicks):
    acts = np.zeros((len(row), len(KINDS)))
    acts[:, CODE["clicked"]] = clicks
    return Cells.of(lists, *map(np.asarray, (row, place)), np.asarray(shown, dtype=float), acts)


def test_the_same_place_of_an_entry_is_counted_together_and_its_acts_are_shows_at_most():
    lists, _ = made()
    one = cells(lists, [30, 5999, 5], [9, 0, 2], [4, 1, 7], [1, 0, 7])
    both = joined([one, cells(lists, [30, 30], [9, 8], [6, 2], [8, 1])])

    for found in (both, joined([both])):
        assert found.row.tolist() == [5, 30, 30, 5999]
        assert found.place.tolist() == [2, 8, 9, 0]
        assert found.shown.tolist() == [7, 2, 10, 1]
        assert found.positive.tolist() == [7, 1, 7, 0]  # 8 acts in 6 shows are 6, and 1 more
        assert found.query.tolist() == [0, 1, 1, 239]  # 25 candidates a query
    assert cells(lists, [3, -1], [0, 0], [2, 1], [5, 1]).positive.tolist() == [2]


def test_queries_with_a_single_act_count_for_the_exponent():
    lists, _ = made()
    at = np.arange(3)
    rows = np.concatenate([lists.offsets[q] + at for q in range(40)])
    own = cells(lists, rows, np.tile(at, 40), np.full(120, 10), np.tile([1, 0, 0], 40))

    assert np.isfinite(joint(lists, own).error)


def test_the_regression_of_the_doubly_robust_rule_is_where_a_general_solver_arrives():
    """Poisson, with a prior of precision 1 on standardised slopes; of twenty rows one is acted upon, and often."""
    lists, _ = made()
    rng = np.random.default_rng(3)
    features = np.column_stack([np.arange(lists.rows) % 20 == 0, rng.random(lists.rows)]).astype(float)
    lists = replace(lists, features=features)
    shown = np.arange(400)
    acts = np.where(features[shown, 0] > 0, 36, rng.random(400) < 0.02)
    found = doubly_robust(
        lists, cells(lists, shown, 0 * shown, np.full(400, 40), acts), Examination(1.0, 0.1, "given")
    )

    own = features[shown]
    design = np.column_stack([np.ones(lists.rows), (features - own.mean(axis=0)) / own.std(axis=0)])

    def loss(b):
        rate = design[shown] @ b
        return (40 * np.exp(rate) - acts * rate).sum() + (b[1:] ** 2).sum() / 2

    best = minimize(loss, [-3.0, 0.0, 0.0], method="BFGS", options={"gtol": 1e-4}).x
    assert found[400:] == pytest.approx(np.minimum(np.exp(design @ best), 1)[400:], rel=1e-3)
    assert found[:400] == pytest.approx(acts / 40)  # shown often: corrected to what was seen


def test_an_entry_examined_less_than_three_tenths_of_once_is_corrected_as_if_it_were():
    lists, _ = made()
    steep = Examination(3.0, 0.1, "given")  # place 5 is examined 1 / 125 as often as the first
    rows, places, shown = [0, 1, 2, 3], [0, 0, 0, 4], [40, 40, 40, 1]
    one, none = (doubly_robust(lists, cells(lists, rows, places, shown, [4, 5, 6, n]), steep)[3] for n in (1, 0))

    assert steep.curve[4] == pytest.approx(1 / 125)
    assert one - none == pytest.approx(1 / 0.3, rel=0.05)  # but for what one act moves the model


def test_rates_of_a_place_without_shows_stay_where_the_exponent_puts_them():
    lists, _ = made()
    classes = fit(lists, cells(lists, range(60), [0, 1, 2] * 20, [30] * 60, [9, 1, 1] * 20), 2.0)
    kind = CODE["clicked"]

    for rates in (classes.relevant[:, kind], classes.other[:, kind]):
        assert rates[5] / rates[9] == pytest.approx((6 / 10) ** -2.0)
    assert (classes.relevant[3:, kind] / classes.other[3:, kind]).std() < 1e-9


def test_the_strength_of_an_act_is_its_lift_over_the_first_five_places():
    lists, _ = made()
    relevant, other = np.zeros((PLACES, len(KINDS))), np.zeros((PLACES, len(KINDS)))
    lifts = {"clicked": [2, 4, 6, 8, 10, 99, 99, 99, 99, 99], "dismissed": [0.5] * 10}
    for kind, lift in lifts.items():
        other[:, CODE[kind]], relevant[:, CODE[kind]] = 0.01, 0.01 * np.array(lift)
    nothing = np.zeros(lists.rows)
    acts = np.zeros((2, len(KINDS)))
    acts[0, CODE["clicked"]] = acts[1, CODE["dismissed"]] = 1
    own = Cells.of(lists, np.array([0, 1]), np.array([0, 1]), np.ones(2), acts)

    found = Classes(nothing, nothing, relevant, other)
    assert found.strengths(own) == pytest.approx({"clicked": 6.0, "dismissed": 0.5})
    assert found.lift == pytest.approx(6.0)
