"""The verdict on interleaved rankings."""

import pytest
from scipy.stats import binomtest

from steelyard_eval.learn.counts import InterleavingResult, said_of_turns


def fought(other, *clients):
    """A result of clients, each with its name, searches won, tied and lost."""
    result = InterleavingResult(other)
    for name, *counts in clients:
        for balance, count in zip((1, 0, -1), counts, strict=True):
            for _ in range(count):
                result.add(balance, name)
    return result


def test_a_preference_has_scipys_p_and_interval_and_says_who_agrees():
    found = fought("b1", ("ann", 12, 3, 2), ("bob", 5, 0, 1), ("eve", 0, 2, 1), ("dan", 0, 4, 0))
    said, test = said_of_turns(found, {}), binomtest(17, 21)
    assert (found.wins, found.ties, found.losses) == (17, 9, 4)
    assert found.p == pytest.approx(test.pvalue)
    ends = test.proportion_ci(0.95, "exact")
    assert (said.facts["low"], said.facts["high"]) == pytest.approx((ends.low, ends.high))
    assert (said.key, said.facts["not"]) == ("turns_preferred", False)
    assert (said.facts["same"], said.facts["clients"]) == (2, 3)
    assert said_of_turns(fought("b1", ("ann", 0, 0, 6)), {}).facts["not"] is True


def test_without_one_it_is_open_or_nothing_was_acted_upon():
    assert said_of_turns(fought("b1", ("ann", 7, 2, 3)), {}).key == "turns_open"
    assert said_of_turns(fought("b1", ("ann", 0, 5, 0)), {}).key == "turns_untold"
