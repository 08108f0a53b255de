"""Expected values come from scipy.stats, full enumeration by hand, and textbook examples."""

import itertools
import math
from math import sqrt

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard_eval.measures.paired import difference_interval, mean_interval, paired, verdict
from steelyard_eval.measures.spread import BLOCK, Interval, benjamini_hochberg, by_unit, holm, spread


def compared(challenger, baseline, groups=None, **more):
    return paired({"": challenger}, baseline, groups, **more)[""]


# In 2**-20ths, so that sums are exact: scipy counts ties with the mean without tolerance.
SKEWED = np.round(np.random.default_rng(7).beta(0.4, 1.6, size=60) * 2**20) / 2**20


@pytest.mark.parametrize("n", [2, 20, 60])
@pytest.mark.parametrize("level", [0.90, 0.95])
def test_interval_equals_scipys_t_interval(n, level):
    found = mean_interval(SKEWED[:n], level=level)
    theirs = scipy.stats.ttest_1samp(SKEWED[:n], 0).confidence_interval(level)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert found.mean == pytest.approx(SKEWED[:n].mean())


def test_grouped_interval_of_equal_groups_is_that_of_their_means():
    # With m queries in each group the ratio estimator is the plain mean of the group means.
    values = SKEWED.reshape(12, 5)
    theirs = scipy.stats.ttest_1samp(values.mean(axis=1), 0).confidence_interval()
    found = mean_interval(SKEWED, np.repeat(np.arange(12), 5).tolist())
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_grouped_interval_of_unequal_groups_by_hand():
    # Sums 0.6, 0.2, 0.7 of 2, 1, 2 queries: ratio 0.3; residuals 0, -0.1, 0.1; mean size 5/3; variance of the
    # pulls (0.0036 + 0.0036) / 2 = 0.0036; standard error 0.06 / sqrt(3); t(2) at 97.5% is 4.302653.
    found = mean_interval([0.5, 0.1, 0.2, 0.3, 0.4], list("aabcc"))
    assert found.mean == pytest.approx(0.3)
    assert found.high - found.mean == pytest.approx(4.302653 * 0.06 / math.sqrt(3), rel=1e-6)


def test_where_nothing_differs_the_interval_is_what_one_more_query_may_show():
    # Four zeros: the sum of squares is 0.65^2, so the standard error is sqrt(0.4225 / 3 / 4); t(3) is 3.182446.
    found = difference_interval([0.0] * 4)
    assert (found.mean, found.high) == (0, pytest.approx(3.182446 * math.sqrt(0.4225 / 12), rel=1e-6))
    assert found.low == -found.high


def test_the_more_queries_differ_the_less_an_unseen_one_counts():
    # Differences 0.5, -0.5, 0.5, -0.5: squares 1; four that differ, so 0.4225 / sqrt(5) more.
    found = difference_interval([0.5, -0.5, 0.5, -0.5])
    assert found.high == pytest.approx(3.182446 * math.sqrt((1 + 0.4225 / math.sqrt(5)) / 12), rel=1e-6)
    assert difference_interval(SKEWED).high == pytest.approx(mean_interval(SKEWED).high, rel=5e-3)
    assert compared(SKEWED, np.zeros(60)).gain.high == difference_interval(SKEWED).high


def test_groups_that_differ_are_counted():
    # Sums 0.4, 0, 0 of 2 queries each: pulls 4/30, -2/30, -2/30 of mean size 2 around a mean of 2/30; squares
    # 6 * (2/30)^2 = 8/300; one differs, so (0.65 / 2)^2 / sqrt(2) more; t(2) at 97.5% is 4.302653.
    found = difference_interval([0.1, 0.3, 0.0, 0.0, 0.0, 0.0], list("aabbcc"))
    squares = 8 / 300 + 0.325**2 / math.sqrt(2)
    assert found.high - found.mean == pytest.approx(4.302653 * math.sqrt(squares / 6), rel=1e-6)


