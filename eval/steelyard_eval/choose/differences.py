"""What the rule works on: differences between candidates and what is used today, a column a labelled query.

The posterior of a candidate's true mean difference is that of a normal mean: it starts from what other
collections showed (`PriorGains`), which counts as so many queries, and takes up the mean and the standard error
of the labels.

Clicks and the labels of a model are a second measurement of the same differences. They can follow something else
than what an entry is worth, and nothing in them tells, so they never decide: they are a covariate of a person's
labels,

    gain = mean over labelled of (label - s * second) + s * (mean over the others of second),

so one that is wrong costs precision and adds no bias. That is prediction-powered inference with a tuned share
(Angelopoulos, Duchi and Zrnic, PPI++, 2023), the regression estimator of surveys. Every labelled query is moved
by ``-s * (second - mean of the others)``, and what comes to the variance is ``s^2 var / others``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import stdtr

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.memory.query import Query
from steelyard_eval.candidates.candidates import CandidateSet, record_all
from steelyard_eval.choose.blockers import MIN_TO_SHIP
from steelyard_eval.choose.public import PRIOR_QUERIES, PriorGains
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets.dataset import LOGGED
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.measures.spread import MIN_STANDARD_ERROR, ROWS_PER_BLOCK, Matrix, Spread, spread

FEWEST_BOTH = 5  # labelled queries that it measured, below which it is not used
ROUNDING = 1e-9  # A sum of squares of less is rounding
WHOLE = 10  # judged pairs from which on a query counts as judged: the first ten that one search shows


@dataclass(frozen=True)
class Scored:
    """The two matrices on the labelled queries, what is known beforehand, and which queries vary together."""

    metric: Matrix
    composite: Matrix
    prior_metric: PriorGains
    prior_composite: PriorGains
    units: Indices  # int64[n]: numbers what varies together; all different where queries are independent
    second: "SecondMeasurement | None" = None  # the matrices are those that it has moved
    share: float = 0.0  # how much of it was used, in each matrix
    share_composite: float = 0.0

    @classmethod
    def of(
        cls,
        metric: Matrix,
        composite: Matrix,
        priors: tuple[PriorGains, PriorGains] | None = None,
        units: Indices | None = None,
        second: "SecondMeasurement | None" = None,
    ) -> "Scored":
        """Without priors nothing is known but the labels; without units every query counts by itself."""
        known = priors or (PriorGains.none(len(metric)), PriorGains.none(len(metric)))
        numbers = np.arange(metric.shape[1]) if units is None else units
        if second is None:
            return cls(metric, composite, *known, numbers)
        shares = second.share(metric), second.share(composite)
        moved, smooth = second.adjusted(metric, shares[0]), second.adjusted(composite, shares[1])
        return cls(moved, smooth, *known, numbers, second, *shares)

    @property
    def extra_variance(self) -> Floats | float:
        """float64[C]: the variance of the metric's means that the second measurement of other queries adds."""
        return 0.0 if self.second is None else self.share**2 * self.second.variance

    def adjusted(self, candidate: int, differences: Floats) -> Floats:
        """float64[n]: exact differences of a candidate, moved as the matrix is."""
        return differences if self.second is None else self.second.move(candidate, differences, self.share)

    @cached_property
    def of_metric(self) -> "Posterior":
        """Of every candidate's difference in the reported metric."""
        return posterior(spread(self.metric, self.units), self.prior_metric, self.extra_variance)

    @cached_property
    def of_composite(self) -> "Posterior":
        """Of every candidate's difference in the composite, by which candidates are chosen."""
        extra = 0.0 if self.second is None else self.share_composite**2 * self.second.variance
        return posterior(spread(self.composite, self.units), self.prior_composite, extra)

    def composite_means(self, queries: Bools) -> Floats:
        """float64[C]: their posterior means on some of the queries alone, those where bool[n] is true."""
        prior, n = self.prior_composite, int(queries.sum())
        sums = self.composite[:, queries].sum(axis=1, dtype=np.float64)
        return np.asarray((sums + prior.effective_n * prior.mean) / (n + prior.effective_n), dtype=np.float64)

    def p_no_gain(self, candidate: int, differences: Floats) -> float:
        """The probability that a candidate gains nothing, by other differences of the metric, float64[n]."""
        prior = PriorGains(*(values[[candidate]] for values in vars(self.prior_metric).values()))
        return float(posterior(spread(differences[None, :], self.units), prior).p_loss()[0])


@dataclass(frozen=True)
class Posterior:
    """float64[C] each: mean and standard deviation of every candidate's true mean difference, degrees of freedom.

    The degrees are infinite where a table is known and every query counts by itself.
    """

    mean: Floats
    deviation: Floats
    degrees: Floats

    def p_loss(self) -> Floats:
        """float64[C]: the probability that the candidate is worse than the current configuration."""
        return np.asarray(stdtr(self.degrees, -self.mean / self.deviation), dtype=np.float64)


