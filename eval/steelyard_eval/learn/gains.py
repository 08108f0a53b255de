"""What the acts of a log say that candidates gain: a second measurement, which labels correct and never replace.

Shown entries are of two classes, relevant and not, which are acted upon at their own rates at each place. EM fits
``P(act of a kind | place, relevant) = a``, ``P(act of a kind | place, not) = b``, and ``P(relevant | signals)``,
which is logistic with coefficients of at least 0. So trust in the first places, noise and examination are one
table of rates, and what an act is worth is learned: its `lift` is a over b.

Entries that were never shown have to be imputed. The three views take the probability that their signals suggest
whole, by half, and by a quarter; a gain that exists in one of them alone is a gain of the imputation. The *query
error* is that of a mean over queries. The *refit error* is the jackknife over folds, of queries and of clients
(whichever is larger), with the classes fitted again without each: what the model itself is unsure of.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard_eval.learn.counts import KINDS, POSITIVE, PositionCounts, column_sums, sums
from steelyard_eval.learn.first_ten import PLACES, LoggedPairs
from steelyard_eval.learn.position_bias import PositionBias, curve, examine
from steelyard_eval.measures.logistic import newton
from steelyard_eval.measures.spread import Matrix, spread

IMPUTATION_SHARES = (1.0, 0.5, 0.25)
"""How much of what its signals suggest an entry that was never shown is credited with, in each view."""
MIDDLE = 0.5
FOLDS = 6  # of the refit jackknife
UNKNOWN = 1.0  # the error of a gain that a single unit shows: nDCG@10 is 1 at most
ROUNDS = 20  # of EM in each refit
MIN_GAIN_SE = 2.0  # query errors and refit errors that a gain has to exceed in every view to be worth a try
CANDIDATES_EXAMINED = 20  # candidates that are looked at closely, those of largest gain


@dataclass(frozen=True)
class GainsByImputation:
    """One candidate's gain over the current configuration, on the scale of nDCG@10."""

    gain: Floats  # float64[V]: by view, the mean over queries
    error: Floats  # float64[V]: its standard error
    refit: Floats  # float64[V]: 0 in the first view, which imputes most and is only asked for its query error

    @property
    def bound(self) -> float:
        """The least gain over all views, `MIN_GAIN_SE` query errors and refit errors below it."""
        seen = self.gain - MIN_GAIN_SE * self.error
        refitted = self.gain[1:] - MIN_GAIN_SE * np.maximum(self.refit[1:], self.error[1:])
        return float(min(seen.min(), refitted.min()))