def test_a_query_without_a_group_stands_alone():
    values = [0.1, 0.5, 0.9, 0.3]
    assert mean_interval(values, [None] * 4) == mean_interval(values)
    assert mean_interval(values, ["a", None, "a", None]) == mean_interval(values, [0, 1, 0, 2])


@pytest.mark.parametrize(
    ("values", "groups"),
    [([0.3], None), ([0.3, 0.1], ["a", "a"]), ([0.1] * 7, None), ([0, 1, 1, 0], ["a", "a", "b", "b"])],
)
def test_degenerate_intervals_are_points(values, groups):
    mean = pytest.approx(np.mean(values))
    found = mean_interval(values, groups)  # warnings are errors here
    assert found == Interval(found.mean, found.mean, found.mean)
    assert found.mean == mean


@pytest.mark.parametrize("values", [[], [[0.1]], [0.1, float("nan")], [math.inf]])
def test_values_must_be_finite_and_one_a_query(values):
    with pytest.raises(ValueError, match="finite value per"):
        mean_interval(values)


def enumerated(sums):
    """Every sign pattern, added up one by one."""
    totals = [
        abs(sum(s * v for s, v in zip(signs, sums, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(sums))
    ]
    return sum(total >= abs(sum(sums)) - 1e-9 for total in totals) / len(totals)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([-0.3, -0.1, 0.0, 0.1, 0.2, 0.7]), min_size=1, max_size=10))
def test_small_tests_are_exact(differences):
    zeros = np.zeros(len(differences))
    assert compared(differences, zeros, draws=1024).p == enumerated(differences)


def test_exact_test_equals_scipys_permutation_test():
    differences = np.array([0.31, -0.12, 0.22, 0.08, 0.45, -0.05, 0.19, 0.27])
    theirs = scipy.stats.permutation_test(
        (differences,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert compared(differences, np.zeros(8)).p == pytest.approx(theirs.pvalue, abs=1e-15)


def test_sampled_test_agrees_with_the_exact_one():
    differences = np.random.default_rng(3).normal(0.2, 0.5, size=16)
    exact = compared(differences, np.zeros(16), draws=2**16).p
    sampled = compared(differences, np.zeros(16), draws=2**16 - 1).p
    assert exact == enumerated(differences)
    assert sampled != exact
    assert sampled == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / 2**16))


def test_sampled_p_is_never_zero():
    # 30 wins of 30: no random pattern reaches them, so p = (0 + 1) / (999 + 1).
    assert compared(np.ones(30), np.zeros(30), draws=999).p == 1 / 1000


def test_test_flips_whole_groups():
    differences, groups = [0.2, 0.1, 0.3, -0.1, 0.2, 0.4], list("aabbcc")
    assert compared(differences, np.zeros(6), groups).p == enumerated([0.3, 0.2, 0.6]) == 2 / 8


def test_sampled_test_keeps_its_level():
    rng = np.random.default_rng(11)
    rejected = sum(compared(rng.normal(size=25), np.zeros(25), draws=399).p <= 0.05 for _ in range(400))
    assert 7 <= rejected <= 35  # 20 expected, binomial sd 4.4


def test_wins_ties_and_losses_count_queries():
    found = compared([0.5, 0.3 + 1e-13, 0.2, 0.9], [0.1, 0.3, 0.4, 0.8], ["a", "a", "b", "b"])
    assert (found.wins, found.ties, found.losses) == (2, 1, 1)
    assert found.gain.mean == pytest.approx(0.3 / 4)


def test_smallest_effect_and_queries_needed():
    # Differences -1, 0, 1, 2: mean 0.5, sd sqrt(5/3), z sum 1.959964 + 0.841621 = 2.801585.
    found = compared([-1, 0, 1, 2], [0, 0, 0, 0])
    assert found.detectable == pytest.approx(2.801585 * math.sqrt(5 / 3) / 2, rel=1e-6)
    assert found.needed == math.ceil(2.801585**2 * (5 / 3) / 0.25) == 53


