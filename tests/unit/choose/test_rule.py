"""The choice rule against the published one, and against textbook formulas.

The prototype's own functions (NumPy and SciPy alone) are written out here as the reference.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st
from shared import tabled

from steelyard_eval.choose import rule
from steelyard_eval.choose.differences import Scored, SecondMeasurement, posterior
from steelyard_eval.choose.public import PriorGains, table_weight
from steelyard_eval.choose.rule import ALL_FAMILIES, Expectation, apply_rule, bound, folds, shrinkage_factor
from steelyard_eval.measures.spread import spread
from steelyard_eval.result.structs import Blocker


def reference(differences, mean=None, variance=None, collections=0):
    """Posterior mean and deviation as the published rule has them."""
    n = differences.shape[1]
    sample, spread = differences.mean(1), differences.var(1, ddof=1)
    if mean is None:
        return sample, np.maximum(np.sqrt(spread / n), 1e-6)
    worth = 10.0 * collections / (collections + 1)
    deviation = np.sqrt((n * spread + 10.0 * variance) / (n + 10.0) / (n + worth))
    return (n * sample + worth * mean) / (n + worth), np.maximum(deviation, 1e-6)


def reference_proven(metric, composite, tables=None):
    """The candidate of both gates, or None; `tables` holds mean and variance of both, and how many collections."""
    n = metric.shape[1]
    if tables is None:
        (mu, sd), (my, sy) = reference(composite), reference(metric)
        first, second = scipy.stats.t.ppf(1 - 0.005 / 5, n - 1), scipy.stats.t.ppf(1 - 0.05, n - 1)
    else:
        (me, ve, my_, vy, count) = tables
        (mu, sd), (my, sy) = reference(composite, me, ve, count), reference(metric, my_, vy, count)
        first, second = scipy.stats.norm.isf(0.005), scipy.stats.norm.isf(0.05)
    sure = (mu >= first * sd) & (my >= second * sy) & (mu > 0)
    return int(np.argmax(np.where(sure, mu, -np.inf))) if sure.any() else None


def proven(evidence):
    """The candidate with the greatest mean of the composite among those that pass both gates, or None."""
    passing = rule.passes_gates(evidence, ALL_FAMILIES)
    return int(np.argmax(np.where(passing, evidence.of_composite.mean, -np.inf))) if passing.any() else None


def expectation(rows, unseen=None, **how):
    """Of candidates' gains, which are alike in both values, and of gains out of fold where they are given."""
    rows = np.atleast_2d(rows)
    found = Expectation(Scored.of(rows, rows), **how)
    if unseen is not None:
        vars(found)["unseen"] = unseen
    return found


def drawn(seed, candidates=12, n=30):
    rng = np.random.default_rng(seed)
    level = rng.normal(0.03, 0.05, (candidates, 1))
    metric = rng.normal(level, 0.2, (candidates, n))
    return metric, metric * 0.8 + rng.normal(0, 0.02, metric.shape)


