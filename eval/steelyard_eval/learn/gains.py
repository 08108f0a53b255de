"""What the acts of a log say that candidates gain: a second measurement, which labels correct and never replace.

Entries that were never shown have to be imputed. The three views take the probability that their signals suggest
whole, by half, and by a quarter; a gain that exists in one of them alone is a gain of the imputation. The *query
error* is that of a mean over queries. The *refit error* is the jackknife over folds, of queries and of clients
(whichever is larger), with the classes fitted again without each: what the model itself is unsure of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard_eval.learn.classes import Classes, fit
from steelyard_eval.learn.counts import PositionCounts
from steelyard_eval.learn.position_bias import PositionBias, examine
from steelyard_eval.learn.top10 import LoggedPairs
from steelyard_eval.measures.spread import Matrix, spread

IMPUTATION_SHARES = (1.0, 0.5, 0.25)
"""How much of what its signals suggest an entry that was never shown is credited with, in each view."""
MIDDLE = 0.5
FOLDS = 6  # of the refit jackknife
UNKNOWN = 1.0  # the error of a gain that a single unit shows: nDCG@10 is 1 at most
ROUNDS = 20  # of EM in each refit
SURE = 2.0  # query errors and refit errors that a gain has to exceed in every view to be worth a try
ASKED = 20  # candidates that are looked at closely, those of largest gain


@dataclass(frozen=True)
class GainsByImputation:
    """One candidate's gain over the current configuration, on the scale of nDCG@10."""

    gain: Floats  # float64[V]: by view, the mean over queries
    error: Floats  # float64[V]: its standard error
    refit: Floats  # float64[V]: 0 in the first view, which imputes most and is only asked for its query error

    @property
    def bound(self) -> float:
        """The least gain over all views, `SURE` query errors and refit errors below it."""
        seen = self.gain - SURE * self.error
        refitted = self.gain[1:] - SURE * np.maximum(self.refit[1:], self.error[1:])
        return float(min(seen.min(), refitted.min()))


@dataclass(frozen=True)
class FeedbackGains:
    """What was learned from the cells of a log."""

    pairs: LoggedPairs
    cells: PositionCounts  # what was shown of them, and acted upon
    bias: PositionBias  # how places are examined
    classes: Classes  # what is relevant
    # the cells without each of a few folds of the clients; empty where there is one client alone
    clients: Sequence[PositionCounts] = ()

    @classmethod
    def of(
        cls,
        pairs: LoggedPairs,
        cells: PositionCounts,
        given: Floats | None = None,
        clients: Sequence[PositionCounts] = (),
    ) -> FeedbackGains:
        """Learn from cells; `given` float64[PLACES] are probabilities of examination that the log holds."""
        bias = examine(pairs, cells, given)
        return cls(pairs, cells, bias, fit(pairs, cells, bias.exponent), clients)

    def on(self, queries: Indices) -> FeedbackGains:
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
        ideal = self.pairs.ideal(self.classes.relevance)
        return max(float(ideal[self.cells.queries].mean()), 1e-9)

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
    def _refits(self) -> list[list[FeedbackGains]]:
        """Refits without each fold of the queries, units kept whole, and without each fold of the clients."""
        known, unit = np.unique(self.pairs.unit[self.cells.queries], return_inverse=True)
        fold = (np.random.default_rng(0).permutation(len(known)) % FOLDS)[unit]
        queries = [self.cells.on(self.cells.queries[fold != number]) for number in np.unique(fold)]
        every = (
            [self._again(cells) for cells in part if cells.positive.any()] for part in (queries, self.clients)
        )
        return [parts for parts in every if len(parts) > 1]

    def _again(self, cells: PositionCounts) -> FeedbackGains:
        """Other cells, places being examined as they are."""
        return FeedbackGains(self.pairs, cells, self.bias, fit(self.pairs, cells, self.bias.exponent, ROUNDS))

    def suggested(self, gains: Matrix, top: Callable[[int], Ints], apart: PositionCounts | None) -> int | None:
        """The candidate of largest gain, float[C, n], that holds in every view and without the largest client.

        It is worth a try. No estimator can tell an act that follows a signal from one that follows worth, so
        nothing ships from acts alone. `top` int[2, Q, PLACES] has the rows that the current configuration and a
        candidate show, `apart` the cells without the largest client, if there are others.
        """
        found = spread(gains, self.pairs.unit[self.cells.queries])
        likely = np.where(found.mean - SURE * found.error > 0, found.mean, 0.0)
        rest = self._again(apart) if apart is not None and apart.positive.any() else None
        for candidate in np.argsort(-likely, kind="stable")[:ASKED].tolist():
            lists = top(candidate) if likely[candidate] > 0 else None
            if lists is None or (apart is not None and rest is None):
                return None
            if self.views(lists).bound > 0 and (rest is None or rest.gain(lists)[0] > 0):
                return int(candidate)
        return None

    def unseen(self, lists: Ints) -> float:
        """The share of a candidate's first places, int[Q, PLACES], with entries that the log never showed."""
        return 1.0 - float(np.append(self.shown, True)[lists[self.cells.queries]].mean())