def test_a_number_of_queries_that_nobody_labels_is_not_told():
    # Differences -1, 0, 1, 2, whose mean is 0.5, less 0.499 and 0.48: 13.08 / 0.001**2 is 13 million.
    assert compared(np.array([-1, 0, 1, 2]) - 0.499, np.zeros(4)).needed is None
    assert compared(np.array([-1, 0, 1, 2]) - 0.48, np.zeros(4)).needed == math.ceil(
        2.801585**2 * (5 / 3) / 0.02**2
    )


def test_power_counts_groups():
    # Each difference twice in a group: the same units, twice the queries.
    found = compared(np.repeat([-1, 0, 1, 2], 2), np.zeros(8), list("aabbccdd"))
    assert found.detectable == pytest.approx(2.801585 * math.sqrt(5 / 3) / 2, rel=1e-6)
    assert found.needed == 106


def test_detectable_effect_is_detected_four_times_in_five():
    rng = np.random.default_rng(5)
    pilot = rng.normal(size=50)
    effect = compared((pilot - pilot.mean()) / pilot.std(ddof=1), np.zeros(50)).detectable  # for sd 1
    samples = rng.normal(effect, 1.0, size=(300, 50))
    found = sum(compared(row, np.zeros(50), draws=499).p <= 0.05 for row in samples)
    assert 216 <= found <= 264  # 240 expected, binomial sd 6.9


def test_equal_systems_do_not_differ():
    many = np.tile(SKEWED, 2)
    found = compared(many, many)
    assert (found.gain.mean, found.gain.low, found.p, found.ties) == (0, -found.gain.high, 1, 120)
    assert (found.detectable, found.needed, found.verdict) == (0, None, "same")


def test_one_unit_resolves_nothing():
    found = compared([0.5, 0.5], [0.5, 0.49], ["a", "a"])
    assert (found.gain.low, found.gain.high, found.p) == (None, None, 1)
    assert (found.detectable, found.needed, found.verdict) == (None, None, "open")


@pytest.mark.parametrize(
    ("gain", "p_holm", "expected"),
    [
        ((0.1, 0.02, 0.2), 0.049, "better"),
        ((-0.1, -0.2, -0.02), 0.01, "worse"),
        ((0.1, 0.02, 0.2), 0.05, "open"),
        ((0.1, -0.001, 0.2), 0.01, "open"),
        ((0.0, -0.02, 0.02), 0.9, "same"),
        ((0.0, -0.021, 0.02), 0.9, "open"),
        ((0.01, 0.005, 0.015), 0.01, "better"),  # small, but there
    ],
)
def test_verdicts(gain, p_holm, expected):
    assert verdict(Interval(*gain), p_holm, 0.1) == expected


def test_holm_on_the_textbook_example():
    # p = 0.005, 0.011, 0.02, 0.04, 0.13 (sorted): times 5, 4, 3, 2, 1 = 0.025, 0.044, 0.06, 0.08, 0.13.
    assert holm([0.02, 0.005, 0.13, 0.04, 0.011]) == pytest.approx([0.06, 0.025, 0.13, 0.08, 0.044])
    # Steps never go down: 0.01, 0.03, 0.031 times 3, 2, 1 = 0.03, 0.06, 0.031 -> 0.06; and stop at 1.
    assert holm([0.01, 0.03, 0.031]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])
    assert holm([]).size == 0


def test_benjamini_hochberg_on_the_original_example():
    # Benjamini & Hochberg 1995, section 4.1: 15 comparisons, 4 discoveries at 0.05, where Bonferroni has 3.
    ps = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]  # fmt: skip  # noqa: E501 -- one list of the paper on one line
    found = benjamini_hochberg(ps)
    assert (found <= 0.05).sum() == 4
    assert found[3] == pytest.approx(0.0095 * 15 / 4)
    assert benjamini_hochberg([]).size == 0


