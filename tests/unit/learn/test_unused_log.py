"""Why a log took no part in a decision by labels: one true sentence for each reason."""

from types import SimpleNamespace

import numpy as np
import pytest

from steelyard.memory.query import Query
from steelyard.systems import find_system
from steelyard_eval.learn.decision import LogDecision
from steelyard_eval.learn.result import evidence
from steelyard_eval.result.sentences import say

LABELLED = tuple(Query(f"question {at}", id=f"q{at}") for at in range(16))


def decision(logged, second=None, listless=False, few=0):
    """Labels of sixteen queries, and a log of some queries, all of which were valued."""
    cells = SimpleNamespace(queries=np.arange(len(logged)))
    log = SimpleNamespace(census=SimpleNamespace(impressions=40))
    hits, config = SimpleNamespace(listless=listless), find_system("echovault").config(10)
    case = SimpleNamespace(queries=logged, cells=cells, log=log, hits=hits, config=config)
    made = (
        None if few else SimpleNamespace(choice=SimpleNamespace(second=second, scored=SimpleNamespace(share=0.0)))
    )
    labelled = () if few else LABELLED
    return LogDecision(case, labelled, np.arange(len(logged)), None, (), None, made, few)


def said(found):
    """What is said of the evidence."""
    (one,) = evidence(found)
    return say(one)


def others(count):
    return tuple(Query(f"other {at}", id=f"o{at}") for at in range(count))


AGAIN = tuple(Query(LABELLED[0].text, id=f"a{at}") for at in range(9))
"""Queries of the log that ask what a labelled one asks."""


@pytest.mark.parametrize(
    ("logged", "count", "left", "facts"),
    [
        (others(9), 0, 9, ["none of the 16", "takes 5"]),
        (LABELLED[:1] + others(9), 1, 9, ["only 1 of the 16", "was logged", "takes 5"]),
        (LABELLED[:4] + others(9), 4, 9, ["only 4 of the 16", "were logged", "takes 5"]),
        (LABELLED, 16, 0, ["16 of the 16", "no other logged"]),
        (LABELLED + others(1), 16, 1, ["16 of the 16", "only one other"]),
        (LABELLED + AGAIN, 16, 0, ["16 of the 16", "no other logged"]),
    ],
)
def test_the_reason_is_that_which_holds(logged, count, left, facts):
    found = decision(logged)
    assert (len(found.logged), found.others) == (count, left)
    told = said(found)
    assert all(fact in told for fact in facts), told
    assert ("none of" in told) == (count == 0)


def test_a_log_without_lists_is_called_so():
    assert "no result lists" in said(decision(LABELLED + others(9), listless=True))


def test_acts_that_do_not_follow_labels_are_not_said_to_lack_queries():
    (told,) = evidence(decision(LABELLED + others(9), second=object()))
    assert (told.key, told.facts["logged"]) == ("learn_chance", 16)


def test_too_few_labels_to_decide_are_counted():
    (told,) = evidence(decision(others(9), few=14))
    assert (told.key, told.facts["labelled"], told.facts["fewest"]) == ("learn_few_labels", 14, 15)
