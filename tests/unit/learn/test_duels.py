"""The verdict on interleaved rankings: in figures, in words, and as a table."""

import pytest
from scipy.stats import binomtest

from steelyard_eval.learn.interleaving import Duel
from steelyard_eval.learn.learned_text import duelled


def fought(other, *clients):
    """A duel of clients, each with its name, searches won, tied and lost."""
    duel = Duel(other)
    for name, *counts in clients:
        for balance, count in zip((1, 0, -1), counts, strict=True):
            for _ in range(count):
                duel.add(balance, name)
    return duel


def test_a_preference_has_scipys_p_and_interval_and_says_who_agrees():
    duel = fought("b1", ("ann", 12, 3, 2), ("bob", 5, 0, 1), ("eve", 0, 2, 1), ("dan", 0, 4, 0))
    found = duel.to_json()
    test = binomtest(17, 21)
    assert (found["wins"], found["ties"], found["losses"], found["needed"]) == (17, 9, 4, 0)
    assert found["p"] == pytest.approx(test.pvalue)
    assert found["interval"] == pytest.approx(list(test.proportion_ci(0.95, "exact")))
    assert found["sentence"] == (
        "b1 is preferred: it won 17 of 21 decided searches, 81% [95%: 58% to 95%]; 2 of 3 clients agree."
    )
    assert fought("b1", ("ann", 0, 0, 6)).sentence().startswith("b1 is not preferred: it won 0 of 6")


def test_without_one_it_says_how_many_more_searches_would_tell():
    """(1.96 * 0.5 + 0.8416 * sqrt(0.7 * 0.3))^2 / 0.2^2 = 47 decided ones at 70%; 10 of 12 were decided."""
    duel = fought("b1", ("ann", 7, 2, 3))
    assert duel.needed == -(-(47 - 10) * 12 // 10) == 45
    assert duel.sentence().endswith("about 45 more searches would tell.")
    assert fought("b1", ("ann", 0, 5, 0)).needed is None
    assert "nothing that was shown was acted upon" in fought("b1", ("ann", 0, 5, 0)).sentence()


def test_the_table_has_a_row_for_each_ranking_and_each_client():
    one, every = fought("b1", ("ann", 3, 1, 1), ("", 0, 0, 1)), fought("", ("ann", 3, 1, 1), ("", 0, 0, 1))
    rows = duelled([row.to_json() for row in (every, one)]).splitlines()
    assert rows[0] == one.sentence()
    assert [line.split() for line in rows[4:]] == [
        ["b1", "3/1/2", "60%", "1.0000"],
        ["ann", "3/1/1", "75%"],
        ["(no", "name)", "0/0/1", "0%"],
    ]
    assert duelled([Duel("").to_json()]) == "no list of this log was interleaved"
