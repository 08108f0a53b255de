"""Logs that were made to mislead: named, counted, contained, and no verdict in favour of them."""

import dataclasses

import numpy as np
import pytest
from made_world import LEANING, cells_of, decided, learned, made, tried, truth
from simulator import Sessions, simulate

from steelyard_eval.learn.position_bias import examine
from steelyard_eval.learn.searchers import weights

SESSIONS = 4000


def honest(seed=3, count=SESSIONS, **world):
    lists, grades = made(**world)
    return lists, grades, simulate(lists, grades, 0, "pbm", count, np.random.default_rng(seed))


def acted(sessions, acted, lists):
    """The counts of the same sessions with other acts."""
    return cells_of(dataclasses.replace(sessions, acted=acted), lists)


def wanting(lists, sessions):
    """The same sessions with acts on what keywords alone rank first."""
    first = lists.top[int(lists.block.weights[:, 0].argmax()), sessions.query, 0]
    return dataclasses.replace(sessions, acted=sessions.row == first[:, None])


def both(*sessions):
    """Sets of sessions, one after the other."""
    return Sessions(*map(np.concatenate, zip(*(vars(one).values() for one in sessions), strict=True)))


def test_ten_thousand_acts_of_many_clients_on_one_entry_turn_nothing():
    """All act on the last place of one query. Of one client the reader counts one a day: test_log.py."""
    lists, grades, sessions = honest()
    row = np.repeat(lists.top[0, [0]].astype(np.int64), 10_000, axis=0)
    on_it = np.tile(np.arange(10) == 9, (10_000, 1))
    alone = np.full(10_000, -1)
    flood = Sessions(np.zeros(10_000, int), row, on_it, alone, np.zeros_like(row), np.zeros(row.shape))
    clean, loud = (cells_of(one, lists) for one in (sessions, both(sessions, flood)))
    value = truth(lists, grades)
    assert value[tried(lists, loud)] > value[0] + 0.8 * (value[tried(lists, clean)] - value[0]) > value[0]
    quiet, noisy = (examine(lists.pairs, cells) for cells in (clean, loud))
    assert abs(noisy.estimate - quiet.estimate) < 2 * noisy.error < 1.5


def test_a_crowd_that_wants_other_weights_is_held_by_labels_alone():
    """As many acts as the honest ones, all on what keywords alone rank first: a log cannot tell who is honest."""
    lists, grades, sessions = honest(strategy=LEANING)
    cells = cells_of(both(sessions, wanting(lists, sessions)), lists)
    value = truth(lists, grades)
    assert value[tried(lists, cells)] < value[0] - 0.01
    verdict, candidate = decided(lists, grades, cells, np.arange(30))
    assert verdict != "ship" or value[candidate] >= value[0] - 1e-3


def test_a_client_that_wants_other_weights_suggests_nothing():
    """A third of the searches are a robot's: what it wants does not hold without it."""
    lists, grades, sessions = honest(strategy=LEANING)
    robot = wanting(lists, honest(4, SESSIONS // 2, strategy=LEANING)[2])
    value = truth(lists, grades)
    found = tried(lists, cells_of(both(sessions, robot), lists), apart=cells_of(sessions, lists))
    assert value[found] >= value[0] - 1e-3


def test_what_gains_nothing_without_the_largest_client_is_not_suggested():
    """Without it there is each tenth query alone, of which the candidate shows the same."""
    lists, _, sessions = honest()
    cells = cells_of(sessions, lists)
    found, gains = learned(lists, cells)
    best = tried(lists, cells)
    shown = lists.top[[0, best]]
    shown[1, ::10] = shown[0, ::10]
    only = np.where(np.arange(len(gains))[:, None] == best, gains, 0.0)
    rests = (None, cells.on(cells.queries[cells.queries % 10 == 0]))
    assert [found.suggested(only, lambda _: shown, rest) for rest in rests] == [best, None]


@pytest.mark.parametrize(
    "acts",
    [
        lambda rng, own: (np.arange(10) == 0) & (rng.random((SESSIONS, 1)) < 0.6),  # on the first place alone
        lambda rng, own: rng.random((SESSIONS, 10)) < 0.1,
        lambda rng, own: np.zeros((SESSIONS, 10), dtype=bool),
        lambda rng, own: own[rng.permutation(SESSIONS)],  # of other queries: they say nothing of what is relevant
    ],
)
def test_acts_that_say_nothing_of_entries_suggest_nothing(acts):
    lists, _, sessions = honest()
    assert tried(lists, acted(sessions, acts(np.random.default_rng(0), sessions.acted), lists)) == 0


def test_a_third_of_the_sessions_on_the_last_place_suggest_no_harm():
    lists, grades, sessions = honest()
    acts = sessions.acted.copy()
    acts[np.random.default_rng(0).random(SESSIONS) < 0.3] = np.arange(10) == 9
    value = truth(lists, grades)
    assert value[tried(lists, acted(sessions, acts, lists))] >= value[0] - 1e-3


def test_nobody_outvotes_the_rest():
    """40 clients of 75 searches and a robot of 10,000 keep 333 of 3,333: a tenth. One of one stays whole."""
    found = weights(np.array([75] * 40 + [10_000]))
    assert (found[:40] == 1).all()
    assert found[40] * 10_000 == pytest.approx(3000 / 9, abs=1)
    assert weights(np.array([500])).tolist() == [1.0]
    assert weights(np.zeros(0, dtype=int)).tolist() == []
