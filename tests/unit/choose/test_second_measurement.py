"""A second measurement, corrected by labels: worked by hand, unbiased whatever it follows, and covering."""

import numpy as np
import pytest
from scipy.stats import t as student

from steelyard_eval.choose.differences import Scored, SecondMeasurement


def joined(labels, every, at=None):
    """The first n of the N queries are labelled; every query is a group of its own."""
    at = np.arange(labels.shape[1]) if at is None else at
    second = SecondMeasurement.of(every, at, np.arange(len(at)), np.arange(every.shape[1]))
    return Scored.of(labels, labels, second=second)


def test_one_worked_by_hand():
    """Labels 0 1 2 3 4 and twice them by clicks, four others of mean 10 and squared error 20/3 / 4.

    The slope is 1/2, its correlation 1, so the share is 1/2 * 4 / (4 + 5) = 2/9. The mean of the labels, 2, moves
    by 2/9 * (10 - 4) to 10/3.
    """
    labels = np.arange(5.0)[None]
    every = np.concatenate([2 * labels, [[7.0, 9.0, 11.0, 13.0]]], axis=1)
    found = joined(labels, every)
    assert found.share == pytest.approx(2 / 9)
    assert found.of_metric.mean[0] == pytest.approx(2 + 2 / 9 * 6)
    # what is left of the labels: (1 - 4/9) of 0..4, whose variance is 2.5, over 5 queries; and 4/81 * 5/3
    assert found.of_metric.deviation[0] ** 2 == pytest.approx((5 / 9) ** 2 * 2.5 / 5 + (2 / 9) ** 2 * 5 / 3)


def test_what_says_nothing_or_the_opposite_leaves_the_labels_alone():
    labels = np.random.default_rng(2).normal(0.1, 0.3, (3, 30))
    alone = Scored.of(labels, labels)
    for every in (np.zeros((3, 90)), np.concatenate([-labels, np.zeros((3, 60))], axis=1)):
        found = joined(labels, every)
        assert found.share == 0
        assert (found.of_metric.mean == alone.of_metric.mean).all()
        assert (found.of_metric.deviation == alone.of_metric.deviation).all()


def test_what_is_right_leaves_the_error_of_all_queries():
    every = np.random.default_rng(3).normal(0.1, 0.3, (1, 400))
    found = joined(every[:, :40], every)
    assert found.of_metric.mean[0] == pytest.approx(every.mean(), abs=1e-3)
    assert found.of_metric.deviation[0] == pytest.approx(every.std(ddof=1) / np.sqrt(400), rel=0.1)


def test_queries_that_were_not_measured_count_as_they_are():
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


def test_too_little_beside_the_labels_is_no_measurement():
    every = np.zeros((1, 12))
    assert SecondMeasurement.of(every, np.arange(4), np.arange(4), np.arange(12)) is None
    assert SecondMeasurement.of(every, np.arange(11), np.arange(11), np.arange(12)) is None
    assert SecondMeasurement.of(every, np.arange(6), np.arange(6), np.repeat([0, 1], 6)) is None


@pytest.mark.parametrize("fault", ["lenient", "lazy", "opposite", "follows another"])
def test_whatever_it_follows_the_interval_covers(fault):
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
        reach = student.ppf(0.975, 39) * found.deviation[0]
        covered += abs(found.mean[0] - 0.05) <= reach
    assert 367 <= covered <= 396