@dataclass(frozen=True)
class FeedbackGains:
    """What was learned from the cells of a log."""

    pairs: LoggedPairs
    cells: PositionCounts  # what was shown of them, and acted upon
    bias: PositionBias  # how places are examined
    classes: "Classes"  # what is relevant
    clients: Sequence[PositionCounts] = ()  # the cells without each fold of the clients; none of a single client

    @classmethod
    def of(
        cls,
        pairs: LoggedPairs,
        cells: PositionCounts,
        given: Floats | None = None,
        clients: Sequence[PositionCounts] = (),
    ) -> "FeedbackGains":
        """Learn from cells; `given` float64[PLACES] are probabilities of examination that the log holds."""
        bias = examine(pairs, cells, given)
        return cls(pairs, cells, bias, fit(pairs, cells, bias.exponent), clients)

    def on(self, queries: Indices) -> "FeedbackGains":
        """What was learned, applied to some of the queries."""
        clients = [cells.on(queries) for cells in self.clients]
        return FeedbackGains(self.pairs, self.cells.on(queries), self.bias, self.classes, clients)

    @cached_property
    def shown(self) -> Bools:
        """bool[N]: which rows were ever shown."""
        seen = np.zeros(self.pairs.rows, dtype=bool)
        seen[self.cells.row] = True
        return seen

    @cached_property
    def scale(self) -> float:
        """What 1 means in a gain: the mean over logged queries of the discounted sum of the ten likeliest."""
        return max(float(self.pairs.ideal(self.classes.relevance)[self.cells.queries].mean()), 1e-9)

    def values(self, top: Ints, imputed: float = MIDDLE) -> Floats:
        """float64[..., n]: what lists of rows, int[..., n, PLACES], are worth on the scale of nDCG@10.

        The probability of relevance of entries that were never shown counts by a share.
        """
        relevance = np.where(self.shown, self.classes.relevance, imputed * self.classes.prior)
        return self.pairs.values(top, relevance) / self.scale

    def gain(self, top: Ints, imputed: float = MIDDLE) -> tuple[float, float]:
        """A candidate's mean gain over the logged queries, with its error over what varies as one.

        `top` int[2, Q, PLACES] has the current lists and the candidate's.
        """
        found = spread(self._per_query(top, imputed), self.pairs.unit[self.cells.queries])
        error = float(found.error)
        return float(found.mean), max(error if np.isfinite(error) else UNKNOWN, 1e-9)

    def _per_query(self, top: Ints, imputed: float) -> Floats:
        values = self.values(top[:, self.cells.queries], imputed)
        return np.asarray(values[1] - values[0], dtype=np.float64)

    def views(self, top: Ints) -> GainsByImputation:
        """The gain of a candidate three ways."""
        gain, error = np.array([self.gain(top, share) for share in IMPUTATION_SHARES]).T
        refit = np.full(len(gain), 0.0 if self._refits else UNKNOWN)
        for parts in self._refits:
            means = np.array([[part._per_query(top, s).mean() for s in IMPUTATION_SHARES] for part in parts])
            off = ((means - means.mean(axis=0)) ** 2).sum(axis=0)
            refit = np.maximum(refit, np.sqrt((len(means) - 1) / len(means) * off))
        return GainsByImputation(gain, error, np.append(0.0, refit[1:]))

    @cached_property
    def _refits(self) -> "list[list[FeedbackGains]]":
        """Refits without each fold of the queries, units kept whole, and without each fold of the clients."""
        known, unit = np.unique(self.pairs.unit[self.cells.queries], return_inverse=True)
        fold = (np.random.default_rng(0).permutation(len(known)) % FOLDS)[unit]
        queries = [self.cells.on(self.cells.queries[fold != number]) for number in np.unique(fold)]
        every = (
            [self._again(cells) for cells in part if cells.positive.any()] for part in (queries, self.clients)
        )
        return [parts for parts in every if len(parts) > 1]

    def _again(self, cells: PositionCounts) -> "FeedbackGains":
        """Other cells, places being examined as they are."""
        return FeedbackGains(self.pairs, cells, self.bias, fit(self.pairs, cells, self.bias.exponent, ROUNDS))

    def suggested(self, gains: Matrix, top: Callable[[int], Ints], apart: PositionCounts | None) -> int | None:
        """The candidate of largest gain, float[C, n], that holds in every view and without the largest client.

        It is worth a try. No estimator can tell an act that follows a signal from one that follows worth, so
        nothing ships from acts alone. `top` int[2, Q, PLACES] has the rows that the current configuration and a
        candidate show, `apart` the cells without the largest client, if there are others.
        """
        found = spread(gains, self.pairs.unit[self.cells.queries])
        likely = np.where(found.mean - MIN_GAIN_SE * found.error > 0, found.mean, 0.0)
        rest = self._again(apart) if apart is not None and apart.positive.any() else None
        for candidate in np.argsort(-likely, kind="stable")[:CANDIDATES_EXAMINED].tolist():
            lists = top(candidate) if likely[candidate] > 0 else None
            if lists is None or (apart is not None and rest is None):
                return None
            if self.views(lists).bound > 0 and (rest is None or rest.gain(lists)[0] > 0):
                return int(candidate)
        return None

    def unseen(self, lists: Ints) -> float:
        """The share of a candidate's first places, int[Q, PLACES], with entries that the log never showed."""
        return 1.0 - float(np.append(self.shown, True)[lists[self.cells.queries]].mean())


TEMPER = 50.0
"""However often one entry was shown, it counts as fewer shows than this: one entry can speak only so loud."""
STRENGTH = 20.0  # shows that the starting rates count as, at each place
MIN_LIFT = 1.2  # A relevant entry is acted upon at least so many times as often, or the classes could change roles
FALLBACK = np.array([kind == "clicked" for kind in KINDS])  # the kind whose rates are fitted where no act occurs
MOST_RELEVANT, MOST_OTHER = 0.98, 0.8  # the largest share of shows that either class is acted upon
UPPER = 5  # places over which the lift is averaged


@dataclass(frozen=True)
class Classes:
    """What the log says of every row."""

    relevance: Floats  # float64[N]: the posterior probability of being relevant; `prior` for rows never shown
    prior: Floats  # float64[N]: the probability by the signals alone
    relevant: Floats  # float64[PLACES, A]: the rates of acts on relevant entries (a), by place and kind
    other: Floats  # and on others (b)

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
    least = MIN_LIFT * b[:, positive].sum(axis=1) / np.maximum(a[:, positive].sum(axis=1), 1e-12)
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
