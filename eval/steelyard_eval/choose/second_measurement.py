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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.memory.query import Query
from steelyard_eval.candidates.candidates import CandidateSet, record_all
from steelyard_eval.candidates.source import Source
from steelyard_eval.choose.public import FEWEST
from steelyard_eval.datasets.dataset import LOGGED
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.measures.spread import BLOCK, Matrix, spread


@dataclass(frozen=True)
class SecondMeasurement:
    """Of the differences of C candidates to the current configuration, on n labelled queries and on others."""

    labelled: Matrix  # float[C, k]: Those of the labelled queries that it measured
    at: Indices  # int64[k]: which of the n labelled queries these are
    # mean, variance: float64[C]: Of the others: their mean, and the squared standard error of it
    mean: Floats
    variance: Floats
    others: int  # how many there are

    @classmethod
    def of(cls, every: Matrix, at: Indices, rows: Indices, groups: Indices) -> SecondMeasurement | None:
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


FEWEST_BOTH = 5  # labelled queries that it measured, below which it is not used
ROUNDING = 1e-9  # A sum of squares of less is rounding


WHOLE = 10  # judged pairs from which on a query counts as judged: the first ten that one search shows


@dataclass(frozen=True)
class ModelLabels:
    """What a model has judged, and whether it may count."""

    path: str  # the file, as it was named
    qrels: Mapping[str, Mapping[str, int]]  # query -> entry -> grade
    # how far it agrees with the person, as a JSON document; `counts` says whether it may count
    agreement: Mapping[str, object]
    sentence: str  # the same in words

    def measured(
        self,
        source: Source,
        labelled: Sequence[Query],
        laid: CandidateSet,
        used: SearchConfig | None,
        metric: Measure,
    ) -> SecondMeasurement | None:
        """The differences of the candidates to what is used, by these labels; None where they may not count.

        At least `FEWEST` of the `labelled` queries have to be among those that it judged, and two others. Raises
        ConfigError for a recording and for lists, which have nothing of the other queries.
        """
        if source.space is None or used is None:
            raise ConfigError(
                "labels of a model need live search and a configuration as --current; leave out --model-labels"
            )
        if not self.agreement["counts"] or source.dataset.sampled == "duel":
            return None
        asked = [query for query in source.dataset.queries if self._judged(query)]
        number = {query.id: i for i, query in enumerate(labelled)}
        rows = np.flatnonzero([query.id in number for query in asked])
        if len(rows) < FEWEST:
            return None
        recordings = record_all(source, asked, laid.starts, self.qrels)
        layout = replace(laid, recordings=recordings)
        values = laid.grid.again(layout.served, metric)
        base = layout.values(used, [metric])[metric].astype(np.float32)
        places = np.array([number[asked[row].id] for row in rows.tolist()], dtype=np.int64)
        return SecondMeasurement.of(values - base, places, rows, unit_numbers(asked))

    def _judged(self, query: Query) -> bool:
        return query.answerable and query.split != LOGGED and len(self.qrels.get(query.id, ())) >= WHOLE
