"""Two classes of shown entries, relevant and not, and how each is acted upon at each place: fitted by EM.

``P(act of a kind | place, relevant) = a``, ``P(act of a kind | place, not) = b``, and ``P(relevant | signals)`` is
logistic with coefficients of at least 0. So trust in the first places, noise and examination are one table of
rates, and what an act is worth is learned: its `lift` is a over b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.learn.counts import KINDS, POSITIVE, PositionCounts, column_sums, sums
from steelyard_eval.learn.position_bias import curve
from steelyard_eval.learn.top10 import PLACES, LoggedPairs
from steelyard_eval.measures.logistic import newton

TEMPER = 50.0
"""However often one entry was shown, it counts as fewer shows than this: one entry can speak only so loud."""
STRENGTH = 20.0  # shows that the starting rates count as, at each place
APART = 1.2  # A relevant entry is acted upon at least so many times as often, or the classes could change roles
FALLBACK = np.array([kind == "clicked" for kind in KINDS])  # the kind whose rates are fitted where no act occurs
MOST_RELEVANT, MOST_OTHER = 0.98, 0.8  # the largest share of shows that either class is acted upon
UPPER = 5  # places over which the lift is averaged


@dataclass(frozen=True)
class Classes:
    """What the log says of every row."""

    relevance: Floats  # float64[N]: the posterior probability of being relevant; `prior` for rows never shown
    prior: Floats  # float64[N]: the probability by the signals alone
    # float64[PLACES, A]: the rates of acts on relevant entries (a) and on others (b), by place and kind
    relevant: Floats
    other: Floats

    @property
    def lift(self) -> float:
        """How many times as often a relevant entry is acted upon, over the first places."""
        a, b = self.relevant[:UPPER, POSITIVE].sum(axis=1), self.other[:UPPER, POSITIVE].sum(axis=1)
        return float((a / np.maximum(b, 1e-12)).mean())

    def strengths(self, cells: PositionCounts) -> dict[str, float]:
        """The lift of each kind of act that occurs; below 1 for one that speaks against an entry."""
        a, b = self.relevant[:UPPER], self.other[:UPPER]
        ratio = (a / np.maximum(b, 1e-12)).mean(axis=0)
        return {kind: float(ratio[KINDS.index(kind)]) for kind in cells.by_kind()}


def fit(pairs: LoggedPairs, cells: PositionCounts, exponent: float, rounds: int = 40) -> Classes:
    """Fit the two classes to the cells; every row of the pairs gets a probability.

    The rates start from ``place ** -exponent`` and are shrunk to it, so few acts at a place leave it as it was.
    """
    pair, of = np.unique(cells.row, return_inverse=True)
    temper = 1.0 / (1.0 + sums(of, cells.shown) / TEMPER)
    kinds = np.flatnonzero(cells.acts.any(axis=0) | FALLBACK)
    shown, acts = cells.shown * temper[of], cells.acts[:, kinds] * temper[of, None]
    features = pairs.features[pair]
    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    design = np.column_stack([np.ones(len(pair)), (features - mean) / spread])
    start = _rates(cells, exponent, kinds)
    a, b = (rates.copy() for rates in start)
    slopes = np.zeros(design.shape[1])
    slopes[0] = -2.0
    relevance = np.zeros(len(pair))
    for _ in range(rounds):
        belief = sums(of, _evidence(a, b, cells.place, shown, acts))
        relevance = expit(np.clip(np.clip(design @ slopes, -12, 12) + belief, -30, 30))
        a, b = _maximised(cells.place, shown, acts, relevance[of], start, POSITIVE[kinds])
        slopes = _slopes(design, relevance, slopes)
    whole = np.clip(slopes[0] + ((pairs.features - mean) / spread) @ slopes[1:], -12, 12)
    prior = np.asarray(expit(whole), dtype=np.float64)
    posterior = prior.copy()
    posterior[pair] = relevance
    return Classes(posterior, prior, _whole(a, kinds), _whole(b, kinds))


def _whole(rates: Floats, kinds: Indices) -> Floats:
    """Rates of some kinds as those of all; 0 for kinds that do not occur."""
    whole = np.zeros((PLACES, len(KINDS)))
    whole[:, kinds] = rates
    return whole


def _rates(cells: PositionCounts, exponent: float, kinds: Indices) -> tuple[Floats, Floats]:
    """Where the rates of the two classes start, float64[PLACES, kinds] each: apart in the sense of each kind."""
    examined = curve(exponent)
    exposure = max(float((cells.shown * examined[cells.place]).sum()), 1e-9)
    totals, positive = cells.acts[:, kinds].sum(axis=0), POSITIVE[kinds]
    a, b = np.zeros((PLACES, len(kinds))), np.zeros((PLACES, len(kinds)))
    for sense, mask in ((1, positive), (-1, ~positive)):
        count = float(totals[mask].sum())
        if not count and sense < 0:
            continue
        rate = max(1e-4, count / exposure)
        often, seldom = min(0.9, max(6 * rate, 0.3)), min(0.3, 0.6 * rate)
        if sense < 0:
            often, seldom = min(0.5, 1.5 * rate), 0.3 * rate
        share = np.where(mask, totals, 0.0) / count if count else mask / mask.sum()
        first, second = (often, seldom) if sense > 0 else (seldom, often)
        a += first * examined[:, None] * share
        b += second * examined[:, None] * share
    return _bounded(a, 0.0, MOST_RELEVANT), _bounded(b, 0.0, MOST_OTHER)


def _evidence(a: Floats, b: Floats, place: Indices, shown: Floats, acts: Floats) -> Floats:
    """The logarithm of each cell's likelihood ratio, relevant over not; float64[M]."""
    with np.errstate(divide="ignore", invalid="ignore"):  # rates are 0 in both classes or in neither
        kinds = np.where(a > 0, np.log(a / b), 0.0)
    silent = np.log((1 - a.sum(axis=1)) / (1 - b.sum(axis=1)))
    ratio = (acts * kinds[place]).sum(axis=1) + (shown - acts.sum(axis=1)) * silent[place]
    return np.asarray(ratio, dtype=np.float64)


