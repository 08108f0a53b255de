"""Labels of a language model as a second measurement, which a person's labels correct; never as the truth.

    gain = mean over the person's (person's gain) + share * (mean over all (model's gain)
           - mean over the person's (model's gain))

The second term has mean 0 over draws of the queries that the person judged, so a lenient, lazy or partial model
costs precision and adds no bias. `share` is the regression of the person's gains on the model's, 0 where they are
unrelated: prediction-powered inference with a tuned share (Angelopoulos, Duchi and Zrnic, PPI++, 2023).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.measures.statistics import Interval

LEAST_ERROR = 0.002
"""A standard error is not taken to be smaller."""
ALPHA = 0.05


@dataclass(frozen=True)
class Corrected:
    """float64[C] each: gains over the current configuration, their errors; the share that the model had.

    `degrees` are those of Student's t.
    """

    gain: Floats
    error: Floats
    share: Floats
    degrees: int

    def interval(self, candidate: int) -> Interval:
        """The 95% interval of one candidate's gain."""
        reach = float(-stdtrit(self.degrees, ALPHA / 2)) * float(self.error[candidate])
        gain = float(self.gain[candidate])
        return Interval(gain, gain - reach, gain + reach)


def corrected(person: Floats, model: Floats, at: Indices) -> Corrected:
    """Gains by a person's labels, sharpened by a model's.

    Parameters
    ----------
    person : float64[C, n]
        Gains by the person's labels, of n queries that were drawn at random.
    model : float64[C, N]
        Gains by the model's labels, of all queries.
    at : int64[n]
        Which of the N the person's are.
    """
    n, total = person.shape[1], model.shape[1]
    share = _share(person, model[:, at])
    rest = person - share[:, None] * model[:, at]
    gain = rest.mean(axis=1) + share * model.mean(axis=1)
    # The n queries are among the N: var of the sum of their part and of the others' part.
    mixed = person - share[:, None] * (1 - n / total) * model[:, at]
    others = np.setdiff1d(np.arange(total), at)
    error = mixed.var(axis=1, ddof=1) / n
    if len(others) > 1:
        error = error + (share * len(others) / total) ** 2 * model[:, others].var(axis=1, ddof=1) / len(others)
    return Corrected(gain, np.maximum(np.sqrt(error), LEAST_ERROR), share, max(n - 2, 1))


def _share(person: Floats, at: Floats) -> Floats:
    """float64[C]: the regression of a person's gains on the model's, at least 0, less what chance alone gives."""
    n = person.shape[1]
    own, other = person - person.mean(axis=1, keepdims=True), at - at.mean(axis=1, keepdims=True)
    both, spread, size = (own * other).sum(axis=1), (other**2).sum(axis=1), (own**2).sum(axis=1)
    explained = both**2 / np.maximum(spread * size, 1e-12)
    certain = np.maximum(0.0, 1 - (1 - explained) / np.maximum(explained * max(n - 2, 1), 1e-12))
    slope = both / np.maximum(spread, 1e-12)
    useful = (both > 0) & (spread > 1e-9) & (size > 1e-9)
    return np.where(useful, slope * certain, 0.0)
