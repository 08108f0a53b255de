"""Ship, try or keep: what a log justifies, and why it justifies no more.

A log can mislead in more ways than too few queries can, so a candidate ships only where the least of its gains,
over all views, is still above 0 three query errors and two refit errors lower. The numbers are those of the
experiment in docs/feedback.md. Labels, where there are any, are pooled with the log by inverse variance: they
are the only cure where clicks follow a signal whatever the entry is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.decide.decision import Verdict
from steelyard_eval.decide.refusal import Refusal
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.classes import Classes, fit
from steelyard_eval.learn.examination import Examination, examine
from steelyard_eval.learn.first_ten import CandidateLists
from steelyard_eval.learn.views import Views, statistics, views

SURE = (3.0, 2.0)
"""Query errors and refit errors that a gain has to exceed in every view."""
SURER = (4.0, 2.5)
"""As much for the weights of one intent of several, because each is another chance to be wrong."""
Z_POOLED = 2.0
"""Errors of the pooled gain, where labels are pooled with the log."""
Z_TRY = 1.0
"""Errors above which a gain is worth trying."""
QUERIES, ACTS, LIFT = 150, 300, 2.3
"""Below so many distinct queries, acts, or so little difference between the classes, a log proves nothing."""
LABELS = 30
"""Labelled queries, those that ask the same counted once, from which on they are pooled."""
DOUBT = 0.5
"""The log's pooled error includes this share of its gain: it may be biased by as much."""
LEAST_ERROR = 0.002
"""An error of a mean over labels is not taken to be smaller."""


@dataclass(frozen=True)
class KnownGains:
    """What is known of the candidates' gains beside the log: float64[G] each, an infinite error for nothing.

    `queries` is how many labelled queries it is worth, `units` how many of them vary by themselves.
    """

    gain: Floats
    error: Floats
    queries: int
    units: int


@dataclass(frozen=True)
class Pooled:
    """float64[G] each: gain and error of the log and other sources together."""

    gain: Floats
    error: Floats
    labels: KnownGains | None


@dataclass(frozen=True)
class LogEvidence:
    """What was learned from a log, before anything is decided."""

    cells: Cells
    examination: Examination
    classes: Classes
    views: Views
    units: int
    """Distinct questions that the log asks."""


@dataclass(frozen=True)
class Judged:
    """The decision on one log, with everything that it rests on.

    Attributes
    ----------
    verdict : ship, try or keep.
    candidate : int
        Shipped, or worth trying; 0 under keep.
    best : int
        The candidate of largest gain, whatever the verdict: what the diagnostics are about under keep.
    refusal : Refusal or None
        Why the log decides nothing.
    """

    verdict: Verdict
    candidate: int
    best: int
    refusal: Refusal | None
    evidence: LogEvidence
    pooled: Pooled | None

    @property
    def cells(self) -> Cells:
        """The counts of the log."""
        return self.evidence.cells

    @property
    def examination(self) -> Examination:
        """How places are examined."""
        return self.evidence.examination

    @property
    def classes(self) -> Classes:
        """The two classes."""
        return self.evidence.classes

    @property
    def views(self) -> Views:
        """The gains."""
        return self.evidence.views


def judge(
    lists: CandidateLists,
    cells: Cells,
    labels: Floats | None = None,
    given: Floats | None = None,
    errors: tuple[float, float] = SURE,
    unit: Indices | None = None,
) -> Judged:
    """Learn from the cells of a log, and decide.

    Parameters
    ----------
    labels : float64[G, n]
        nDCG@10 of every candidate on labelled queries; pooled where there are at least `LABELS` of them.
    given : float64[PLACES]
        Probabilities of examination that the log holds.
    errors : tuple of float
        Query errors and refit errors that a gain has to exceed to ship, where no labels are pooled.
    unit : int64[n]
        Which of the labelled queries vary as one; by default every one by itself.
    """
    examination = examine(lists, cells, given)
    classes = fit(lists, cells, examination.exponent)
    seen = views(lists, cells, classes, examination.exponent)
    units = len(np.unique(lists.unit[cells.queries]))
    return decide(LogEvidence(cells, examination, classes, seen, units), labels, errors, unit)