class TestRule:
    @settings(max_examples=120, deadline=None)
    @given(st.integers(0, 2**32), st.integers(0, 8))
    def test_without_a_table_and_with_one_the_choice_is_the_published_one(self, seed, collections):
        metric, composite = drawn(seed)
        if not collections:
            assert proven(Scored.of(metric, composite)) == reference_proven(metric, composite)
            return
        rng = np.random.default_rng([seed, 1])
        means = rng.normal(0.02, 0.03, (2, collections, 12))
        variances = rng.uniform(0.01, 0.06, (2, collections, 12))
        (me, my), (ve, vy) = means.mean(axis=1), variances.mean(axis=1)
        weight = table_weight(np.full(12, collections))
        found = proven(Scored.of(metric, composite, [PriorGains(my, vy, weight), PriorGains(me, ve, weight)]))
        assert found == reference_proven(metric, composite, (me, ve, my, vy, collections))

    def test_a_candidate_that_the_table_lacks_is_asked_for_students_t(self):
        _, composite = drawn(4, candidates=3)
        prior = PriorGains(np.array([0.02, 0, 0.01]), np.array([0.04, 0, 0.04]), table_weight(np.array([1, 0, 1])))
        found = posterior(spread(composite, np.arange(30)), prior)
        assert prior.effective_n.tolist() == [5.0, 0.0, 5.0]  # one collection of two halves of ten queries
        assert found.degrees.tolist() == [np.inf, 29, np.inf]
        assert found.mean[1] == pytest.approx(composite[1].mean())

    def test_harm_is_the_tail_below_zero_and_what_a_gate_lets_through_is_shrunk_by_its_own_t(self):
        row = np.array([0.1, 0.3, -0.1, 0.2, 0.4])
        found = posterior(spread(row[None], np.arange(5)), PriorGains.none(1))
        t = scipy.stats.ttest_1samp(row, 0, alternative="greater")
        assert found.p_loss()[0] == pytest.approx(t.pvalue, abs=1e-12)
        assert shrinkage_factor(row, np.arange(5)) == pytest.approx(1 - 1 / t.statistic**2)
        assert shrinkage_factor(-row, np.arange(5)) == 0.0

    def test_folds_keep_groups_whole_and_come_again(self):
        groups = np.repeat(np.arange(17), 3)
        found = np.array(list(folds(groups, 5)))
        assert all(len(set(part[groups == group])) == 1 for part in found for group in range(17))
        assert (found.reshape(6, 5, 51).sum(axis=1) == 1).all()  # six deals of five folds
        assert np.array_equal(found, list(folds(groups, 5)))
        assert not np.array_equal(found, list(folds(groups, 6)))

    def test_out_of_fold_no_query_is_judged_by_a_choice_that_saw_it(self):
        # Candidate q is right for query q alone: chosen on the others it always gains nothing where it is judged.
        evidence = Scored.of(np.eye(20), np.eye(20))
        assert rule.best(evidence.of_composite) is not None
        assert rule.gains_out_of_fold(evidence, 0).tolist() == [0.0] * 20
        assert apply_rule(Expectation(evidence), ALL_FAMILIES).verdict == "keep"

    def test_the_bound_is_the_largest_upper_end_and_never_below_zero(self):
        metric = np.array([[0.1, 0.2, 0.0, 0.1], [-0.5, -0.4, -0.6, -0.5]])
        ends = [
            scipy.stats.ttest_1samp(row, 0, alternative="less").confidence_interval(0.95).high for row in metric
        ]
        assert bound(Scored.of(metric, metric)) == pytest.approx(max(ends))
        assert bound(Scored.of(metric[1:], metric[1:])) == 0.0

    def test_a_likely_gain_is_worth_a_try_and_labels_that_prove_it_are_named(self):
        # Mean 0.05, sd 0.2 on 40 queries: t 1.58, harm about 6%; no gate lets it through.
        found = apply_rule(expectation(np.tile([0.25, -0.15], 20)), ALL_FAMILIES)
        assert (found.verdict, found.candidate) == ("try", 0)
        # Precisions 1 / (1.1 * .0320256)^2 = 805.8 of the sample and 1 / .07^2 = 204.1 of the prior: mean
        # (805.8 * .05 + 204.1 * .02) / 1009.9 = .04394, deviation .03147
        assert found.gain.mean == pytest.approx(0.04394, abs=1e-5)
        assert found.gain.worse == pytest.approx(scipy.stats.t.cdf(-0.04394 / 0.03147, 39), abs=1e-4)
        # The gate asks for t(39) at .001 = 3.313 standard errors: (3.313 * 0.2025 / 0.05)^2 = 180 queries in all.
        assert found.more == pytest.approx(140, abs=2)
        # One error, .20255 / sqrt(40) = .032026, more: (3.3128 * .20255 / .082026)^2 = 67 in all; one less: 1394
        assert found.more_range == pytest.approx((27, 1354), abs=2)

    @tabled
    def test_the_verdict_on_one_candidate_of_forty_queries(self, gains, unseen, gates, verdict):
        unseen = unseen and np.tile(unseen, 20)
        found = apply_rule(expectation(np.tile(gains, 20), unseen), replace(ALL_FAMILIES, **gates))
        assert found.verdict == verdict
        assert verdict != "try" or found.candidate == 0

    def test_what_folds_do_not_gain_passes_the_gates(self):
        assert rule.passes_gates(expectation(np.tile([0.25, 0.05], 20)).scored, ALL_FAMILIES).all()

    def test_the_best_of_the_likely_is_tried_where_the_best_of_all_is_not_likely(self):
        steady, wild = np.tile([0.25, -0.15], 20), np.tile([1.0, -0.88], 20)  # t 1.58 and .40, means .05 and .06
        found = apply_rule(expectation([steady, wild], steady), ALL_FAMILIES)  # folds could choose the other one
        assert (found.verdict, found.candidate) == ("try", 0)

    def test_what_is_expected_is_one_distribution_of_folds_table_posterior_and_what_is_usual(self):
        # The published formula, written out by itself; a table of three collections counts as 10 * 3 / 4 queries.
        rng = np.random.default_rng(3)
        own, unseen, units = rng.normal(0.1, 0.2, 30), rng.normal(0.05, 0.3, 30), np.repeat(np.arange(10), 3)
        own[:15] = 0.0  # it changes half of the queries, and 0.6 are usual
        table, variance, known = 0.08, 0.09, 7.5
        prior = PriorGains(np.array([table]), np.array([variance]), np.array([known]))
        expect = Expectation(Scored.of(own[None, :], own[None, :], (prior, prior), units), rule.OVER_SYSTEM)
        vars(expect)["unseen"] = unseen
        found = expect.of(0)

        def error(values):
            means = values.reshape(10, 3).mean(1)
            return np.sqrt((30 * 30 * means.var(ddof=1) / 10 + 10 * variance) / 40 / 30)

        posterior = (30 * own.mean() + known * table) / (30 + known)
        mean = 0.7 * (30 * unseen.mean() + known * table) / (30 + known) + 0.3 * posterior
        sample = (1.1 * max(error(own), error(unseen)) * np.sqrt(30 / (30 + known))) ** -2
        usual = (0.5 / 0.6 * 0.13) ** -2
        mean, deviation = (sample * mean + usual * 0.5 / 0.6 * 0.1) / (sample + usual), (sample + usual) ** -0.5
        expected = scipy.stats.t(10 - 1 + known, mean, deviation)
        assert found.mean == pytest.approx(mean)
        assert (found.low, found.high) == pytest.approx(expected.interval(0.95))
        assert found.worse == pytest.approx(expected.cdf(0))

    def test_nothing_ships_that_is_a_loss_in_one_of_ten_cases(self):
        # By its own row it passes any gate; what was chosen without each fold gains .04 with an error of .05.
        metric = np.tile([0.04, 0.06], 20)[None, :]
        expect = Expectation(Scored.of(metric, metric))
        vars(expect)["unseen"] = np.tile([0.356, -0.276], 20)
        found = apply_rule(expect, rule.Gates(0.02, 2.0))
        assert (found.verdict, found.candidate) == ("try", 0)
        assert found.gain.worse > 0.1

    def test_the_same_sum_on_another_scale_is_no_rival(self):
        metric = np.random.default_rng(0).normal(0.1, 0.1, 60)
        same, other = expectation(metric, same=lambda candidate: True), expectation(metric)
        assert [apply_rule(one, ALL_FAMILIES).verdict for one in (same, other)] == ["keep", "ship"]

    @tabled
    def test_labels_on_which_the_current_one_fails_move_nothing(self, key, facts, remedy, verdict):
        why = Blocker(key, facts, remedy)
        metric = np.random.default_rng(0).normal(0.1, 0.1, 60)
        found = apply_rule(expectation(metric), ALL_FAMILIES, lambda candidate: why)
        assert (found.verdict, found.blocker) == (verdict, why)

    def test_nothing_better_is_kept_with_a_bound(self):
        rng = np.random.default_rng(1)
        metric = rng.normal(-0.05, 0.1, (5, 50))
        found = apply_rule(Expectation(Scored.of(metric, metric)), ALL_FAMILIES)
        assert (found.verdict, found.candidate, found.gain.mean) == ("keep", None, 0.0)
        assert found.bound == bound(Scored.of(metric, metric))
        assert found.more == 150  # half as wide takes four times as many


