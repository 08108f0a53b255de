"""How much less a place is examined than the first, ``place ** -exponent``, and what acts follow beside relevance.

The exponent has three sources, the best that the log allows. *Given*: the log holds the probability that each
place was examined. *Harvested*: some entries were shown at several places of one query, so their relevance
cancels (intervention harvesting: Agarwal et al., WSDM 2019). *Joint*: acts within a query fall on places and
entries in proportion to ``place ** -exponent * exp(w . signals)``, ``w >= 0``, both fitted together (Wang et al.,
WSDM 2018). On labelled queries the label is one of the signals: if it explains acts, other weights are near 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.learn.counts import PositionCounts, column_sums, sums
from steelyard_eval.learn.first_ten import PLACES, LoggedPairs
from steelyard_eval.measures.logistic import newton

MIN_QUERIES_FOR_BIAS = 10  # labelled queries with an act, below which nothing is said
MIN_BIAS_SE = 2.0  # standard errors above 0 from which on acts follow a signal
LOOSE = 0.1  # precision of the weights' prior around 0
RELEVANCE = "the label"
STEEPEST = 3.0  # the largest exponent that is believed
LOUDEST = 200.0
"""Acts on one query count as fewer than this, however many there are: one query can speak only so loud."""
PRIOR_EXPONENT = 1.0  # what estimates are pulled towards
HARVESTED_ERROR, HARVESTED_ACTS = 0.15, 200
"""A harvested exponent is preferred where its standard error is smaller and it rests on so many acts."""
FEW_ACTS = 100  # with fewer the exponent is hardly more than what it is pulled towards, whatever its error says


@dataclass(frozen=True)
class FeedbackBias:
    """One weight: `delta` is the logarithm of how many times as likely the highest value is acted upon."""

    label: str
    delta: float
    error: float

    @property
    def followed(self) -> bool:
        """Whether acts follow it."""
        return self.delta > MIN_BIAS_SE * self.error

    @property
    def ends(self) -> tuple[float, float]:
        """The 95% interval."""
        return self.delta - 1.96 * self.error, self.delta + 1.96 * self.error


def feedback_biases(
    pairs: LoggedPairs, cells: PositionCounts, qrels: Mapping[str, Mapping[str, int]]
) -> list[FeedbackBias]:
    """The weights of the label and of every signal; empty where too few labelled queries have acts."""
    labelled = np.array([name in qrels for name in pairs.queries])
    kept, acts = _acted(cells.where(labelled[cells.query]))
    if len(kept.queries) < MIN_QUERIES_FOR_BIAS or not pairs.names:
        return []
    names = [pairs.queries[query] for query in kept.query.tolist()]
    ids = [pairs.entries[entry] for entry in pairs.entry[kept.row].tolist()]
    grade = np.array([max(qrels[name].get(id_, 0), 0) for name, id_ in zip(names, ids, strict=True)], dtype=float)
    design = np.column_stack(
        [grade / max(float(grade.max()), 1.0), pairs.features[kept.row], -np.log(kept.place + 1.0)]
    )
    penalty = np.full(design.shape[1], LOOSE)
    fitted, covariance = conditional(design, kept.query, np.log(kept.shown), acts, penalty, ())
    errors = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
    return [
        FeedbackBias(name, float(weight), float(error))
        for name, weight, error in zip((RELEVANCE, *pairs.names), fitted, errors, strict=False)
    ]


@dataclass(frozen=True)
class PositionBias:
    """How places are examined."""

    estimate: float  # before it is brought to 0..`STEEPEST`
    error: float  # its standard error
    source: str  # given, harvested or joint

    @property
    def exponent(self) -> float:
        """The estimate, brought to 0..`STEEPEST`."""
        return float(np.clip(self.estimate, 0.0, STEEPEST))


def curve(exponent: float) -> Floats:
    """float64[PLACES]: ``place ** -exponent``."""
    return np.arange(1, PLACES + 1.0) ** -exponent


def examine(pairs: LoggedPairs, cells: PositionCounts, given: Floats | None = None) -> PositionBias:
    """Estimate the exponent from the best source there is.

    `given` (float64[PLACES]) is the mean of the probabilities that a log holds, NaN for places without any.
    """
    if given is not None and np.isfinite(given).sum() > 1:
        return from_given(given)
    harvested, acts = exponent_by_intervention_harvesting(cells)
    if harvested.error < HARVESTED_ERROR and acts >= HARVESTED_ACTS:
        return harvested
    return joint(pairs, cells)


def from_given(given: Floats) -> PositionBias:
    """The exponent that fits given probabilities best, by least squares of their logarithms."""
    known = np.isfinite(given) & (given > 0)
    slope, _ = np.polyfit(np.log(np.arange(1, PLACES + 1.0)[known]), np.log(given[known]), 1)
    return PositionBias(-float(slope), 0.0, "given")


def exponent_by_intervention_harvesting(cells: PositionCounts, strength: float = 8.0) -> tuple[PositionBias, int]:
    """The exponent from entries that were shown at two or more places, and the number of acts that inform it.

    The probability of an act is split between places by ``shows * place ** -exponent``, entry by entry, so no
    model of relevance is needed. A normal prior around `PRIOR_EXPONENT`, of precision `strength`, keeps it finite.
    """
    _, pair = np.unique(cells.row, return_inverse=True)
    acts = sums(pair, cells.positive)[pair]
    use = (np.bincount(pair)[pair] > 1) & (acts > 0)
    if not use.any():
        return PositionBias(PRIOR_EXPONENT, np.inf, "harvested"), 0
    slope = -np.log(cells.place[use] + 1.0)[:, None]
    offset = np.log(cells.shown[use]) + PRIOR_EXPONENT * slope[:, 0]
    fitted, covariance = conditional(slope, pair[use], offset, cells.positive[use], np.array([strength]), ())
    found = PositionBias(float(PRIOR_EXPONENT + fitted[0]), float(np.sqrt(covariance[0, 0])), "harvested")
    return found, int(cells.positive[use].sum())


def joint(pairs: LoggedPairs, cells: PositionCounts, precision: float = 2.0) -> PositionBias:
    """The exponent together with weights of the signals, by the likelihood of which entries were acted upon."""
    kept, acts = _acted(cells)
    if not len(kept):
        return PositionBias(PRIOR_EXPONENT, np.inf, "joint")
    slope = -np.log(kept.place + 1.0)
    features = np.column_stack([pairs.features[kept.row], slope])
    signals = range(features.shape[1] - 1)
    penalty = np.array([*(0.1 * precision for _ in signals), precision])
    offset = np.log(kept.shown) + PRIOR_EXPONENT * slope
    fitted, covariance = conditional(features, kept.query, offset, acts, penalty, signals)
    return PositionBias(float(PRIOR_EXPONENT + fitted[-1]), float(np.sqrt(max(covariance[-1, -1], 1e-6))), "joint")


def _acted(cells: PositionCounts) -> tuple[PositionCounts, Floats]:
    """The cells of queries with an act, and the acts of each, which count as fewer than `LOUDEST` a query."""
    kept = cells.where(sums(cells.query, cells.positive)[cells.query] > 0)
    return kept, kept.positive / (1.0 + sums(kept.query, kept.positive)[kept.query] / LOUDEST)


def conditional(
    features: Floats, group: Indices, offset: Floats, acts: Floats, penalty: Floats, positive: Sequence[int]
) -> tuple[Floats, Floats]:
    """Fit ``P(act on cell | an act in its group) ~ exp(offset + features . b)`` by Newton's method.

    `features`: float64[M, P]; group : int64[M], alike for cells of one group, in one run; offset, acts :
    float64[M]; `penalty`: float64[P]: precision of a normal prior around 0; `positive`: the coefficients that may
    not be below 0.
    Returns float64[P] and float64[P, P]: The coefficients and their sandwich covariance over groups.
    """
    order = np.argsort(group, kind="stable")
    features, offset, acts = features[order], offset[order], acts[order]
    _, group = np.unique(group[order], return_inverse=True)
    begins = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    total = sums(group, acts)

    def expected(b: Floats) -> Floats:  # the softmax within each group, times its acts
        linear = features @ b + offset
        odds = np.exp(linear - np.maximum.reduceat(linear, begins)[group])
        return np.asarray(total[group] * (odds / sums(group, odds)[group]), dtype=np.float64)

    def likelihood(b: Floats) -> tuple[Floats, Floats]:
        often = expected(b)
        weighted = features * often[:, None]
        means = column_sums(group, weighted, len(total))
        within = means / np.maximum(total, 1e-12)[:, None]
        curvature = features.T @ weighted - means.T @ within + 1e-9 * np.eye(len(b))
        return features.T @ (acts - often), curvature

    start = np.zeros(features.shape[1])
    fit = newton(likelihood, start, penalty, positive, longest=4.0, rounds=25, until=1e-5, held=True)
    scores = column_sums(group, features * (acts - expected(fit.at))[:, None], len(total))
    inverse = np.linalg.inv(fit.curvature)
    return fit.coefficients, np.asarray(inverse @ (scores.T @ scores) @ inverse, dtype=np.float64)
