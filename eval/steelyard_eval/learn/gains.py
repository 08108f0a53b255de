"""What the acts of a log say that candidates gain: a second measurement, which labels correct and never replace.

Entries that were never shown have to be imputed. The three views take the probability that their signals suggest
whole, by half, and by a quarter; a gain that exists in one of them alone is a gain of the imputation. The *query
error* is that of a mean over queries. The *refit error* is the jackknife over folds, of queries and of clients
(whichever is larger), with the classes fitted again without each: what the model itself is unsure of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard_eval.learn.classes import Classes, fit, shown_rows
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

    # gain, error: float64[V]: By view: the mean over queries and its standard error
    gain: Floats
    error: Floats
    # float64[V]: the refit error; 0 in the first view, which imputes most and is only asked for its query error
    refit: Floats

    @property
    def bound(self) -> float:
        """The least gain over all views, `SURE` query errors and refit errors below it."""
        seen = self.gain - SURE * self.error
        refitted = self.gain[1:] - SURE * np.maximum(self.refit[1:], self.error[1:])
        return float(min(seen.min(), refitted.min()))


@dataclass(frozen=True)
class FeedbackGains:
    """What was learned from the cells of a log."""

    # pairs, cells: what was shown, and acted upon
    pairs: LoggedPairs
    cells: PositionCounts
    # bias, classes: how places are examined, and what is relevant
    bias: PositionBias
    classes: Classes
    # the cells without each of a few folds of the clients; empty where there is one client alone
    clients: Sequence[PositionCounts] = field(default=())

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
        return shown_rows(self.pairs, self.cells)

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
        refits = [self._jackknife(top, parts) for parts in (self._folds, self._client_folds) if len(parts) > 1]
        refit = np.max(refits, axis=0) if refits else np.full(len(IMPUTATION_SHARES) - 1, UNKNOWN)
        return GainsByImputation(gain, error, np.append(0.0, refit))

    def _jackknife(self, top: Ints, parts: Sequence[FeedbackGains]) -> Floats:
        """float64[V - 1]: the jackknife error over refits, each without one fold."""
        means = np.array([[part._per_query(top, s).mean() for s in IMPUTATION_SHARES[1:]] for part in parts])
        share = (len(means) - 1) / len(means)
        return np.asarray(np.sqrt(share * ((means - means.mean(axis=0)) ** 2).sum(axis=0)), dtype=np.float64)

    @cached_property
    def _folds(self) -> list[FeedbackGains]:
        """Refits without each fold of the queries, units kept whole."""
        known, unit = np.unique(self.pairs.unit[self.cells.queries], return_inverse=True)
        fold = (np.random.default_rng(0).permutation(len(known)) % FOLDS)[unit]
        kept = [self.cells.on(self.cells.queries[fold != number]) for number in np.unique(fold)]
        return [self._again(cells) for cells in kept if cells.positive.any()]

    @cached_property
    def _client_folds(self) -> list[FeedbackGains]:
        """Refits without each fold of the clients."""
        return [self._again(cells) for cells in self.clients if cells.positive.any()]

    def _again(self, cells: PositionCounts) -> FeedbackGains:
        """Other cells, places being examined as they are."""
        classes = fit(self.pairs, cells, self.bias.exponent, ROUNDS)
        return FeedbackGains(self.pairs, cells, self.bias, classes)

    def suggested(self, gains: Matrix, top: Callable[[int], Ints], apart: PositionCounts | None) -> int | None:
        """The candidate of largest gain, float[C, n], that holds in every view and without the largest client.

        It is worth a try. No estimator can tell an act that follows a signal from one that follows worth, so
        nothing ships from acts alone. `top` int[2, Q, PLACES] has the rows that the current configuration and a
        candidate show, `apart` the cells without the largest client, if there are others.
        """
        found = spread(gains, self.pairs.unit[self.cells.queries])
        likely = np.where(found.mean - SURE * found.error > 0, found.mean, -np.inf)
        rest = self._again(apart) if apart is not None and apart.positive.any() else None
        for candidate in np.argsort(-likely, kind="stable")[:ASKED].tolist():
            if likely[candidate] <= 0:
                return None
            lists = top(candidate)
            alone = apart is None or (rest is not None and rest.gain(lists)[0] > 0)
            if self.views(lists).bound > 0 and alone:
                return int(candidate)
        return None

    def unseen(self, lists: Ints) -> float:
        """The share of a candidate's first places, int[Q, PLACES], with entries that the log never showed."""
        return 1.0 - float(np.append(self.shown, True)[lists[self.cells.queries]].mean())
