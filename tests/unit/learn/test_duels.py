"""The verdict on interleaved rankings: in figures, in words, and as a table."""

import pytest
from scipy.stats import binomtest

from steelyard_eval.learn.interleaving import InterleavingResult
from steelyard_eval.learn.learned_text import duelled


def fought(other, *clients):
    """A duel of clients, each with its name, searches won, tied and lost."""
    duel = InterleavingResult(other)
    for name, *counts in clients:
        for balance, count in zip((1, 0, -1), counts, strict=True):
            for _ in range(count):
                duel.add(balance, name)
    return duel


def test_a_preference_has_scipys_p_and_interval_and_says_who_agrees():
    duel = fought("b1", ("ann", 12, 3, 2), ("bob", 5, 0, 1), ("eve", 0, 2, 1), ("dan", 0, 4, 0))
    found = duel.to_json()
    test = binomtest(17, 21)
    assert (found["wins"], found["ties"], found["losses"]) == (17, 9, 4)
    assert found["p"] == pytest.approx(test.pvalue)
    assert found["interval"] == pytest.approx(list(test.proportion_ci(0.95, "exact")))
    assert found["sentence"] == (
        "b1 is preferred: it won 17 of 21 decided searches, 81% [95%: 58% to 95%]; 2 of 3 clients agree."
    )
    assert fought("b1", ("ann", 0, 0, 6)).sentence().startswith("b1 is not preferred: it won 0 of 6")


def test_the_table_has_a_row_for_each_ranking_and_each_client():
    one, every = fought("b1", ("ann", 3, 1, 1), ("", 0, 0, 1)), fought("", ("ann", 3, 1, 1), ("", 0, 0, 1))
    rows = duelled([row.to_json() for row in (every, one)]).splitlines()
    assert rows[0] == one.sentence()
    assert [line.split() for line in rows[4:]] == [
        ["b1", "3/1/2", "60%", "1.0000"],
        ["ann", "3/1/1", "75%"],
        ["(no", "name)", "0/0/1", "0%"],
    ]
    assert duelled([InterleavingResult("").to_json()]) == "no list of this log was interleaved"