def test_challengers_are_corrected_together():
    rng = np.random.default_rng(9)
    base = rng.random(40)
    challengers = {f"c{i}": base + rng.normal(shift, 0.2, 40) for i, shift in enumerate((0.0, 0.08, 0.12))}
    found = paired(challengers, base, draws=2000, seed=4)
    alone = {name: compared(values, base, draws=2000, seed=4) for name, values in challengers.items()}
    corrected = holm([c.p for c in alone.values()])
    assert list(found) == list(challengers)
    for (name, joint), p in zip(found.items(), corrected, strict=True):
        of = alone[name]
        gain = Interval(of.gain.mean, of.gain.low, of.gain.high)
        assert (joint.gain, joint.p, joint.p_holm) == (of.gain, of.p, p)
        assert joint.verdict == verdict(gain, p, of.detectable)
    assert paired({}, base) == {}


def test_correction_can_take_a_verdict_back():
    # Six wins of six: two of 64 patterns are as extreme, and two challengers double that.
    wins = np.array([0.2, 0.3, 0.25, 0.4, 0.35, 0.3])
    found = paired({"good": wins, "copy": wins}, np.zeros(6))
    assert compared(wins, np.zeros(6)).verdict == "better"
    assert [(c.p, c.p_holm, c.verdict) for c in found.values()] == [(2 / 64, 4 / 64, "open")] * 2


def test_a_difference_that_holm_leaves_open_says_why():
    # Six wins of six: p = 2 / 64 = .031 alone, twice that beside another; the interval is far from 0.
    one = [0.5, 0.6, 0.4, 0.5, 0.6, 0.4]
    found = paired({"a": one, "b": one}, [0.0] * 6)["a"]

    assert (found.verdict, found.gain.low > 0) == ("open", True)
    assert (found.why.key, found.why.facts) == ("p_proves_nothing", {"p": 2 / 64, "p_holm": 4 / 64, "tried": 2})
    assert paired({"a": one}, [0.0] * 6)["a"].why is None


@st.composite
def grouped(draw):
    """Values float64[3, n] and the numbers of their units, in any order and with gaps."""
    names = draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=12, unique=True))
    distinct = draw(st.booleans())
    size = len(names) if distinct else draw(st.integers(1, 20))
    units = names if distinct else draw(st.lists(st.sampled_from(names), min_size=size, max_size=size))
    values = draw(st.lists(st.integers(-8, 8), min_size=3 * size, max_size=3 * size))
    return np.array(values).reshape(3, size) / 8, units


@given(grouped())
def test_the_error_is_that_of_a_ratio_of_sums_to_counts(case):
    """Cochran 6.3 in plain Python: the squared residuals of the units' sums, less one degree, over the queries."""
    values, units = case
    found = spread(values, np.array(units))
    members = [[at for at, unit in enumerate(units) if unit == one] for one in set(units)]

    assert (found.queries, found.units) == (len(units), len(members))
    for row, own in enumerate(values.tolist()):
        mean = sum(own) / len(own)
        residuals = [sum(own[at] for at in places) - mean * len(places) for places in members]
        assert found.mean[row] == pytest.approx(mean, abs=1e-15)
        if len(members) == 1:
            assert found.error[row] == np.inf
            continue
        variance = sum(one**2 for one in residuals) * len(members) / (len(members) - 1) / len(own) ** 2
        assert found.error[row] == pytest.approx(sqrt(variance), abs=1e-15)


def test_without_units_it_is_the_standard_error_of_the_mean():
    values = np.random.default_rng(3).normal(size=(BLOCK + 2, 9)).astype(np.float32)
    found = spread(values)

    assert found.error == pytest.approx(scipy.stats.sem(values.astype(np.float64), axis=1))
    assert float(spread(values[0]).error) == pytest.approx(found.error[0])


def test_sums_are_in_the_order_of_the_numbers_of_units_and_of_queries_where_each_is_its_own():
    assert [part.tolist() for part in by_unit(np.array([1.0, 2.0, 4.0]), np.array([7, 2, 7]))] == [
        [2.0, 5.0],
        [1, 2],
    ]
    assert by_unit(np.array([1.0, 2.0]), np.array([9, 3]))[0].tolist() == [1.0, 2.0]
