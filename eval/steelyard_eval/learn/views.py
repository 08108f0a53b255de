"""What each candidate gains over the current weights, seen three ways, with two kinds of error.

Entries that were never shown have to be imputed. The three views take the probability that their signals suggest
whole, by half, and by a quarter; a gain that exists in one of them alone is a gain of the imputation. The *query
error* is that of a mean over queries. The *refit error* is the jackknife over folds of queries, with the classes
fitted again without each: what the model itself is unsure of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.decide.posterior import Moments
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.classes import Classes, fit, shown_rows
from steelyard_eval.learn.first_ten import DISCOUNT, CandidateLists

STRENGTHS = (1.0, 0.5, 0.25)
"""How much of what its signals suggest an entry that was never shown is credited with, in each view."""
FOLDS = 6
"""Of the refit jackknife."""
UNKNOWN = 1.0
"""The error of a gain that a single unit shows: nDCG@10 is 1 at most."""
ROUNDS = 20
"""Of EM in each refit."""


@dataclass(frozen=True)
class Views:
    """Gains of G candidates over candidate 0, on the scale of nDCG@10.

    Attributes
    ----------
    gain, error : float64[V, G]
        By view: the mean over queries and its standard error.
    refit : float64[V, G]
        The refit error; 0 in the first view, which imputes most and is only asked for its query error.
    """

    gain: Floats
    error: Floats
    refit: Floats

    @property
    def mean(self) -> Floats:
        """float64[G]: the mean of the views, by which candidates are chosen."""
        return np.asarray(self.gain.mean(axis=0), dtype=np.float64)

    def bound(self, queries: float, refits: float) -> Floats:
        """float64[G]: the least gain over all views, so many query errors and so many refit errors below it."""
        seen = self.gain - queries * self.error
        refitted = self.gain[1:] - refits * np.maximum(self.refit[1:], self.error[1:])
        return np.asarray(np.minimum(seen.min(axis=0), refitted.min(axis=0)), dtype=np.float64)


def imputed(classes: Classes, shown: Bools, strength: float) -> Floats:
    """float64[N]: the probability of relevance; that of entries never shown times a strength."""
    return np.where(shown, classes.relevance, strength * classes.prior)


def statistics(values: Floats, unit: Indices) -> tuple[Floats, Floats]:
    """float64[G] each: the mean difference to candidate 0 over queries, and its standard error over units.

    `values` are float64[G, n], `unit` int64[n].
    """
    sums = Moments.of(values - values[0], unit)
    error = np.where(np.isfinite(sums.error), sums.error, UNKNOWN)
    error[0] = 0.0
    return sums.mean, np.maximum(error, 1e-9)


def views(lists: CandidateLists, cells: Cells, classes: Classes, exponent: float) -> Views:
    """Value every candidate on every logged query, then again without each fold of queries."""
    queries = cells.queries
    shown = shown_rows(lists, cells)
    scale = lists.ideal(classes.relevance, queries)
    unit = lists.unit[queries]
    found = [statistics(lists.values(imputed(classes, shown, s), queries) / scale, unit) for s in STRENGTHS]
    gain, error = (np.array(part) for part in zip(*found, strict=True))
    return Views(gain, error, _refit(lists, cells, exponent))


def _refit(lists: CandidateLists, cells: Cells, exponent: float) -> Floats:
    """float64[V, G]: the jackknife error over folds of queries, units kept whole; 0 in the first view."""
    known, unit = np.unique(lists.unit[cells.queries], return_inverse=True)
    fold = (np.random.default_rng(0).permutation(len(known)) % FOLDS)[unit]
    parts = [cells.queries[fold != one] for one in np.unique(fold)]
    means = np.array([_means(lists, cells.on(kept), exponent) for kept in parts if len(kept)])
    errors = np.zeros((len(STRENGTHS), len(lists)))
    if len(means) < 2:
        errors[1:] = UNKNOWN
        return errors
    errors[1:] = np.sqrt((len(means) - 1) / len(means) * ((means - means.mean(axis=0)) ** 2).sum(axis=0))
    return errors


def _means(lists: CandidateLists, cells: Cells, exponent: float) -> Floats:
    """float64[V - 1, G]: the mean gains of classes fitted to some queries, on those queries."""
    classes = fit(lists, cells, exponent, ROUNDS)
    shown = shown_rows(lists, cells)
    scale = lists.ideal(classes.relevance, cells.queries)
    values = [lists.values(imputed(classes, shown, s), cells.queries) / scale for s in STRENGTHS[1:]]
    return np.array([(one - one[0]).mean(axis=1) for one in values])


def flip(lists: CandidateLists, cells: Cells, classes: Classes, candidate: int) -> float | None:
    """The strength of imputation at which a gain is no longer above two query errors; None where it never falls.

    Near 1: the gain rests on entries that nobody was shown.
    """
    queries, shown = cells.queries, shown_rows(lists, cells)
    scale = lists.ideal(classes.relevance, queries)
    top = lists.top[[0, candidate]][:, queries]
    for strength in np.linspace(1.0, 0.0, 21):
        gains = np.append(imputed(classes, shown, float(strength)), 0.0)
        values = (gains[top] @ DISCOUNT) / scale
        gain, error = statistics(values, lists.unit[queries])
        if gain[1] - 2 * error[1] <= 0:
            return float(round(strength, 2))
    return None


def unseen(lists: CandidateLists, cells: Cells, candidate: int) -> float:
    """The share of a candidate's first places that hold entries the log never showed."""
    shown = np.append(shown_rows(lists, cells), True)
    return 1.0 - float(shown[lists.top[candidate][cells.queries]].mean())


def per_query(
    lists: CandidateLists, cells: Cells, classes: Classes, candidate: int, strength: float = 0.5
) -> Floats:
    """float64[n]: the gain of one candidate on each logged query, in the middle view."""
    queries, shown = cells.queries, shown_rows(lists, cells)
    gains = np.append(imputed(classes, shown, strength), 0.0) / lists.ideal(classes.relevance, queries)
    top = lists.top[[0, candidate]][:, queries]
    values = gains[top] @ DISCOUNT
    return np.asarray(values[1] - values[0], dtype=np.float64)
