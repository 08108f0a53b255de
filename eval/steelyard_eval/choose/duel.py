"""Which pair of query and entry to judge next, what the judged ones show, and how many more it takes.

Every pair has a probability that its entry is relevant: a logistic model of where the contenders rank it, learned
on public collections (`public.PublicTable.relevance`) and bent by what was judged. With these in the place of
labels every contender has an expected nDCG@10. The next pair is where the six that lead now part most, times the
doubt about its label: a duel (after minimal test collections: Carterette, Allan and Sitaraman, SIGIR 2006). 160
such pairs are worth 20 to 40 queries that are judged completely (docs/evidence/few-labels.md).
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.memory.query import Query
from steelyard_eval.choose.public import class_of, features, public_table, reciprocal
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.dataset import MIN_PAIRS
from steelyard_eval.measures.logistic import newton

MIN_TOP_GRADE = 3.0  # the grade that counts as relevant without a doubt, where none is higher
PLACES = 10
LEADERS_COMPARED = 6  # contenders that the next pair is to tell apart
RIDGE_SCALE = 1.0  # standard deviation of the model's coefficients around those of public collections
MAX_LEAD_SE = 0.008  # nDCG@10, one standard error: the verdict stands where unlabelled pairs move no lead by more
FORECAST_FACTOR = 1.2  # labels move the leaders, so forecasts fall short by so much: docs/evidence/few-labels.md
PRIOR_PAIRS = 100.0  # judged pairs that the means of public collections count as
_DISCOUNT = 1.0 / np.log2(np.arange(2, PLACES + 2))


@dataclass(frozen=True)
class DuelPairs:
    """All pairs of a query and an entry among the first places of C lists, in the order of queries, then of ids.

    `query` int64[P] and `entries` are the pairs. `discount` float64[C, P] is what the place that a contender gives
    the entry is worth: ``1 / log2(1 + rank)``, 0 beyond the first ten.
    """

    labels: tuple[str, ...]
    query: Indices
    entries: tuple[str, ...]
    discount: Floats

    @classmethod
    def of(cls, lists: Mapping[str, Sequence[Sequence[str]]]) -> "DuelPairs":
        """From lists of the same queries."""
        worths: dict[tuple[int, str], Floats] = {}
        for row, ranked in enumerate(lists.values()):
            for query, ids in enumerate(ranked):
                for place, id_ in enumerate(ids[:PLACES]):
                    worth = worths.setdefault((query, id_), np.zeros(len(lists)))
                    worth[row] = 1.0 / np.log2(place + 2)
        pairs = sorted(worths, key=lambda pair: (pair[0], pair[1].encode()))
        table = np.array([worths[pair] for pair in pairs]).reshape(len(pairs), len(lists)).T
        numbers = np.array([query for query, _ in pairs], dtype=np.int64)
        return cls(tuple(lists), numbers, tuple(id_ for _, id_ in pairs), table)


def build_pair_selection(
    labels: Sequence[str], worth: Floats, query: Indices, model: str, sha256: str
) -> "PairSelection":
    """The contest of contenders by label over pairs.

    The embedder's class decides what is known beforehand. `sha256` excludes this data set from the prior.
    """
    table, kind = public_table(), class_of(model)
    others = table.others(sha256)
    rows = {name: worth[labels.index(name)] for name in ("bm25", "fts", "vector") if name in labels}
    places = {name: reciprocal(rows.get(name, np.zeros(worth.shape[1]))) for name in ("bm25", "fts", "vector")}
    means = table.means[kind]
    known = np.array([float(means[label][others].mean()) if label in means else np.nan for label in labels])
    _, numbers = np.unique(query, return_inverse=True)  # queries without any pair have no number
    return PairSelection(worth, numbers.astype(np.int64), features(places, worth), table.relevance[kind], known)


def gains_of(grades: Indices, query: Indices, queries: Sequence[Query], dataset: Dataset) -> Floats:
    """float64[P]: grades of pairs as shares of the highest; NaN for -1, where there is none.

    What the data set's labels leave out counts as 0 where dataset.json says that they are complete, and where they
    have no grade of 0, for then only what is relevant was written down: taken as unknown, the rest would look as
    relevant as what was. Labels of a duel are of single pairs, whatever else is said. `query` is int64[P].
    """
    qrels = dataset.qrels
    whole = dataset.complete or not any(grade == 0 for labels in qrels.values() for grade in labels.values())
    whole = whole and dataset.sampled != "duel"
    labelled = np.array([whole and asked.id in qrels for asked in queries], dtype=bool)
    known = np.where((grades < 0) & labelled[query], 0, grades)
    return np.where(known >= 0, known / max(MIN_TOP_GRADE, float(known.max(initial=0))), np.nan)


def pairwise_estimate(
    lists: Mapping[str, Sequence[Sequence[str]]], queries: Sequence[Query], dataset: Dataset, model: str
) -> "PairSelectionState":
    """Where contenders stand by the labels of a data set that were chosen one by one, over these queries."""
    pairs = DuelPairs.of(lists)
    known = [dataset.qrels.get(asked.id, {}) for asked in queries]
    graded = zip(pairs.query.tolist(), pairs.entries, strict=True)
    grades = np.array([known[number].get(entry, -1) for number, entry in graded], dtype=np.int64)
    made = build_pair_selection(pairs.labels, pairs.discount, pairs.query, model, dataset.sha256)
    return made.standing(gains_of(grades, pairs.query, queries, dataset))


@dataclass(frozen=True)
class PairSelection:
    """C contenders on P pairs of Q queries."""

    discount: Floats  # float64[C, P]: ``1 / log2(1 + rank)`` in each contender's list, 0 beyond the first ten
    query: Indices  # int64[P]: the number of its query, from 0, in order
    features: Floats  # float64[P, F]: what is known of a pair without its label: `public.features`
    prior: Floats  # float64[F]: coefficients of the model before anything was judged
    public_means: Floats  # float64[C]: mean nDCG@10 on public collections; NaN where a contender was not run there

    @cached_property
    def starts(self) -> Indices:
        """int64[Q]: the first pair of each query."""
        return np.flatnonzero(np.diff(self.query, prepend=-1)).astype(np.int64)

    def ideal(self, relevance: Floats) -> Floats:
        """float64[Q]: the discounted gain of the best order."""
        order = np.lexsort((-relevance, self.query))
        sizes = np.diff(np.append(self.starts, len(self.query)))
        place = np.arange(len(order)) - np.repeat(self.starts, sizes)
        best = np.where(place < PLACES, _DISCOUNT[np.minimum(place, PLACES - 1)] * relevance[order], 0.0)
        return np.maximum(np.add.reduceat(best, self.starts), 1e-9)

    def standing(self, gains: Floats) -> "PairSelectionState":
        """What judged pairs show; `gains` float64[P] are grades as shares of the highest, NaN where none is."""
        judged = np.isfinite(gains)
        weights = fitted(self.features[judged], gains[judged], self.prior) if judged.any() else self.prior
        return PairSelectionState(self, judged, np.where(judged, gains, sigmoid(self.features @ weights)))

    def per_query(self, relevance: Floats) -> Floats:
        """float64[C, Q]: nDCG@10 with relevance in the place of labels; 0 where nothing can be relevant."""
        gained = np.add.reduceat(self.discount * relevance, self.starts, axis=1)
        return np.asarray(gained / self.ideal(relevance), dtype=np.float64)


@dataclass(frozen=True)
class PairSelectionState:
    """Where contenders stand: `judged` bool[P], `relevance` float64[P], judged or expected."""

    contest: PairSelection
    judged: np.ndarray[tuple[int], np.dtype[np.bool_]]
    relevance: Floats

    @cached_property
    def per_query(self) -> Floats:
        """float64[C, Q]: expected nDCG@10."""
        return self.contest.per_query(self.relevance)

    @cached_property
    def means(self) -> Floats:
        """float64[C]: its mean over queries, drawn towards what public collections showed of the differences."""
        mean = self.per_query.mean(axis=1)
        there = np.isfinite(self.contest.public_means)
        if not there.any():
            return np.asarray(mean, dtype=np.float64)
        means = self.contest.public_means
        public = np.where(there, means - means[there].mean() + mean[there].mean(), mean)
        count = int(self.judged.sum())
        return np.asarray((count * mean + PRIOR_PAIRS * public) / (count + PRIOR_PAIRS), dtype=np.float64)

    @cached_property
    def label_sd(self) -> Floats:
        """float64[P]: the standard deviation of a pair's label; 0 where it is judged."""
        return np.where(self.judged, 0.0, np.sqrt(self.relevance * (1 - self.relevance)))

    @cached_property
    def leaders(self) -> Indices:
        """int64[6]: the contenders that lead, best first; fewer where there are fewer."""
        return np.argsort(-self.means, kind="stable")[:LEADERS_COMPARED]

    @cached_property
    def label_information(self) -> Floats:
        """float64[P]: what a label would tell, the leaders' spread times the doubt; 0 where it is judged."""
        return np.asarray(self.contest.discount[self.leaders].std(axis=0) * self.label_sd, dtype=np.float64)

    @cached_property
    def _open(self) -> Floats:
        """float64[R, P]: the variance that a pair's label leaves in the lead over each rival."""
        first, *rivals = self.leaders.tolist()
        apart = self.contest.discount[rivals] - self.contest.discount[first]
        queries = len(self.contest.starts)
        share = self.label_sd / self.contest.ideal(self.relevance)[self.contest.query] / queries
        return np.asarray((apart * share) ** 2, dtype=np.float64)

    @property
    def error(self) -> float:
        """By how much what is not judged can move the lead over a rival: the largest standard error."""
        return float(np.sqrt(self._open.sum(axis=1).max(initial=0.0)))

    @property
    def enough(self) -> int:
        """Judged pairs below which the default stands: `MIN_PAIRS`, or all where there are fewer."""
        return min(MIN_PAIRS, len(self.judged))

    @property
    def is_settled(self) -> bool:
        """Whether the verdict stands: enough was judged, and the rest can hardly move it."""
        whole = bool(len(self.judged)) and bool(self.judged.all())
        return bool(self.judged.sum() >= MIN_PAIRS and self.error <= MAX_LEAD_SE) or whole

    @property
    def more(self) -> int:
        """About how many more judgments until the verdict stands; 0 where it does."""
        if self.is_settled:
            return 0
        count = int(self.judged.sum())
        order = np.argsort(-self.label_information, kind="stable")
        left = self._open.sum(axis=1)[:, None] - np.cumsum(self._open[:, order], axis=1)
        enough = np.sqrt(np.maximum(left, 0.0)).max(axis=0, initial=0.0) <= MAX_LEAD_SE
        needed = 0 if self.error <= MAX_LEAD_SE else FORECAST_FACTOR * (int(np.argmax(enough)) + 1)
        return min(max(MIN_PAIRS - count, round(needed), 1), len(self.judged) - count)

    def order(self, passed: Container[int] = ()) -> Iterator[int]:
        """The pairs that are neither judged nor passed over, the most telling first."""
        order = np.argsort(-np.where(self.judged, -1.0, self.label_information), kind="stable").tolist()
        return (pair for pair in order if not self.judged[pair] and pair not in passed)


def sigmoid(x: Floats) -> Floats:
    """``1 / (1 + exp(-x))``."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -30, 30))), dtype=np.float64)


def fitted(
    features: Floats, gains: Floats, prior: Floats, stiff: float = RIDGE_SCALE, weights: Floats | None = None
) -> Floats:
    """float64[F]: logistic regression by Newton's steps, ridge towards the prior; gains are from 0 to 1."""
    weight = np.ones(len(gains)) if weights is None else weights

    def likelihood(away: Floats) -> tuple[Floats, Floats]:
        p = sigmoid(features @ (prior + away))
        return features.T @ (weight * (gains - p)), (features.T * (weight * p * (1 - p))) @ features

    precision = np.full(len(prior), stiff**-2)
    return prior + newton(likelihood, np.zeros(len(prior)), precision, (), rounds=25, until=1e-6).coefficients
