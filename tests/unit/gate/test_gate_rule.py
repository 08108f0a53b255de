"""The rule of the gate against hand computation, scipy, and the prototype's own formula."""

import math

import numpy as np
import pytest
from scipy import stats

from steelyard_eval.gate.rule import ALPHA, BUDGET, judge
from steelyard_eval.measures.paired import mean_interval

RNG = np.random.default_rng(0)


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

    assert found.p_worse == pytest.approx(stats.ttest_1samp(values, 0, alternative="less").pvalue, abs=1e-12)
    assert found.p_better == pytest.approx(stats.ttest_1samp(values, 0, alternative="greater").pvalue, abs=1e-12)


def test_the_bound_is_students_with_one_more_query_that_differed():
    values = differences(40, -0.01, 0.12)

    # sum of squares of 40 differences plus .35 squared, over 39 and 40 (docs/tuning.md)
    error = math.sqrt((39 * 0.12**2 + 0.35**2) / 39 / 40)
    assert judged(values).upper == pytest.approx(0.01 + stats.t.ppf(0.9, 39) * error, abs=1e-12)


@pytest.mark.parametrize(
    ("mean", "sd", "verdict", "reason"),
    [
        (-0.05, 0.10, "fail", "test"),  # t = -3.16
        (-0.009, 0.02, "pass", "budget"),  # t = -2.8, but the drop is too small to block
        (-0.036, 0.30, "inconclusive", "nothing"),  # t = -.76: a wide spread, and no limit of its own
        (-0.085, 0.30, "fail", "test"),  # t = -1.79, p = .041
        (-0.03, 0.1224, "inconclusive", "nothing"),  # t = -1.55, p = .065
        (-0.005, 0.10, "pass", "budget"),
        (0.10, 0.30, "pass", "better"),  # t = 2.1
    ],
)
def test_the_verdicts_by_hand(mean, sd, verdict, reason):
    found = judged(differences(40, mean, sd))

    assert (found.verdict, found.reason) == (verdict, reason)


@pytest.mark.parametrize("sd", [0.05, 0.2, 0.35])
@pytest.mark.parametrize("n", [40, 100, 300])
def test_changes_that_are_neither_better_nor_worse_are_blocked_in_six_percent_of_any_spread(sd, n):
    """Symmetric differences: 5% by the level of the test, and three standard errors of 4000 draws are 1%."""
    rng = np.random.default_rng([n, int(100 * sd)])

    assert np.mean([judged(row).fails for row in sd * rng.standard_normal((4000, n))]) < 0.06


@pytest.mark.parametrize(("sd", "verdict"), [(0.12, "fail"), (0.18, "inconclusive")])
def test_what_the_composite_loses_has_to_show_in_ndcg_too(sd, verdict):
    """t = -1.58 and -1.05 on nDCG@10, p = .061 and .149; the composite has t = -3.2."""
    assert judge(differences(40, -0.03, sd), differences(40, -0.05, 0.10)).verdict == verdict


def test_the_test_needs_a_drop_of_ndcg_as_well():
    composite = differences(40, -0.05, 0.10)

    # the composite falls clearly, and nDCG@10 does not
    found = judge(np.zeros(300), np.resize(differences(300, -0.012, 0.05), 300))
    assert found.p_worse < ALPHA
    assert found.verdict == "pass"
    assert judge(composite, composite).verdict == "fail"


@pytest.mark.parametrize(("sd", "verdict"), [(0.08, "fail"), (0.10, "inconclusive")])
def test_ndcg_alone_has_a_stricter_test(sd, verdict):
    """What is lost in front and gained in the depth: t = -2.37 and -1.90 on nDCG@10, p = .011 and .032."""
    found = judge(differences(40, -0.03, sd), np.zeros(40))

    assert found.verdict == verdict


def test_units_count_once():
    """40 queries in 8 conversations that move as one: Cochran's ratio estimator, 7 degrees of freedom."""
    sizes = [2, 9, 5, 3, 7, 4, 6, 4]
    unit = np.repeat(np.arange(8), sizes)
    effect = np.array([-0.2, 0.1, -0.3, 0.0, -0.1, 0.05, -0.25, -0.1])
    values = effect[unit]

    found = judged(values, unit)
    interval = mean_interval(values, unit.tolist(), level=0.9)

    error = (interval.high - interval.mean) / stats.t.ppf(0.95, 7)
    assert found.ndcg == pytest.approx(values.mean(), abs=1e-15)
    assert found.p_worse == pytest.approx(stats.t.cdf(values.mean() / error, 7), abs=1e-12)
    assert found.limit == pytest.approx(stats.t.ppf(0.95, 7) * error, abs=1e-12)


def test_units_of_one_query_are_queries():
    values = differences(30, -0.02, 0.1)

    alone, grouped = judged(values), judged(values, RNG.permutation(30))

    assert grouped.p_worse == pytest.approx(alone.p_worse, abs=1e-12)
    assert grouped.limit == pytest.approx(alone.limit, abs=1e-12)


@pytest.mark.parametrize("values", [[0.3], [-0.9]])
def test_a_single_query_proves_nothing(values):
    assert judged(values).verdict == "inconclusive"
    assert judged(values).p_worse == 1.0
    assert judged([0.0]).verdict == "inconclusive"


def test_queries_that_all_lose_the_same_are_worse():
    found = judged([-0.02] * 50)

    assert (found.p_worse, found.verdict) == (0.0, "fail")


def test_nothing_that_moved_passes_where_the_queries_suffice():
    assert judged(np.zeros(40)).verdict == "pass"
    # .35 * t(.9, 4) / sqrt(4 * 5) = .12: five queries cannot rule .04 out
    assert judged(np.zeros(5)).verdict == "inconclusive"


def test_the_budget_parts_pass_from_inconclusive_and_nothing_else():
    rows = np.array([differences(40, mean, 0.15, seed=at) for at, mean in enumerate(np.linspace(-0.1, 0.1, 40))])

    strict, loose = ([judged(row, budget=budget) for row in rows] for budget in (0.0, 0.2))

    assert [one.fails for one in strict] == [one.fails for one in loose]
    assert all(b.passes for a, b in zip(strict, loose, strict=True) if a.passes)
    assert any(b.passes and not a.passes for a, b in zip(strict, loose, strict=True))
    assert BUDGET == 0.04
