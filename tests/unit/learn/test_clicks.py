"""How often each click model acts at each place, against the probabilities that its paper multiplies out to."""

import numpy as np
import pytest

from steelyard_eval.learn.clicks import MODELS, SAYS_NONE, Shown, nothing_of_use

SESSIONS = 60_000
PLACE = np.arange(1, 11)
WORTH = np.array([0, 1, 0, 0.5, 0, 1, 0.5, 0, 1, 0])
SIGNAL = np.array([0.9, 0.2, 0, 0.5, 1, 0.4, 0.1, 0.7, 0.3, 0.6])
LOOKS = np.array([0.0, 0.5, 0.5, 0.25, 0.5, 1.0, 0.75, 0.0, 0.5, 0.5])
ALONE = Shown(*(np.tile(part, (SESSIONS, 1)) for part in (WORTH, SIGNAL, LOOKS)))

# An irrelevant entry looks good where 7919 times its looks has a fraction below 0.1: that of 0 has, 0.5 has not.
APPEAL = np.where(WORTH > 0, 0.25 + 0.65 * LOOKS, np.where(LOOKS == 0.0, 0.15, 0.06 * LOOKS))


def reached(going_on):
    """The probability of arriving at each place, where one goes on from place to place with these."""
    return np.concatenate([[1.0], np.cumprod(going_on)[:-1]])


def two_at_most(used):
    """Each of independent acts, if fewer than two came before it."""
    before, rates = np.array([1.0, 0.0, 0.0]), []  # no act so far, one, two
    for rate in used:
        rates.append(rate * (before[0] + before[1]))
        before = np.array([before[0] * (1 - rate), before[1] * (1 - rate) + before[0] * rate, 1.0])
    return np.array(rates)


READ = np.array([1, 0.95, 0.9, 0.8, 0.7, 0.6, 0.55, 0.55, 0.6, 0.65])  # an agent reads a context from both ends
DRAWN = 0.05 + 0.75 * WORTH
WILD = APPEAL + 0.25 / PLACE * (1 - APPEAL)
EXPECTED = {
    "pbm": (0.05 + 0.85 * WORTH) / PLACE,
    "noisy": (0.25 + 0.45 * WORTH) / PLACE,
    "trust": (0.65 / PLACE * (1 - WORTH) + (0.98 - 0.01 * PLACE) * WORTH) / PLACE,
    "cascade": DRAWN * reached(1 - DRAWN),
    "dbn": DRAWN * reached((1 - DRAWN * (0.2 + 0.7 * WORTH)) * 0.85),
    "agent": two_at_most(READ * (0.02 + 0.6 * WORTH)),
    "hetero": APPEAL * np.where(WORTH > 0, 0.4 + 0.6 * WORTH, 1) / PLACE,
    "wild": WILD * reached(WILD * 0.35 + (1 - WILD) * 0.85),
    "attract": (0.85 * WORTH + 0.3 * SIGNAL * (1 - WORTH)) / PLACE,
    "attract1": (0.85 * WORTH + 0.1 * SIGNAL * (1 - WORTH)) / PLACE,
    "tags": (0.02 + 0.85 * SIGNAL) / PLACE,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_model_acts_at_each_place_as_often_as_its_paper_says(name):
    acts = MODELS[name](ALONE, np.random.default_rng(7))
    error = np.sqrt(EXPECTED[name] * (1 - EXPECTED[name]) / SESSIONS)

    assert acts.shape == (SESSIONS, 10)
    assert (np.abs(acts.mean(axis=0) - EXPECTED[name]) <= 4.5 * error).all()


def test_an_agent_uses_two_at_most_and_says_more_often_that_nothing_helped_where_nothing_was_relevant():
    rng = np.random.default_rng(7)
    assert MODELS["agent"](ALONE, rng).sum(axis=1).max() == 2
    used = np.zeros((SESSIONS, 10), dtype=bool)
    used[::2, 0] = True
    relevant = nothing_of_use(ALONE, used, rng)
    none = nothing_of_use(Shown(0 * ALONE.worth, ALONE.signal, ALONE.looks), used, rng)

    assert {"agent"} == SAYS_NONE
    assert not relevant[::2].any()
    assert not none[::2].any()
    assert relevant[1::2].mean() == pytest.approx(0.05, abs=0.006)
    assert none[1::2].mean() == pytest.approx(0.35, abs=0.012)
