"""What the acts of a log say that candidates gain: a second measurement, which labels correct and never replace.

Entries that were never shown have to be imputed. The three views take the probability that their signals suggest
whole, by half, and by a quarter; a gain that exists in one of them alone is a gain of the imputation. The *query
error* is that of a mean over queries. The *refit error* is the jackknife over folds, of queries and of clients
(whichever is larger), with the classes fitted again without each: what the model itself is unsure of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.classes import Classes, fit, shown_rows
from steelyard_eval.learn.examination import Examination, examine
from steelyard_eval.learn.first_ten import LoggedPairs
from steelyard_eval.measures.spread import Matrix, spread

STRENGTHS = (1.0, 0.5, 0.25)
"""How much of what its signals suggest an entry that was never shown is credited with, in each view."""
MIDDLE = 0.5
FOLDS = 6
"""Of the refit jackknife."""
UNKNOWN = 1.0
"""The error of a gain that a single unit shows: nDCG@10 is 1 at most."""
ROUNDS = 20
"""Of EM in each refit."""
SURE = 2.0
"""Query errors and refit errors that a gain has to exceed in every view to be worth a try."""

ASKED = 20
"""Candidates that are looked at closely, those of largest gain."""


@dataclass(frozen=True)
class Views:
    """One candidate's gain over the current configuration, on the scale of nDCG@10.

    Attributes
    ----------
    gain, error : float64[V]
        By view: the mean over queries and its standard error.
    refit : float64[V]
        The refit error; 0 in the first view, which imputes most and is only asked for its query error.
    """

    gain: Floats
    error: Floats
    refit: Floats

    @property
    def bound(self) -> float:
        """The least gain over all views, `SURE` query errors and refit errors below it."""
        seen = self.gain - SURE * self.error
        refitted = self.gain[1:] - SURE * np.maximum(self.refit[1:], self.error[1:])
        return float(min(seen.min(), refitted.min()))


@dataclass(frozen=True)
class ClickGains:
    """What was learned from the cells of a log.

    Attributes
    ----------
    pairs, cells : what was shown, and acted upon.
    examination, classes : how places are examined, and what is relevant.
    clients : the cells without each of a few folds of the clients; empty where there is one client alone.
    """

    pairs: LoggedPairs
    cells: Cells
    examination: Examination
    classes: Classes
    clients: Sequence[Cells] = field(default=())

    @classmethod
    def of(
        cls, pairs: LoggedPairs, cells: Cells, given: Floats | None = None, clients: Sequence[Cells] = ()
    ) -> ClickGains:
        """Learn from cells; `given` float64[PLACES] are probabilities of examination that the log holds."""
        examination = examine(pairs, cells, given)
        return cls(pairs, cells, examination, fit(pairs, cells, examination.exponent), clients)

    @cached_property
    def shown(self) -> Bools:
        """bool[N]: which rows were ever shown."""
        return shown_rows(self.pairs, self.cells)

    @cached_property
    def scale(self) -> float:
        """What 1 means in a gain: the mean over logged queries of the discounted sum of the ten likeliest."""
        ideal = self.pairs.ideal(self.classes.relevance)
        return max(float(ideal[self.cells.queries].mean()), 1e-9)

    def relevance(self, strength: float = MIDDLE) -> Floats:
        """float64[N]: the probability of relevance; that of entries never shown times a strength."""
        return np.where(self.shown, self.classes.relevance, strength * self.classes.prior)

    def values(self, top: Ints, strength: float = MIDDLE) -> Floats:
        """float64[..., n]: what lists of rows, int[..., n, PLACES], are worth on the scale of nDCG@10."""
        return self.pairs.values(top, self.relevance(strength)) / self.scale

    def per_query(self, top: Ints, strength: float = MIDDLE) -> Floats:
        """float64[n]: a candidate's gain on each logged query; `top` int[2, Q, PLACES], current and candidate."""
        values = self.values(top[:, self.cells.queries], strength)
        return np.asarray(values[1] - values[0], dtype=np.float64)

    def views(self, top: Ints) -> Views:
        """The gain of a candidate three ways; `top` int[2, Q, PLACES] has the current lists and its own."""
        unit = self.pairs.unit[self.cells.queries]
        means = [mean_of(self.per_query(top, strength), unit) for strength in STRENGTHS]
        gain, error = np.array(means).T
        refits = [self._jackknife(top, parts) for parts in (self._folds, self._client_folds) if len(parts) > 1]
        refit = np.max(refits, axis=0) if refits else np.full(len(STRENGTHS) - 1, UNKNOWN)
        return Views(gain, error, np.append(0.0, refit))

    def _jackknife(self, top: Ints, parts: Sequence[ClickGains]) -> Floats:
        """float64[V - 1]: the jackknife error over refits, each without one fold."""
        means = np.array([[part.per_query(top, s).mean() for s in STRENGTHS[1:]] for part in parts])
        share = (len(means) - 1) / len(means)
        return np.asarray(np.sqrt(share * ((means - means.mean(axis=0)) ** 2).sum(axis=0)), dtype=np.float64)

    @cached_property
    def _folds(self) -> list[ClickGains]:
        """Refits without each fold of the queries, units kept whole."""
        known, unit = np.unique(self.pairs.unit[self.cells.queries], return_inverse=True)
        fold = (np.random.default_rng(0).permutation(len(known)) % FOLDS)[unit]
        kept = [self.cells.on(self.cells.queries[fold != number]) for number in np.unique(fold)]
        return [self._again(cells) for cells in kept if cells.positive.any()]

    @cached_property
    def _client_folds(self) -> list[ClickGains]:
        """Refits without each fold of the clients."""
        return [self._again(cells) for cells in self.clients if cells.positive.any()]

    def _again(self, cells: Cells) -> ClickGains:
        """Other cells, places being examined as they are."""
        classes = fit(self.pairs, cells, self.examination.exponent, ROUNDS)
        return ClickGains(self.pairs, cells, self.examination, classes)

    def without(self, cells: Cells, top: Ints) -> tuple[float, float]:
        """The gain of a candidate, and its query error, by other cells alone; NaN where nothing is acted upon."""
        if not cells.positive.any():
            return float("nan"), float("nan")
        return mean_of(self._again(cells).per_query(top), self.pairs.unit[cells.queries])

    def flip(self, top: Ints) -> float | None:
        """The strength of imputation at which a gain falls to two query errors; None where it never does.

        Near 1: the gain rests on entries that nobody was shown.
        """
        unit = self.pairs.unit[self.cells.queries]
        for strength in np.linspace(1.0, 0.0, 21):
            gain, error = mean_of(self.per_query(top, float(strength)), unit)
            if gain - SURE * error <= 0:
                return float(round(strength, 2))
        return None

    def suggested(self, gains: Matrix, top: Callable[[int], Ints], parts: Mapping[str, Cells]) -> int | None:
        """The candidate of largest gain that holds in every view and without each of the parts; None without any.

        It is worth a try. No estimator can tell an act that follows a signal from one that follows worth, so
        nothing ships from acts alone.

        Parameters
        ----------
        gains : float[C, n], by the middle view on the logged queries.
        top : int[2, Q, PLACES], the rows that the current configuration and a candidate show.
        parts : the cells without the largest client, and so on.
        """
        found = spread(gains, self.pairs.unit[self.cells.queries])
        likely = np.where(found.mean - SURE * found.error > 0, found.mean, -np.inf)
        for candidate in np.argsort(-likely, kind="stable")[:ASKED].tolist():
            if likely[candidate] <= 0:
                return None
            lists = top(candidate)
            if self.views(lists).bound > 0 and all(self.without(part, lists)[0] > 0 for part in parts.values()):
                return int(candidate)
        return None

    def unseen(self, lists: Ints) -> float:
        """The share of a candidate's first places, int[Q, PLACES], with entries that the log never showed."""
        return 1.0 - float(np.append(self.shown, True)[lists[self.cells.queries]].mean())


def mean_of(gains: Floats, unit: Indices) -> tuple[float, float]:
    """The mean of gains on queries, float64[n], and its standard error over units, int64[n]."""
    found = spread(gains, unit)
    error = float(found.error)
    return float(found.mean), max(error if np.isfinite(error) else UNKNOWN, 1e-9)
