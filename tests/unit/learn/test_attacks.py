"""Logs that were made to mislead: named, counted, contained, and no verdict in favour of them."""

import dataclasses

import numpy as np
import pytest
from made_world import made, truth

from steelyard_eval.learn.cells import joined
from steelyard_eval.learn.simulator import Sessions, cells_of, simulate
from steelyard_eval.learn.verdict import judge

SESSIONS = 4000


def honest(seed=3):
    lists, grades = made()
    return lists, grades, simulate(lists, grades, 0, "pbm", SESSIONS, np.random.default_rng(seed))


def flood(lists, sessions, place):
    """10,000 sessions of one query, each with an act on the entry at one place."""
    row = np.repeat(lists.top[0, [0]].astype(np.int64), 10_000, axis=0)
    acted = np.tile(np.arange(10) == place, (10_000, 1))
    none, alone = np.zeros(10_000, dtype=bool), np.full(10_000, -1)
    return Sessions(np.zeros(10_000, int), row, acted, none, alone, np.zeros_like(row), np.zeros(row.shape))


def test_ten_thousand_acts_of_many_clients_on_one_entry_turn_no_verdict():
    """Of one client the reader counts one a day: see test_learn_command.py."""
    lists, _, sessions = honest()
    clean = judge(lists, cells_of(sessions, lists))
    found = judge(lists, joined([cells_of(sessions, lists), cells_of(flood(lists, sessions, 9), lists)]))
    assert clean.verdict == found.verdict == "ship"
    assert abs(found.examination.estimate - clean.examination.estimate) < 2 * found.examination.error < 1.5


def test_a_crowd_that_wants_other_weights_is_held_by_labels_alone():
    """As many acts as the honest ones, all on what keywords alone rank first: a log cannot tell who is honest."""
    lists, grades = made("weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)")
    sessions = simulate(lists, grades, 0, "pbm", SESSIONS, np.random.default_rng(3))
    wanted = int(lists.block.weights[:, 0].argmax())
    acted = sessions.row == lists.top[wanted, sessions.query, 0][:, None]
    crowd = dataclasses.replace(sessions, acted=acted)
    cells = joined([cells_of(sessions, lists), cells_of(crowd, lists)])
    value = truth(lists, grades)
    assert value[judge(lists, cells).candidate] < value[0] - 0.01
    labels = lists.values(grades, np.arange(30))
    found = judge(lists, cells, labels)
    assert found.verdict != "ship" or value[found.candidate] >= value[0] - 1e-3


@pytest.mark.parametrize("model", ["first place alone", "at random", "nothing"])
def test_acts_that_say_nothing_of_entries_ship_nothing(model):
    lists, _, sessions = honest()
    rng = np.random.default_rng(0)
    acted = {
        "first place alone": (np.arange(10) == 0) & (rng.random((SESSIONS, 1)) < 0.6),
        "at random": rng.random((SESSIONS, 10)) < 0.1,
        "nothing": np.zeros((SESSIONS, 10), dtype=bool),
    }[model]
    found = judge(lists, cells_of(dataclasses.replace(sessions, acted=acted), lists))
    assert found.verdict == "keep"
    assert found.candidate == 0
    if model != "at random":
        assert found.refusal is not None


def test_acts_of_other_queries_ship_nothing():
    """The acts of each session belong to another one: what is acted upon says nothing of what is relevant."""
    lists, _, sessions = honest()
    order = np.random.default_rng(0).permutation(SESSIONS)
    found = judge(lists, cells_of(dataclasses.replace(sessions, acted=sessions.acted[order]), lists))
    assert found.verdict == "keep"


def test_a_third_of_the_sessions_on_the_last_place_change_no_verdict_to_harm():
    lists, grades, sessions = honest()
    acted = sessions.acted.copy()
    acted[np.random.default_rng(0).random(SESSIONS) < 0.3] = np.arange(10) == 9
    found = judge(lists, cells_of(dataclasses.replace(sessions, acted=acted), lists))
    value = truth(lists, grades)
    assert value[found.candidate] >= value[0] - 1e-3
