"""A second measurement of the same differences, on many queries, which labels on some of them correct.

Clicks and the labels of a language model can follow something else than what an entry is worth, and nothing in
them tells. So they never decide: they are a covariate of a person's labels.

    gain = mean over labelled of (label - s * second) + s * (mean over the others of second)

Over draws of the labelled queries the second measurement cancels, so one that is wrong costs precision and adds
no bias. That is prediction-powered inference with a tuned share (Angelopoulos, Duchi and Zrnic, PPI++, 2023), the
regression estimator of surveys. Every labelled query is moved by ``-s * (second - mean of the others)``, so all
rules on matrices of differences stay what they are; what comes to it is the variance ``s^2 var / others``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.measures.spread import BLOCK, Matrix, spread


@dataclass(frozen=True)
class SecondMeasurement:
    """Of the differences of C candidates to the current configuration, on n labelled queries and on others.

    Attributes
    ----------
    labelled : float[C, k]
        Those of the labelled queries that it measured.
    at : int64[k]
        Which of the n labelled queries these are.
    mean, variance : float64[C]
        Of the others: their mean, and the squared standard error of it.
    others : int
        How many there are.
    """

    labelled: Matrix
    at: Indices
    mean: Floats
    variance: Floats
    others: int

    @classmethod
    def of(cls, every: Matrix, at: Indices, rows: Indices, groups: Indices) -> SecondMeasurement | None:
        """From all of it, float[C, N]; None where too little is left beside the labelled queries.

        `rows` int64[k] are the columns that are labelled, and `at` int64[k] where they stand among the labels;
        `groups` int64[N] numbers what varies together. Others of a labelled query's group are left out.
        """
        others = ~np.isin(groups, groups[rows])
        if others.sum() < 2 or len(rows) < FEWEST:
            return None
        found = spread(every[:, others], groups[others])
        if found.units < 2:
            return None
        return cls(every[:, rows], at, found.mean, found.error**2, found.units)

    def only(self, kept: Bools) -> SecondMeasurement:
        """Of the candidates where bool[C] is true."""
        return replace(self, labelled=self.labelled[kept], mean=self.mean[kept], variance=self.variance[kept])

    def share(self, labels: Matrix) -> float:
        """How much of it is used: one number for all candidates, from 0 to what a regression over queries says.

        `labels` float[C, n] are the differences by labels. The regression is shrunk by what a correlation of its
        size has by chance among so few queries, and by the others' being finite.
        """
        both = first = second = 0.0
        for begin in range(0, len(labels), BLOCK):
            rows = slice(begin, begin + BLOCK)
            a, b = (side[rows].astype(np.float64) for side in (labels[:, self.at], self.labelled))
            a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
            both, first, second = (
                both + float((a * b).sum()),
                first + float((a * a).sum()),
                second + float((b * b).sum()),
            )
        if both <= 0 or first < LEAST or second < LEAST:
            return 0.0
        n = len(self.at)
        explained = both**2 / (first * second)
        certain = 1 - (1 - explained) / (explained * max(n - 2, 1))
        return both / second * self.others / (self.others + n) * max(0.0, certain)

    def adjusted(self, labels: Matrix, share: float) -> Matrix:
        """float[C, n]: the differences by labels, less what the second measurement is off its mean."""
        moved = labels.copy()
        moved[:, self.at] -= (share * (self.labelled - self.mean[:, None])).astype(labels.dtype)
        return moved

    def move(self, candidate: int, differences: Floats, share: float) -> Floats:
        """float64[n]: the same of one candidate's differences, as they are measured exactly."""
        moved = np.array(differences, dtype=np.float64)
        moved[self.at] -= share * (self.labelled[candidate] - self.mean[candidate])
        return moved


FEWEST = 5
"""Labelled queries that it measured, below which it is not used."""
LEAST = 1e-9
"""A sum of squares of less is rounding."""
