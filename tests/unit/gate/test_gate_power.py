"""The power of the gate in closed form, against simulation of its rule and scipy's noncentral t."""

import math

import numpy as np
import pytest
from scipy import stats

from steelyard_eval.gate.rule import ALPHA, FOLLOWS, TYPICAL, judge, power_of


def still(n, unit=None):
    """What the rule finds where nothing changed."""
    return judge(np.zeros(n), np.zeros(n), unit)


def spread(n, ndcg, composite):
    """What the rule finds of differences without a mean and with exactly these standard deviations."""
    raw = np.random.default_rng(n).standard_normal(n)
    raw = (raw - raw.mean()) / raw.std(ddof=1)
    return judge(ndcg * raw, composite * raw)


@pytest.mark.parametrize(
    ("n", "ndcg", "composite", "together"),
    [
        (40, *TYPICAL, 0.9),
        (40, 0.3, 0.24, 0.95),
        (100, *TYPICAL, 0.9),
        (100, 0.3, 0.25, 0.95),
        (12, *TYPICAL, 0.9),
    ],
)
def test_it_is_how_often_the_rule_fails_simulated_drops(n, ndcg, composite, together):
    """Normal differences of which nDCG@10 and A correlate as on real collections; 4000 draws err by .008."""
    rng = np.random.default_rng(n)
    front = rng.standard_normal((4000, n))
    whole = together * front + math.sqrt(1 - together**2) * rng.standard_normal((4000, n))

    def share(drop):
        pairs = zip(ndcg * front - drop, composite * whole - FOLLOWS * drop, strict=True)
        return np.mean([judge(*pair).fails for pair in pairs])

    for drop in (0.03, 0.06):
        said = power_of(spread(n, ndcg, composite), drop, deep=True)
        assert said.detection_rate == pytest.approx(share(drop), abs=0.05)
    assert said.false_alarms == pytest.approx(share(0.0), abs=0.02)
    assert said.false_alarms <= ALPHA + 1e-9


def test_of_lists_that_end_at_ten_it_is_that_of_students_test():
    found = power_of(spread(60, 0.25, 0.25), 0.05, deep=False)

    t = stats.t.ppf(0.05, 59)
    assert found.detection_rate == pytest.approx(stats.nct.cdf(t, 59, -0.05 / (0.25 / math.sqrt(60))), abs=1e-9)


def test_a_change_that_moved_hardly_anything_has_the_power_of_a_typical_one():
    tiny = np.zeros(50)
    tiny[0] = -0.01

    assert power_of(judge(tiny, tiny), 0.04, deep=True) == power_of(still(50), 0.04, deep=True)


def test_more_queries_catch_more_and_few_leave_it_asleep():
    caught = [power_of(still(n), 0.04, deep=True) for n in (8, 20, 60, 200, 100_000)]

    assert [one.detection_rate for one in caught] == sorted(one.detection_rate for one in caught)
    assert [one.low for one in caught] == [True, True, False, False, False]
    assert caught[-1].detection_rate == pytest.approx(1.0)
    # of so many the drop that is not blocked, .01, is far beyond the error
    assert caught[-1].false_alarms == pytest.approx(0.0, abs=1e-9)


def test_a_single_unit_catches_nothing():
    found = power_of(still(30, np.zeros(30, dtype=int)), 0.04, deep=True)

    assert (found.detection_rate, found.false_alarms, found.low) == (0.0, 0.0, True)