def posterior(sample: Spread, prior: PriorGains, extra: Floats | float = 0.0) -> Posterior:
    """The posterior of every candidate's mean difference.

    ``mean = (n * sample + effective_n * known) / (n + effective_n)``; its variance is that between queries, for a
    mean of n + effective_n. Where queries come in groups, it is that of the mean over groups, times n. `extra`,
    float64[C], is the variance of the sample's mean that these queries do not show.
    """
    n = sample.queries
    between = n * sample.error**2
    pooled = np.where(
        prior.effective_n > 0, (n * between + PRIOR_QUERIES * prior.variance) / (n + PRIOR_QUERIES), between
    )
    weight = n / (n + prior.effective_n)
    deviation = np.maximum(np.sqrt(pooled / (n + prior.effective_n) + weight**2 * extra), MIN_STANDARD_ERROR)
    mean = (n * sample.mean + prior.effective_n * prior.mean) / (n + prior.effective_n)
    independent = sample.units == n
    degrees = np.where((prior.effective_n > 0) & independent, np.inf, max(sample.units - 1, 1))
    return Posterior(mean, deviation, degrees)


@dataclass(frozen=True)
class SecondMeasurement:
    """Of the differences of C candidates to the current configuration, on n labelled queries and on others."""

    labelled: Matrix  # float[C, k]: those of the labelled queries that it measured
    at: Indices  # int64[k]: which of the n labelled queries these are
    mean: Floats  # float64[C]: of the others
    variance: Floats  # float64[C]: the squared standard error of it
    others: int  # how many there are

    @classmethod
    def of(cls, every: Matrix, at: Indices, rows: Indices, groups: Indices) -> "SecondMeasurement | None":
        """From all of it, float[C, N]; None where too little is left beside the labelled queries.

        `rows` int64[k] are the columns that are labelled, and `at` int64[k] where they stand among the labels;
        `groups` int64[N] numbers what varies together. Others of a labelled query's group are left out.
        """
        others = ~np.isin(groups, groups[rows])
        if others.sum() < 2 or len(rows) < FEWEST_BOTH:
            return None
        found = spread(every[:, others], groups[others])
        if found.units < 2:
            return None
        return cls(every[:, rows], at, found.mean, found.error**2, found.units)

    @classmethod
    def among(
        cls, every: Matrix, wanted: Sequence[Query], labelled: Sequence[Query]
    ) -> "SecondMeasurement | None":
        """From all of it on the queries `wanted`, some of which are among the `labelled`."""
        number = {query.id: i for i, query in enumerate(labelled)}
        rows = np.flatnonzero([query.id in number for query in wanted])
        at = np.array([number[wanted[row].id] for row in rows.tolist()], dtype=np.int64)
        return cls.of(every, at, rows, unit_numbers(wanted))

    def only(self, kept: Bools) -> "SecondMeasurement":
        """Of the candidates where bool[C] is true."""
        return replace(self, labelled=self.labelled[kept], mean=self.mean[kept], variance=self.variance[kept])

    def share(self, labels: Matrix) -> float:
        """How much of it is used: one number for all candidates, from 0 to what a regression over queries says.

        `labels` float[C, n] are the differences by labels. The regression is shrunk by what a correlation of its
        size has by chance among so few queries, and by the others' being finite.
        """
        both = first = second = 0.0
        for begin in range(0, len(labels), ROWS_PER_BLOCK):
            rows = slice(begin, begin + ROWS_PER_BLOCK)
            a, b = (side[rows].astype(np.float64) for side in (labels[:, self.at], self.labelled))
            a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
            both += float((a * b).sum())
            first += float((a * a).sum())
            second += float((b * b).sum())
        if both <= 0 or first < ROUNDING or second < ROUNDING:
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


@dataclass(frozen=True)
class ModelLabels:
    """What a model has judged, and whether it may count."""

    path: str  # the file, as it was named
    qrels: Mapping[str, Mapping[str, int]]  # query -> entry -> grade
    agreement: Mapping[str, object]  # how far it agrees with the person; `counts` says whether it may count
    sentence: str  # the same in words

    def measured(
        self,
        source: Source,
        labelled: Sequence[Query],
        candidates: CandidateSet,
        used: SearchConfig | None,
        metric: Measure,
    ) -> SecondMeasurement | None:
        """The differences of the candidates to what is used, by these labels; None where they may not count.

        At least `MIN_TO_SHIP` of the `labelled` queries have to be among those that it judged, and two others.
        Raises ConfigError for a recording and for lists, which have nothing of the other queries.
        """
        if source.space is None or used is None:
            raise ConfigError("--model-labels needs live search and a configuration as --current; leave it out")
        if not self.agreement["counts"] or source.dataset.sampled == "duel":
            return None
        asked = [
            query
            for query in source.dataset.queries
            if query.answerable and query.split != LOGGED and len(self.qrels.get(query.id, ())) >= WHOLE
        ]
        if len({query.id for query in labelled} & {query.id for query in asked}) < MIN_TO_SHIP:
            return None
        recordings = record_all(source, asked, candidates.starts, self.qrels)
        on_judged = replace(candidates, recordings=recordings)
        values = on_judged.again(metric)
        base = on_judged.values(used, [metric])[metric].astype(np.float32)
        return SecondMeasurement.among(values - base, asked, labelled)
