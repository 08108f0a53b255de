"""What the labels so far show of each comparison, and how many more it needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.judgments import UNJUDGED
from steelyard_eval.measures.paired import POWER, mean_interval
from steelyard_eval.measures.spread import ALPHA
from steelyard_eval.notebook.label.judgments import GRADES
from steelyard_eval.notebook.label.pool import Pool, sampling_weights

ENOUGH = 30
"""Labels, below which no comparison is settled: what few stand for is a guess."""
LEAST, FEWEST = 2, 10
"""Whole queries, below which nothing is shown, and below which nothing is settled."""


@dataclass(frozen=True)
class Standing:
    """One comparison as the labels show it.

    Attributes
    ----------
    challenger, baseline: str.
    judged: Labels that it rests on.
    delta, low, high: The difference of the discounted gain of the first ten (DCG, grades as shares of the
        highest), challenger less baseline, mean over queries, with its 95% interval: for other queries, and for
        the labels not given.
    verdict: better or worse when the interval lies beside 0, else open.
    needed: Labels still to give until a difference of this size would show with 80% power, be it more than there
        are pairs; 0 when it shows, None when nothing can be said: a difference below its own standard error may be
        of either sign, and the number with it thousands or few.
    """

    challenger: str
    baseline: str
    judged: int
    delta: float
    low: float
    high: float
    verdict: str
    needed: int | None


def standings(pool: Pool, grades: Indices, queries: Indices | None = None) -> list[Standing]:
    """Each contender against the first one, from the grades of the pool (int64[P], see `Session.grades`).

    Labels count as far as the order of the pool has no gap, because only then it is known what they stand for; or
    those of whole `queries`, int64[d], which were drawn at random. While few are new, and where the data set says
    that all are there, pairs without one are not relevant, as in `compare`: else each new one would stand for
    hundreds.
    What the judge cannot say counts as not relevant.
    """
    if queries is not None:
        return _of_queries(pool, grades, queries)
    judged = grades[pool.order] != UNJUDGED
    count = len(judged) if judged.all() else int(np.argmin(judged))
    total = int((pool.known >= 0).sum() + (grades[pool.order[:count]] >= 0).sum())
    weights = np.ones(len(pool))
    if count >= min(ENOUGH, len(pool.order)) and not pool.dataset.complete:
        weights[pool.open] = sampling_weights(pool.value[pool.open], pool.keys, count)
    gains = weights * np.maximum(grades, 0) / GRADES[-1]
    every = np.arange(len(pool.queries))
    early = count + int((pool.known >= 0).sum()) < min(ENOUGH, len(pool))
    return [_standing(pool, i, gains, every, (count, total), early) for i in range(1, len(pool.labels))]


def _of_queries(pool: Pool, grades: Indices, queries: Indices) -> list[Standing]:
    if len(queries) < LEAST:
        return []
    gains = np.maximum(grades, 0) / GRADES[-1]
    count = int(np.isin(pool.query[grades >= 0], queries).sum())
    early = len(queries) < min(FEWEST, len(pool.queries))
    return [_standing(pool, i, gains, queries, (count, count), early) for i in range(1, len(pool.labels))]


def _standing(
    pool: Pool, at: int, gains: Floats, queries: Indices, counts: tuple[int, int], early: bool
) -> Standing:
    """From labels of these queries; `counts` are those that were drawn, and with those that were known."""
    count, total = counts
    differences = np.bincount(pool.query, gains * (pool.gain[at] - pool.gain[0]), len(pool.queries))
    gain = mean_interval(differences[queries], unit_numbers(pool.queries)[queries].tolist())
    beside = (gain.low > 0 or gain.high < 0) and not early
    verdict = "open" if not beside else "better" if gain.mean > 0 else "worse"
    needed = 0 if beside else None if early else _needed(gain.mean, gain.high - gain.mean, count)
    return Standing(pool.labels[at], pool.labels[0], total, gain.mean, gain.low, gain.high, verdict, needed)


def _needed(mean: float, reach: float, judged: int) -> int | None:
    """Labels to come until the interval is so small: its reach falls with the root of their number."""
    error = reach / float(ndtri(1 - ALPHA / 2))
    if mean == 0 or abs(mean) < error:
        return None
    return max(1, math.ceil(judged * ((POWER * error / mean) ** 2 - 1)))
