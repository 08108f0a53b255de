"""Bounds of floors, by hand and by scipy's own distributions."""

import numpy as np
import pytest
from scipy import stats

from steelyard.base.errors import ConfigError
from steelyard_eval.choose.find_floor import (
    Bound,
    Lists,
    errors_allowed,
    floor_for_all,
    floor_for_false,
    floor_for_lost,
)
from steelyard_eval.measures.paired import exact_interval


def lists(rows, unit=None):
    """Of [[(score, relevant), ...] of each query]; as a list shows them."""
    flat = [hit for own in rows for hit in own]
    return Lists(
        np.cumsum([0, *map(len, rows)]),
        np.array([score for score, _ in flat], dtype=float),
        np.array([relevant for _, relevant in flat], dtype=bool),
        np.arange(len(rows)) if unit is None else np.array(unit),
    )


def test_what_a_floor_loses():
    own = lists([[(0.9, True), (0.4, True), (0.3, False)], [(0.2, False)], [(0.5, True)]])
    # the first list loses none, one and both of its two; the second has nothing to lose; the third its only one
    assert own.lost(np.array([0.0, 0.5, 0.95])).tolist() == [[0.0, 0.5, 1.0], [0.0, 0.0, 1.0]]
    assert own.best.tolist() == [0.9, 0.2, 0.5]


def test_the_bound_is_students_on_the_mean_with_one_loss_added():
    rng = np.random.default_rng(0)
    own = lists([[(score, True)] for score in rng.uniform(size=60)])
    found = floor_for_lost(own, 0.2)
    lost = (own.score < found.floor).astype(float)
    by_hand = (lost.sum() + 1) / 61 + stats.t.ppf(0.9, 59) * lost.std(ddof=1) / np.sqrt(60)
    assert found.bound == pytest.approx(by_hand, abs=1e-12)
    assert found.bound <= 0.2
    assert found.queries == found.units == 60
    higher = own.score[own.score > found.floor].min()  # the next floor that is tried breaks the promise
    lost = (own.score < np.nextafter(higher, 2)).astype(float)
    assert (lost.sum() + 1) / 61 + stats.t.ppf(0.9, 59) * lost.std(ddof=1) / np.sqrt(60) > 0.2


def test_queries_that_vary_together_widen_the_bound():
    rng = np.random.default_rng(1)
    same = rng.uniform(size=20)
    rows = [[(score, True)] for score in np.repeat(same, 5)]
    apart = floor_for_lost(lists(rows), 0.2)
    together = floor_for_lost(lists(rows, np.repeat(np.arange(20), 5)), 0.2)
    assert together.floor < apart.floor
    assert (apart.units, together.units) == (100, 20)


def test_too_few_labels_are_refused_with_their_number():
    with pytest.raises(ConfigError, match=r"40 labelled.*39 do"):
        floor_for_lost(lists([[(0.5, True)]] * 39 + [[(0.5, False)]] * 10), 0.1)
    with pytest.raises(ConfigError, match=r"10 groups.*of 1;"):
        floor_for_lost(lists([[(0.5, True)]] * 50, [0] * 50), 0.1)


@pytest.mark.parametrize(("share", "needed"), [(0.1, 22), (0.05, 45), (0.2, 11)])
def test_so_many_questions_prove_a_share_of_false_answers(share, needed):
    # (1 - share) ** n <= 0.1, as the prototype's README has it: 22, 45 and 11
    assert errors_allowed(needed, share) == 0
    assert errors_allowed(needed - 1, share) == -1
    with pytest.raises(ConfigError, match=rf"needs {needed} queries.*there are {needed - 1}; mark 1 more"):
        floor_for_false(lists([[(at / 100, False)] for at in range(needed - 1)]), share)


def test_a_floor_for_false_answers_lies_just_above_an_order_statistic():
    best = np.arange(100) / 100.0
    found = floor_for_false(lists([[(score, False)] for score in best]), 0.1)
    allowed = max(k for k in range(100) if stats.binom.cdf(k, 100, 0.1) <= 0.1)
    assert int((best >= found.floor).sum()) == allowed
    assert found.bound <= 0.1


def test_questions_that_vary_together_are_one_for_false_answers():
    rows = [[(at / 100, False)] for at in range(60) for _ in range(2)]
    unit = np.repeat(np.arange(60), 2)
    found = floor_for_false(lists(rows, unit), 0.1)
    assert (found.queries, found.units) == (120, 60)
    assert found.floor == floor_for_false(lists(rows[::2]), 0.1).floor
    with pytest.raises(ConfigError, match="things; mark 1"):
        floor_for_false(lists(rows[:42], unit[:42]), 0.1)


def test_questions_whose_lists_are_empty_need_no_floor():
    found = floor_for_false(lists([[]] * 25 + [[(0.3, False)]]), 0.2)  # of 26, two errors are allowed
    assert found.floor == -np.inf
    assert floor_for_all({"false": found}) == -np.inf


@pytest.mark.parametrize(
    ("lost", "false", "chosen"),
    [
        (0.123456, None, 0.12345),  # a lower floor loses no more
        (None, 0.123456, 0.12346),  # a higher one answers no more
        (None, 0.30000000000000004, 0.30001),
        (0.3, 0.2, 0.3),
        (0.123458, 0.123451, 0.123458),  # no floor of five digits lies between
        (0.1, 0.2, None),
    ],
)
def test_a_floor_in_five_digits_keeps_its_promises(lost, false, chosen):
    given = {"lost": lost, "false": false}
    found = floor_for_all({name: Bound(floor, 0, 40, 40) for name, floor in given.items() if floor is not None})
    assert found == (None if chosen is None else pytest.approx(chosen, abs=1e-12))
    if found is not None:
        assert (false if false is not None else -1) <= found <= (lost if lost is not None else 1)


def test_exact_intervals_are_those_of_clopper_and_pearson():
    for errors, count in ((0, 22), (3, 50), (22, 22)):
        theirs = stats.binomtest(errors, count).proportion_ci(0.95, method="exact")
        assert exact_interval(errors, count) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