def decide(
    evidence: LogEvidence,
    labels: Floats | None = None,
    errors: tuple[float, float] = SURE,
    unit: Indices | None = None,
) -> Judged:
    """Decide on what was learned; `labels`, `errors` and `unit` as in `judge`.

    A log of fewer than `QUERIES` distinct queries ships nothing; what would have shipped otherwise is worth a try.
    """
    seen = evidence.views
    given = None if labels is None else of_labels(labels, unit)
    together = pool(seen, [], given) if given and given.units >= LABELS else None
    mean = seen.mean if together is None else together.gain
    proven = seen.bound(*errors) > 0 if together is None else sure(together, Z_POOLED)
    likely = seen.bound(Z_TRY, Z_TRY) > 0 if together is None else sure(together, Z_TRY)
    refusal = refused(evidence)
    verdict: Verdict = "keep"
    candidate = 0
    tryable = likely if refusal is None else proven & (refusal.reason == too_few(evidence.units))
    if refusal is None and (shipped := best_of(mean, proven)):
        verdict, candidate = "ship", shipped
    elif tried := best_of(mean, tryable):
        verdict, candidate = "try", tried
    return Judged(verdict, candidate, best_of(mean, mean > 0), refusal, evidence, together)


def refused(evidence: LogEvidence) -> Refusal | None:
    """Why nothing ships from this log, if there is a reason; too few queries come last, for they leave a try."""
    examination, acts = evidence.examination, int(evidence.cells.positive.sum())
    if acts < ACTS:
        return Refusal(f"the log has {acts} acts, and {ACTS} are needed", "log for longer")
    if examination.at_bound:
        return Refusal(
            f"how places are examined cannot be told (exponent {examination.exponent:g}, at its bound: "
            f"the log suggests {examination.estimate:.1f})",
            "interleave a tenth of the searches (steelyard interleave), which tells it",
        )
    if evidence.classes.lift < LIFT:
        return Refusal(
            f"acts hardly tell entries apart (lift {evidence.classes.lift:.1f}, and {LIFT} is needed)",
            "log acts that mean more, such as accepted or cited, or label some queries",
        )
    reason = too_few(evidence.units)
    return Refusal(reason, "log more, or label some") if reason else None


def too_few(count: int) -> str:
    """That there are too few distinct queries to ship anything; empty where there are enough."""
    return f"the log has {count} distinct queries, and {QUERIES} are needed to ship" if count < QUERIES else ""


def of_labels(labels: Floats, unit: Indices | None = None) -> KnownGains:
    """The gains by labelled queries, float64[G, n], whose units are int64[n]."""
    unit = np.arange(labels.shape[1]) if unit is None else unit
    gain, error = statistics(labels, unit)
    return KnownGains(gain, np.maximum(error, LEAST_ERROR), labels.shape[1], len(np.unique(unit)))


def pool(seen: Views, sources: Sequence[KnownGains], labels: KnownGains | None = None) -> Pooled:
    """Weigh the log, the labels and other sources by the inverse of their variances.

    The log's gain is the smaller of its two cautious views; its error includes `DOUBT` times the gain.
    """
    variance = seen.error[1:].max(axis=0) ** 2 + (DOUBT * seen.gain[1]) ** 2 + 1e-6
    precision, weighted = 1 / variance, seen.gain[1:].min(axis=0) / variance
    for one in (*sources, *([labels] if labels else [])):
        precision = precision + 1 / one.error**2
        weighted = weighted + one.gain / one.error**2
    return Pooled(weighted / precision, 1 / np.sqrt(precision), labels)


def sure(pooled: Pooled, z: float) -> Bools:
    """bool[G]: whose pooled gain lies above 0 by so many errors."""
    return np.asarray(pooled.gain - z * pooled.error > 0, dtype=np.bool_)


def best_of(mean: Floats, allowed: Bools) -> int:
    """The allowed candidate of largest mean; 0 where none is, which is what there is today."""
    scored = np.where(allowed, mean, -np.inf)
    scored[0] = 0.0
    return int(scored.argmax())