# A second measurement, corrected by labels: worked by hand, unbiased whatever it follows, and covering


def joined(labels, every, at=None):
    """The first n of the N queries are labelled; every query is a group of its own."""
    at = np.arange(labels.shape[1]) if at is None else at
    second = SecondMeasurement.of(every, at, np.arange(len(at)), np.arange(every.shape[1]))
    return Scored.of(labels, labels, second=second)


class TestSecondMeasurement:
    def test_one_worked_by_hand(self):
        """Labels 0 1 2 3 4 and twice them by clicks, four others of mean 10 and squared error 20/3 / 4.

        The slope is 1/2, its correlation 1, so the share is 1/2 * 4 / (4 + 5) = 2/9. The mean of the labels, 2,
        moves by 2/9 * (10 - 4) to 10/3.
        """
        labels = np.arange(5.0)[None]
        every = np.concatenate([2 * labels, [[7.0, 9.0, 11.0, 13.0]]], axis=1)
        found = joined(labels, every)
        assert found.share == pytest.approx(2 / 9)
        assert found.of_metric.mean[0] == pytest.approx(2 + 2 / 9 * 6)
        # what is left of the labels: (1 - 4/9) of 0..4, whose variance is 2.5, over 5 queries; and 4/81 * 5/3
        assert found.of_metric.deviation[0] ** 2 == pytest.approx((5 / 9) ** 2 * 2.5 / 5 + (2 / 9) ** 2 * 5 / 3)

    def test_what_says_nothing_or_the_opposite_leaves_the_labels_alone(self):
        labels = np.random.default_rng(2).normal(0.1, 0.3, (3, 30))
        alone = Scored.of(labels, labels)
        for every in (np.zeros((3, 90)), np.concatenate([-labels, np.zeros((3, 60))], axis=1)):
            found = joined(labels, every)
            assert found.share == 0
            assert (found.of_metric.mean == alone.of_metric.mean).all()
            assert (found.of_metric.deviation == alone.of_metric.deviation).all()

    def test_queries_that_were_not_measured_count_as_they_are(self):
        """Of 30 labelled queries 10 were logged; others of the group of a labelled one are left out."""
        rng = np.random.default_rng(4)
        labels, every = rng.normal(0, 1, (2, 30)), rng.normal(0, 1, (2, 60))
        every[:, :10] = labels[:, 20:] + 0.1
        groups = np.arange(60)
        groups[10:15] = 3
        second = SecondMeasurement.of(every, np.arange(20, 30), np.arange(10), groups)
        found = Scored.of(labels, labels, second=second)
        assert second.others == 45
        assert second.mean == pytest.approx(every[:, 15:].mean(axis=1))
        assert (found.metric[:, :20] == labels[:, :20]).all()
        assert found.adjusted(1, labels[1]) == pytest.approx(found.metric[1])

    def test_too_little_beside_the_labels_is_no_measurement(self):
        every = np.zeros((1, 12))
        assert SecondMeasurement.of(every, np.arange(4), np.arange(4), np.arange(12)) is None
        assert SecondMeasurement.of(every, np.arange(11), np.arange(11), np.arange(12)) is None
        assert SecondMeasurement.of(every, np.arange(6), np.arange(6), np.repeat([0, 1], 6)) is None

    @pytest.mark.parametrize("fault", ["lenient", "lazy", "opposite", "follows another"])
    def test_whatever_it_follows_the_interval_covers(self, fault):
        # 400 draws of 40 judged queries of 200: 95% intervals cover 380 +- 3 * sqrt(400 * .95 * .05) = 13.
        covered = 0
        for seed in range(400):
            rng = np.random.default_rng([seed, 9])
            truth = rng.normal(0.05, 0.3, 200)
            second = {
                "lenient": truth * 0.5 + 0.2,
                "lazy": np.zeros(200),
                "opposite": -truth + 0.5,
                "follows another": rng.normal(0.3, 0.3, 200),
            }[fault]
            found = joined(truth[None, :40], second[None]).of_metric
            reach = scipy.stats.t.ppf(0.975, 39) * found.deviation[0]
            covered += abs(found.mean[0] - 0.05) <= reach
        assert 367 <= covered <= 396
