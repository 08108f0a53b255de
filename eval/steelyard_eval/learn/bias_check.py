"""What acts follow beside relevance: how much a signal raises the chance of an act, given the label and the place.

Within a query, acts fall on what was shown in proportion to ``place ** -e * exp(w . (grade, signals))``, fitted as
in `position_bias.conditional` on labelled queries alone. Where acts follow worth, the signals' weights are near 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from steelyard_eval.learn.cells import PositionCounts
from steelyard_eval.learn.position_bias import LOUDEST, conditional
from steelyard_eval.learn.tally import sums
from steelyard_eval.learn.top10 import LoggedPairs

FEWEST = 10
"""Labelled queries with an act, below which nothing is said."""
SURE = 2.0
"""Standard errors above 0 from which on acts follow a signal."""
LOOSE = 0.1
"""Precision of the weights' prior around 0."""


@dataclass(frozen=True)
class FeedbackBias:
    """One weight: `delta` is the logarithm of how many times as likely the highest value is acted upon."""

    label: str
    delta: float
    error: float

    @property
    def followed(self) -> bool:
        """Whether acts follow it."""
        return self.delta > SURE * self.error

    @property
    def ends(self) -> tuple[float, float]:
        """The 95% interval."""
        return self.delta - 1.96 * self.error, self.delta + 1.96 * self.error


RELEVANCE = "the label"


def feedback_biases(
    pairs: LoggedPairs, cells: PositionCounts, qrels: Mapping[str, Mapping[str, int]]
) -> list[FeedbackBias]:
    """The weights of the label and of every signal; empty where too few labelled queries have acts."""
    labelled = np.array([name in qrels for name in pairs.queries])
    acted = sums(cells.query, cells.positive, len(pairs.queries)) > 0
    kept = cells.where((labelled & acted)[cells.query])
    if len(kept.queries) < FEWEST or not pairs.names:
        return []
    names = [pairs.queries[query] for query in kept.query.tolist()]
    ids = [pairs.entries[entry] for entry in pairs.entry[kept.row].tolist()]
    grade = np.array([max(qrels[name].get(id_, 0), 0) for name, id_ in zip(names, ids, strict=True)], dtype=float)
    design = np.column_stack(
        [grade / max(float(grade.max()), 1.0), pairs.features[kept.row], -np.log(kept.place + 1.0)]
    )
    acts = kept.positive / (1.0 + sums(kept.query, kept.positive)[kept.query] / LOUDEST)
    penalty = np.full(design.shape[1], LOOSE)
    fitted, covariance = conditional(design, kept.query, np.log(kept.shown), acts, penalty, ())
    errors = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
    return [
        FeedbackBias(name, float(weight), float(error))
        for name, weight, error in zip((RELEVANCE, *pairs.names), fitted, errors, strict=False)
    ]
