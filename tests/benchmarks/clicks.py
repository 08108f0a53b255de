"""How people and agents act on a list: ten models, each a function of grades, places and chance.

pbm      Position-based: examined with probability 1 / place, acted upon by grade (Richardson et al., WWW 2007).
noisy    The same, with acts on irrelevant entries one third as likely as on relevant ones.
trust    Irrelevant entries are trusted the more the higher they are (Agarwal et al., WWW 2019).
cascade  Read from the top until the first act (Craswell et al., WSDM 2008).
dbn      Read from the top, left with or without satisfaction (Chapelle and Zhang, WWW 2009).
agent    An agent that reads a context from both ends, uses two entries at most, and may say that none was of use.
hetero   Every entry draws by looks of its own, whatever it is worth.
wild     The same, trusted at the top and read until satisfied.
attract, attract1   The first signal draws acts to irrelevant entries, by 0.3 or 0.1 of its value.
tags     Acts on entries by the signal named `tags` alone: a user who prefers tag matches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.learn.top10 import PLACES

POSITIONS = np.arange(1, PLACES + 1)
AGENT = np.array([1, 0.95, 0.9, 0.8, 0.7, 0.6, 0.55, 0.55, 0.6, 0.65])
"""How likely an agent reads each place of a context: the ends more than the middle."""


@dataclass(frozen=True)
class Shown:
    """Lists that were shown, S of them.

    Attributes
    ----------
    worth : float64[S, PLACES]
        Grade over the highest grade.
    signal : float64[S, PLACES]
        The signal that attracts.
    looks : float64[S, PLACES]
        A number in 0..1 that belongs to the entry and its query.
    """

    worth: Floats
    signal: Floats
    looks: Floats


Model = Callable[[Shown, np.random.Generator], Bools]


def _chance(shown: Shown, rng: np.random.Generator, probability: Floats) -> Bools:
    return np.asarray(rng.random(shown.worth.shape) < probability, dtype=np.bool_)


def pbm(shown: Shown, rng: np.random.Generator) -> Bools:
    """Position-based."""
    return _chance(shown, rng, (0.05 + 0.85 * shown.worth) / POSITIONS)


def noisy(shown: Shown, rng: np.random.Generator) -> Bools:
    """Position-based with noise."""
    return _chance(shown, rng, (0.25 + 0.45 * shown.worth) / POSITIONS)


def trust(shown: Shown, rng: np.random.Generator) -> Bools:
    """Examined with probability 1 / place, then trusted the more the higher it is."""
    trusted = 0.65 / POSITIONS * (1 - shown.worth) + (0.98 - 0.01 * POSITIONS) * shown.worth
    return _chance(shown, rng, trusted / POSITIONS)


def attract(strength: float) -> Model:
    """The first signal draws acts whatever an entry is worth."""

    def model(shown: Shown, rng: np.random.Generator) -> Bools:
        drawn = strength * shown.signal * (1 - shown.worth)
        return _chance(shown, rng, (0.85 * shown.worth + drawn) / POSITIONS)

    return model


def tags(shown: Shown, rng: np.random.Generator) -> Bools:
    """Acts by the signal alone."""
    return _chance(shown, rng, (0.02 + 0.85 * shown.signal) / POSITIONS)


def _appeal(shown: Shown) -> Floats:
    """How much each entry draws: relevant ones by looks, and a tenth of the others look good."""
    other = (shown.looks * 7919) % 1
    plain = np.where(other < 0.1, 0.15 + 0.5 * shown.looks, 0.06 * shown.looks)
    return np.where(shown.worth > 0, 0.25 + 0.65 * shown.looks, plain)


def hetero(shown: Shown, rng: np.random.Generator) -> Bools:
    """Looks of their own, position-based."""
    grade = np.where(shown.worth > 0, 0.4 + 0.6 * shown.worth, 1.0)
    return _chance(shown, rng, _appeal(shown) * grade / POSITIONS)


def _before(going_on: Bools) -> Bools:
    """Which places are reached, given where the reader goes on."""
    first = np.ones((len(going_on), 1), dtype=bool)
    return np.concatenate([first, np.cumprod(going_on, axis=1).astype(bool)[:, :-1]], axis=1)


def wild(shown: Shown, rng: np.random.Generator) -> Bools:
    """Looks, trust, and reading until satisfied."""
    appeal = _appeal(shown)
    would = _chance(shown, rng, appeal + 0.25 / POSITIONS * (1 - appeal))
    return would & _before(_chance(shown, rng, np.where(would, 0.35, 0.85)))


def cascade(shown: Shown, rng: np.random.Generator) -> Bools:
    """Until the first act."""
    would = _chance(shown, rng, 0.05 + 0.75 * shown.worth)
    return would & _before(~would)


def dbn(shown: Shown, rng: np.random.Generator) -> Bools:
    """Until satisfied or tired."""
    would = _chance(shown, rng, 0.05 + 0.75 * shown.worth)
    stop = would & _chance(shown, rng, 0.2 + 0.7 * shown.worth)
    return would & _before(~stop & (rng.random(would.shape) < 0.85))


def agent(shown: Shown, rng: np.random.Generator) -> Bools:
    """Both ends, two at most."""
    used = _chance(shown, rng, AGENT * (0.02 + 0.6 * shown.worth))
    return used & (np.cumsum(used, axis=1) <= 2)


MODELS: dict[str, Model] = {
    **{model.__name__: model for model in (pbm, noisy, trust, cascade, dbn, agent, hetero, wild)},
    "attract": attract(0.3),
    "attract1": attract(0.1),
    "tags": tags,
}
SAYS_NONE = frozenset({"agent"})
"""Models whose reader may say that nothing was of use."""


def nothing_of_use(shown: Shown, used: Bools, rng: np.random.Generator) -> Bools:
    """bool[S]: where an agent that used nothing says so; more often where nothing was relevant."""
    rate = np.where(shown.worth.max(axis=1) > 0, 0.05, 0.35)
    return np.asarray(~used.any(axis=1) & (rng.random(len(used)) < rate), dtype=np.bool_)


def looks(query: Indices, place: Indices) -> Floats:
    """A number in 0..1 that is the same whenever the entry is shown for the query."""
    return np.asarray(np.mod(np.sin(query[:, None] * 12.9898 + place * 78.233) * 43758.5453, 1.0))
