"""What other weights would have been worth, by the probabilities that a log of our own has."""

from types import SimpleNamespace

import numpy as np
import pytest
from made_world import cells_of, made
from simulator import probabilities, simulate

from steelyard.memory.query import Query
from steelyard_eval.learn.acts import POSITIVE
from steelyard_eval.learn.case import _asked
from steelyard_eval.learn.logged import Weighed, _rewards, valued

SHARE = 0.3


def weighed(sessions, chance):
    """The shows of sessions, each by itself."""
    query, place = np.repeat(sessions.query, 10), np.tile(np.arange(10), len(sessions))
    p, y = chance.ravel(), sessions.acted.ravel().astype(float)
    return Weighed(query, place, sessions.row.ravel(), np.ones(len(p)), 1 / p, 1 / p**2, y / p, y / p**2)


def logged(seed, sessions=2000):
    lists, grades = made()
    rng = np.random.default_rng(seed)
    found = simulate(lists, grades, 0, "pbm", sessions, rng, zipf=0.0, explore="mix", share=SHARE)
    return lists, found, weighed(found, probabilities(lists, found, 0, SHARE))


def test_few_queries_are_asked_often():
    """By Zipf's law the n-th of N queries is asked 1 / n as often as the first, that in 1 / H(N) of all."""
    lists, grades = made()
    found = simulate(lists, grades, 0, "pbm", 20_000, np.random.default_rng(1), zipf=1.0)
    often = np.sort(np.bincount(found.query))[::-1] / 20_000
    count = len(lists.pairs.queries)
    assert often[:3] == pytest.approx(1 / np.arange(1, 4) / sum(1 / n for n in range(1, count + 1)), rel=0.1)


def test_two_shows_by_hand():
    """Shown with 1/2 and acted upon, and shown with 1/4 and not, where the candidate has the first alone.

    IPS (2 + 0) / 2, SNIPS 2 / 2, weights of mean 1 worth 2^2 / 4 shows.
    """
    lists, found, _ = logged(0, 50)
    own = int(lists.top[5, 0, 0])
    other = next(row for row in range(int(lists.pairs.offsets[1])) if row != own)
    p, y = np.array([0.5, 0.25]), np.array([1.0, 0.0])
    first = np.zeros(2, dtype=np.int64)
    shown = Weighed(first, first, np.array([own, other]), np.ones(2), 1 / p, 1 / p**2, y / p, y / p**2)
    value = valued(lists.pairs, cells_of(found, lists), shown, lists.top[5], "", 1.0)
    assert (value["ips"]["value"], value["snips"]["value"], value["effective"]) == pytest.approx((1.0, 1.0, 1.0))
    assert (value["mean_weight"], value["largest"]) == pytest.approx((1.0, 2.0))
    assert "worth 1, and 100 are needed" in value["refusal"]


def test_the_interval_of_snips_by_hand():
    """Shown with 1/2 and acted upon, and with 1/4 and not: weights 2 and 4, so the value is 2 / 6.

    Its variance is the sum of (weight * (act - value))^2 over the square of the sum of weights: 2 * 16/9 / 36.
    """
    lists, found, _ = logged(0, 50)
    own = int(lists.top[5, 0, 0])
    p, y, first = np.array([0.5, 0.25]), np.array([1.0, 0.0]), np.zeros(2, dtype=np.int64)
    shown = Weighed(first, first, np.array([own, own]), np.ones(2), 1 / p, 1 / p**2, y / p, y / p**2)
    value = valued(lists.pairs, cells_of(found, lists), shown, lists.top[5], "", 1.0)
    half = 1.959964 * np.sqrt(32 / 9 / 36)
    assert (value["snips"]["low"], value["snips"]["high"]) == pytest.approx((1 / 3 - half, 1 / 3 + half), abs=1e-4)


def test_probabilities_are_shares_of_the_lists_that_could_be_shown():
    lists, found, _ = logged(1)
    chance = probabilities(lists, found, 0, SHARE)
    for session in range(20):
        for place in range(10):
            same = [top[found.query[session], place] == found.row[session, place] for top in lists.top]
            assert chance[session, place] == pytest.approx((1 - SHARE) * same[0] + SHARE * np.mean(same))


def test_all_three_estimates_are_unbiased_and_the_model_narrows_the_interval():
    """The truth: acts per show where the candidate ranks every list, by the same click model."""
    lists, grades = made()
    candidate = int(np.abs(lists.block.weights[:, 0] - 0.5).argmin())
    alone = simulate(lists, grades, candidate, "pbm", 100_000, np.random.default_rng(99), zipf=0.0)
    found = []
    for seed in range(12):
        _, sessions, shown = logged(seed)
        one = valued(lists.pairs, cells_of(sessions, lists), shown, lists.top[candidate], "", 1.0)
        assert one["effective"] > 100
        found.append(
            [(each["value"], each["high"] - each["value"]) for each in (one["ips"], one["snips"], one["dr"])]
        )
    values, reach = np.moveaxis(np.array(found), 2, 0)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(values.mean(axis=0) - alone.acted.mean()) < 3 * error)
    assert reach[:, 2].mean() < reach[:, 0].mean()


def test_the_acts_expected_are_those_of_relevant_and_other_entries_by_their_chance(monkeypatch):
    """By hand: 0.25 of 0.8 and 0.75 of 0.1; half of each at the next place; nothing of an unknown entry."""
    relevant, other = np.zeros((2, len(POSITIVE))), np.zeros((2, len(POSITIVE)))
    first = int(np.flatnonzero(POSITIVE)[0])
    relevant[:, first], other[:, first] = [0.8, 0.6], [0.1, 0.2]
    classes = SimpleNamespace(prior=np.array([0.25, 0.5]), relevant=relevant, other=other)
    monkeypatch.setattr("steelyard_eval.learn.logged.fit", lambda *_: classes)
    lists = SimpleNamespace(queries=["p", "q"], rows=2)
    cells = SimpleNamespace(query=np.array([0, 1]), where=lambda _: [1])
    shown = SimpleNamespace(query=np.array([0, 1, 0]), place=np.array([0, 1, 0]))
    assert _rewards(lists, cells, shown, np.array([0, 1, -1]), 1.0) == pytest.approx([0.275, 0.4, 0.0])


def test_the_query_after_the_judged_ones_is_the_first_that_was_logged():
    dataset = SimpleNamespace(queries=(Query("one", id="q1"), Query("two", id="q2")))
    log = SimpleNamespace(added=(("three", Query("three").filters),))

    found = _asked(dataset, log, np.array([1, 2]))

    assert [(number, query.id, query.text) for number, query in found] == [
        (1, "q2", "two"),
        (2, "logged-0", "three"),
    ]
