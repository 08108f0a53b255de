"""Logs that were made to mislead: named, counted, contained, and no verdict in favour of them."""

import dataclasses

import numpy as np
import pytest
from made_world import cells_of, decided, made, tried, truth
from simulator import Sessions, simulate

from steelyard_eval.learn.position_bias import examine
from steelyard_eval.learn.searchers import weights

SESSIONS = 4000


def honest(seed=3):
    lists, grades = made()
    return lists, grades, simulate(lists, grades, 0, "pbm", SESSIONS, np.random.default_rng(seed))


def flood(lists, sessions, place):
    """10,000 sessions of one query, each with an act on the entry at one place."""
    row = np.repeat(lists.top[0, [0]].astype(np.int64), 10_000, axis=0)
    acted = np.tile(np.arange(10) == place, (10_000, 1))
    alone = np.full(10_000, -1)
    return Sessions(np.zeros(10_000, int), row, acted, alone, np.zeros_like(row), np.zeros(row.shape))


def both(sessions, other):
    """Two sets of sessions, one after the other."""
    return Sessions(
        *(np.concatenate([getattr(one, name) for one in (sessions, other)]) for name in vars(sessions))
    )


def test_ten_thousand_acts_of_many_clients_on_one_entry_turn_nothing():
    """Of one client the reader counts one a day: see test_learn_command.py."""
    lists, grades, sessions = honest()
    clean, loud = (cells_of(one, lists) for one in (sessions, both(sessions, flood(lists, sessions, 9))))
    value = truth(lists, grades)
    assert value[tried(lists, loud)] > value[0] + 0.8 * (value[tried(lists, clean)] - value[0]) > value[0]
    quiet, noisy = (examine(lists.pairs, cells) for cells in (clean, loud))
    assert abs(noisy.estimate - quiet.estimate) < 2 * noisy.error < 1.5


def test_a_crowd_that_wants_other_weights_is_held_by_labels_alone():
    """As many acts as the honest ones, all on what keywords alone rank first: a log cannot tell who is honest."""
    lists, grades = made("weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)")
    sessions = simulate(lists, grades, 0, "pbm", SESSIONS, np.random.default_rng(3))
    wanted = int(lists.block.weights[:, 0].argmax())
    acted = sessions.row == lists.top[wanted, sessions.query, 0][:, None]
    cells = cells_of(both(sessions, dataclasses.replace(sessions, acted=acted)), lists)
    value = truth(lists, grades)
    assert value[tried(lists, cells)] < value[0] - 0.01
    verdict, candidate = decided(lists, grades, cells, np.arange(30))
    assert verdict != "ship" or value[candidate] >= value[0] - 1e-3


def test_a_client_that_wants_other_weights_suggests_nothing():
    """A third of the searches are a robot's: what it wants does not hold without it."""
    lists, grades = made("weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)")
    sessions = simulate(lists, grades, 0, "pbm", SESSIONS, np.random.default_rng(3))
    robot = simulate(lists, grades, 0, "pbm", SESSIONS // 2, np.random.default_rng(4))
    acted = robot.row == lists.top[int(lists.block.weights[:, 0].argmax()), robot.query, 0][:, None]
    cells = cells_of(both(sessions, dataclasses.replace(robot, acted=acted)), lists)
    value = truth(lists, grades)
    found = tried(lists, cells, apart=cells_of(sessions, lists))
    assert value[found] >= value[0] - 1e-3


@pytest.mark.parametrize("model", ["first place alone", "at random", "nothing"])
def test_acts_that_say_nothing_of_entries_suggest_nothing(model):
    lists, _, sessions = honest()
    rng = np.random.default_rng(0)
    acted = {
        "first place alone": (np.arange(10) == 0) & (rng.random((SESSIONS, 1)) < 0.6),
        "at random": rng.random((SESSIONS, 10)) < 0.1,
        "nothing": np.zeros((SESSIONS, 10), dtype=bool),
    }[model]
    assert tried(lists, cells_of(dataclasses.replace(sessions, acted=acted), lists)) == 0


def test_acts_of_other_queries_suggest_nothing():
    """The acts of each session belong to another one: what is acted upon says nothing of what is relevant."""
    lists, _, sessions = honest()
    order = np.random.default_rng(0).permutation(SESSIONS)
    assert tried(lists, cells_of(dataclasses.replace(sessions, acted=sessions.acted[order]), lists)) == 0


def test_a_third_of_the_sessions_on_the_last_place_suggest_no_harm():
    lists, grades, sessions = honest()
    acted = sessions.acted.copy()
    acted[np.random.default_rng(0).random(SESSIONS) < 0.3] = np.arange(10) == 9
    found = tried(lists, cells_of(dataclasses.replace(sessions, acted=acted), lists))
    value = truth(lists, grades)
    assert value[found] >= value[0] - 1e-3


def test_nobody_outvotes_the_rest():
    """40 clients of 75 searches and a robot of 10,000 keep 333 of 3,333: a tenth. One of one stays whole."""
    found = weights(np.array([75] * 40 + [10_000]))
    assert (found[:40] == 1).all()
    assert found[40] * 10_000 == pytest.approx(3000 / 9, abs=1)
    assert weights(np.array([500])).tolist() == [1.0]
    assert weights(np.zeros(0, dtype=int)).tolist() == []