def _maximised(
    place: Indices, shown: Floats, acts: Floats, relevance: Floats, start: tuple[Floats, Floats], positive: Bools
) -> tuple[Floats, Floats]:
    """The rates that fit the shows of each class best, shrunk to where they started."""
    relevant = sums(place, relevance * shown, PLACES)[:, None]
    every = sums(place, shown, PLACES)[:, None]
    done = column_sums(place, acts * relevance[:, None], PLACES)
    total = column_sums(place, acts, PLACES)
    a = (done + STRENGTH * start[0]) / (relevant + STRENGTH)
    b = (total - done + STRENGTH * start[1]) / (every - relevant + STRENGTH)
    least = APART * b[:, positive].sum(axis=1) / np.maximum(a[:, positive].sum(axis=1), 1e-12)
    a[:, positive] *= np.maximum(least, 1.0)[:, None]
    return _bounded(a, 1e-4, MOST_RELEVANT), _bounded(b, 5e-5, MOST_OTHER)


def _bounded(rates: Floats, low: float, high: float) -> Floats:
    """Rates whose sum over the kinds stays between two bounds; a kind that never occurs keeps 0."""
    total = np.maximum(rates.sum(axis=1, keepdims=True), 1e-12)
    return np.asarray(rates * np.clip(total, low, high) / total, dtype=np.float64)


def _slopes(design: Floats, relevance: Floats, slopes: Floats) -> Floats:
    """Two steps of a logistic regression on probabilities, slopes of signals at least 0."""
    precision = np.full(len(slopes), 1.0)
    precision[0] = 0.01

    def likelihood(b: Floats) -> tuple[Floats, Floats]:
        p = expit(np.clip(design @ b, -12, 12))
        return design.T @ (relevance - p), design.T @ (design * (p * (1 - p))[:, None])

    return newton(likelihood, slopes, precision, range(1, len(slopes)), longest=2.0, rounds=2).coefficients
