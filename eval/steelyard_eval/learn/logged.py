"""What a candidate's lists would have been worth, in acts per show, by the probabilities that our own log has.

*IPS* weighs every show by the other policy's probability over the logged one; *SNIPS* divides by the sum of these
weights instead of the number of shows (Swaminathan and Joachims, NeurIPS 2015); *DR* starts from a model of the
reward and corrects it by what was seen (Dudik, Langford and Li, ICML 2011). All three need overlap: where weights
are few and huge, none of them means anything, and the answer is refused. They are computed from sums over (query,
entry, place), the modelled rewards from two classes of entries that were fitted on the other half of the queries,
so no act corrects itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard_eval.common.documents.learn import OffPolicyRecord, PolicyValue
from steelyard_eval.learn.acts import POSITIVE
from steelyard_eval.learn.case import LogCase
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.classes import fit
from steelyard_eval.learn.first_ten import LoggedPairs
from steelyard_eval.measures.statistics import normal_interval

LEAST_EFFECTIVE = 100.0
"""Shows that the weighted ones have to be worth."""
MEAN_WEIGHT = (0.8, 1.25)
"""Where the policies overlap, weights have a mean of 1."""


def refusal_of(effective: float, mean_weight: float) -> str:
    """Why weights cannot be believed; empty where they can."""
    if effective < LEAST_EFFECTIVE:
        needed = f"{LEAST_EFFECTIVE:.0f} are needed; log more exploration"
        return f"the weighted shows are worth {effective:.0f}, and {needed}"
    low, high = MEAN_WEIGHT
    if not low <= mean_weight <= high:
        return f"the weights have a mean of {mean_weight:.2f} instead of 1, so the policies do not overlap"
    return ""


@dataclass(frozen=True)
class Weighed:
    """The shows with a logged probability p, summed by (query, place, shown row); M sums.

    Attributes
    ----------
    query, place, row : int64[M]; row is -1 for an entry that is no candidate's
    shows : float64[M]
    inverse, squares, acts, act_squares : float64[M]
        The sums of 1/p, 1/p^2, y/p and y/p^2; y is 1 for an act that speaks for the entry.
    """

    query: Indices
    place: Indices
    row: Indices
    shows: Floats
    inverse: Floats
    squares: Floats
    acts: Floats
    act_squares: Floats

    @classmethod
    def of(cls, case: LogCase, queries: Indices) -> Weighed:
        """Weigh the shows that have one, of some queries."""
        hits = case.hits
        kept = (hits.tally.weighed[:, 0] > 0) & np.isin(hits.query, queries)
        columns = hits.tally.weighed[kept].T
        return cls(hits.query[kept], hits.place[kept], hits.row(case.pairs)[kept], *columns)


def of_log(case: LogCase, queries: Indices, top: Ints, name: str) -> OffPolicyRecord | None:
    """What a candidate's lists, int[Q, PLACES] of rows, would have been worth on some queries.

    None where the log has no probabilities.
    """
    shown = Weighed.of(case, queries)
    if not len(shown.query):
        return None
    return valued(case.pairs, case.cells, shown, top, name, case.learned.examination.exponent)


def valued(
    pairs: LoggedPairs, cells: Cells, shown: Weighed, top: Ints, name: str, exponent: float
) -> OffPolicyRecord:
    """Acts per show of a candidate: by inverse propensities, self-normalised, and doubly robust.

    A show is of use where the candidate has that entry at that place. Intervals are normal, from exact sums.
    """
    theirs = top[shown.query, shown.place].astype(np.int64)
    target = (shown.row == theirs) & (theirs >= 0)
    n = float(shown.shows.sum())
    weights, squares, acts, act_squares = (
        float(column[target].sum()) for column in (shown.inverse, shown.squares, shown.acts, shown.act_squares)
    )
    ips, snips = acts / n, acts / max(weights, 1e-300)
    residual = act_squares * (1 - 2 * snips) + squares * snips**2
    largest = shown.squares[target] / np.maximum(shown.inverse[target], 1e-300)
    effective, mean = weights**2 / max(squares, 1e-300), weights / n
    return {
        "of": name,
        "ips": _normal(ips, act_squares / n - ips**2, n),
        "snips": _normal(snips, residual / max(weights, 1e-300) ** 2, 1.0),
        "dr": _robust(shown, target, _rewards(pairs, cells, shown, theirs, exponent)),
        "effective": effective,
        "mean_weight": mean,
        "largest": float(np.max(largest, initial=0.0)),
        "shows": int(n),
        "refusal": refusal_of(effective, mean),
    }


def _rewards(pairs: LoggedPairs, cells: Cells, shown: Weighed, row: Indices, exponent: float) -> Floats:
    """float64[M]: the acts expected of a row at its place, by its signals and the other half of the queries."""
    half = np.random.default_rng(0).integers(0, 2, len(pairs.queries))
    rewards = np.zeros(len(row))
    for part in (0, 1):
        others = cells.where(half[cells.query] != part)
        if not len(others):
            continue
        classes = fit(pairs, others, exponent)
        prior = np.append(classes.prior, 0.0)
        a, b = classes.relevant[:, POSITIVE].sum(axis=1), classes.other[:, POSITIVE].sum(axis=1)
        inside = half[shown.query] == part
        chance, place = prior[row[inside]], shown.place[inside]
        rewards[inside] = np.where(row[inside] >= 0, chance * a[place] + (1 - chance) * b[place], 0.0)
    return rewards


def _robust(shown: Weighed, target: Bools, reward: Floats) -> PolicyValue:
    """The mean over shows of the modelled reward, corrected by (y - reward) / p where the target was shown."""
    n = float(shown.shows.sum())
    correction = np.where(target, shown.acts - reward * shown.inverse, 0.0)
    spread = shown.act_squares * (1 - 2 * reward) + reward**2 * shown.squares
    squares = shown.shows * reward**2 + 2 * reward * correction + np.where(target, spread, 0.0)
    mean = float((shown.shows * reward + correction).sum() / n)
    return _normal(mean, float(squares.sum()) / n - mean**2, n)


def _normal(mean: float, variance: float, n: float) -> PolicyValue:
    """A mean of n with its interval."""
    interval = normal_interval(mean, float(np.sqrt(max(variance, 0.0) / n)))
    return {"value": interval.mean, "low": interval.low, "high": interval.high}
