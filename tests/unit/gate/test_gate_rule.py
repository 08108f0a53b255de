"""The rule of the gate against hand computation, scipy, and the prototype's own formula."""

import math

import numpy as np
import pytest
from scipy import stats
from shared import tabled

from steelyard_eval.gate.rule import ALPHA, BUDGET, FOLLOWS, TYPICAL, judge, power_of
from steelyard_eval.measures.paired import mean_interval
from steelyard_eval.result.structs import Answer, DataFacts, Provenance, Result
from steelyard_eval.views.frames import Gating


def judged(values, unit=None, budget=BUDGET):
    """The rule where A is nDCG@10."""
    values = np.asarray(values, dtype=np.float64)
    return judge(values, values, unit, budget)


def differences(n, mean, sd, moved=0.4, seed=0):
    """n differences of which a share moved, with exactly this mean and standard deviation."""
    rng = np.random.default_rng(seed)
    raw = np.where(rng.random(n) < moved, rng.standard_normal(n), 0.0)
    return (raw - raw.mean()) / raw.std(ddof=1) * sd + mean


@pytest.mark.parametrize("mean", [-0.05, -0.01, 0.0, 0.03])
@pytest.mark.parametrize("n", [12, 40, 300])
def test_the_test_is_scipys_one_sided_t_test(n, mean):
    values = differences(n, mean, 0.15)
    found = judged(values)
    tails = [stats.ttest_1samp(values, 0, alternative=side).pvalue for side in ("less", "greater")]
    assert [found.p_worse, found.p_better] == pytest.approx(tails, abs=1e-12)
    # the bound is Student's with one more query that differed (docs/evidence/tuning.md): the sum of squares of n
    # differences plus .35 squared, over n - 1 and n
    error = math.sqrt(((n - 1) * 0.15**2 + 0.35**2) / (n - 1) / n)
    assert found.upper == pytest.approx(stats.t.ppf(0.9, n - 1) * error - mean, abs=1e-12)


@tabled
def test_the_verdicts_by_hand(n, ndcg, composite, verdict, decided_by):
    found = judge(differences(n, *ndcg), differences(n, *(composite or ndcg)))
    assert (found.verdict, found.decided_by) == (verdict, decided_by)


@pytest.mark.parametrize("sd", [0.05, 0.2, 0.35])
@pytest.mark.parametrize("n", [40, 100, 300])
def test_changes_that_are_neither_better_nor_worse_are_blocked_in_six_percent_of_any_spread(sd, n):
    """Symmetric differences: 5% by the level of the test, and three standard errors of 4000 draws are 1%."""
    rng = np.random.default_rng([n, int(100 * sd)])
    assert np.mean([judged(row).fails for row in sd * rng.standard_normal((4000, n))]) < 0.06


def test_units_count_once():
    """40 queries in 8 conversations that move as one: Cochran's ratio estimator, 7 degrees of freedom."""
    unit = np.repeat(np.arange(8), [2, 9, 5, 3, 7, 4, 6, 4])
    values = np.array([-0.2, 0.1, -0.3, 0.0, -0.1, 0.05, -0.25, -0.1])[unit]
    found = judged(values, unit)
    interval = mean_interval(values, unit.tolist(), level=0.9)
    error = (interval.high - interval.mean) / stats.t.ppf(0.95, 7)
    assert found.ndcg == pytest.approx(values.mean(), abs=1e-15)
    assert found.p_worse == pytest.approx(stats.t.cdf(values.mean() / error, 7), abs=1e-12)
    assert found.limit == pytest.approx(stats.t.ppf(0.95, 7) * error, abs=1e-12)


@pytest.mark.parametrize("value", [0.3, -0.9, 0.0])
def test_a_single_query_proves_nothing(value):
    assert (judged([value]).verdict, judged([value]).p_worse) == ("inconclusive", 1.0)


def test_the_budget_parts_pass_from_inconclusive_and_nothing_else():
    rows = [differences(40, mean, 0.15, seed=at) for at, mean in enumerate(np.linspace(-0.1, 0.1, 40))]
    pairs = [tuple(judged(row, budget=budget) for budget in (0.0, 0.2)) for row in rows]
    assert all(strict.fails == loose.fails and strict.passes <= loose.passes for strict, loose in pairs)
    assert any(loose.passes and not strict.passes for strict, loose in pairs)
    assert BUDGET == 0.04


# The power of the gate in closed form, against simulation of its rule and scipy's noncentral t


def still(n, unit=None):
    """What the rule finds where nothing changed."""
    return judge(np.zeros(n), np.zeros(n), unit)


def spread(n, ndcg, composite):
    """What the rule finds of differences without a mean and with exactly these standard deviations."""
    raw = np.random.default_rng(n).standard_normal(n)
    raw = (raw - raw.mean()) / raw.std(ddof=1)
    return judge(ndcg * raw, composite * raw)


@tabled
def test_it_is_how_often_the_rule_fails_simulated_drops(n, errors, together):
    """Normal differences of which nDCG@10 and A correlate as on real collections; 4000 draws err by .008."""
    (ndcg, composite), rng = errors or TYPICAL, np.random.default_rng(n)
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
    expected = stats.nct.cdf(stats.t.ppf(0.05, 59), 59, -0.05 / (0.25 / math.sqrt(60)))
    assert found.detection_rate == pytest.approx(expected, abs=1e-9)


def test_more_queries_catch_more_and_few_leave_it_asleep():
    caught = [power_of(still(n), 0.04, deep=True) for n in (8, 20, 60, 200, 100_000)]
    assert [one.detection_rate for one in caught] == sorted(one.detection_rate for one in caught)
    assert [one.low for one in caught] == [True, True, False, False, False]
    # of so many the drop that is not blocked, .01, is far beyond the error
    assert caught[-1].detection_rate == pytest.approx(1.0)
    assert caught[-1].false_alarms == pytest.approx(0.0, abs=1e-9)
    single = power_of(still(30, np.zeros(30, dtype=int)), 0.04, deep=True)
    assert (single.detection_rate, single.false_alarms, single.low) == (0.0, 0.0, True)
    # a change that moved hardly anything has the power of a typical one
    tiny = np.zeros(50)
    tiny[0] = -0.01
    assert power_of(judge(tiny, tiny), 0.04, deep=True) == power_of(still(50), 0.04, deep=True)


# What a gate tells the shell: the codes of docs/gate.md


@tabled
def test_each_verdict_has_its_exit_code(verdict, code, strict):
    about = Provenance("steelyard", DataFacts("mine"))
    found = Gating(Result("gate", Answer(verdict), about))
    assert (found.exit_code(), found.exit_code(strict=True)) == (code, strict)
