"""What a learned ranker would reach over the recorded signals, out of fold, beside what can be chosen.

Gradient boosting of regression trees on grades, a row a candidate (scikit-learn's HistGradientBoostingRegressor,
after LightGBM). It says whether a model is worth a project: it is never chosen and never written.
Its settings were chosen on cacm, cranfield, madial, vaswani, cisi and workshop: docs/tuning.md.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.memory.query import Query
from steelyard_eval.candidates.signal_frame import ENTRY, QUERY, signal_frame, values_by_query
from steelyard_eval.common.configurations import USUAL_LIMIT, Setting
from steelyard_eval.common.console import bar
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.metrics import Measure, parse_measures
from steelyard_eval.measures.paired import MARGIN, difference_interval, mean_interval
from steelyard_eval.recording.provenance import FOLDS
from steelyard_eval.result.structs import Estimate, Fact, Message, Result, Table, replace

TREES = {"learning_rate": 0.05, "max_iter": 100, "max_leaf_nodes": 7, "min_samples_leaf": 40}
MIN_UNITS_TO_LEARN = 20
LABEL, LIST = "learned model", "learned"
COLUMNS = ["ranker", "interval", "gain", "above"]
Values = Mapping[str, Mapping[str, Floats]]  # label -> metric -> float64[Q]


def with_ceiling(result: Result, values: Values, source: Source, tuned: Floats | None = None) -> Result:
    """The result with the row of the ceiling, and a sentence on what it means.

    It stands against `tuned` float64[Q], the metric of weights that were chosen out of fold too, or without them
    against the best contender that was not tuned on these queries.
    """
    metric, primary = result.metric, {label: own[result.metric] for label, own in values.items()}
    asked = {query.id: query for query in source.dataset.queries}
    queries = [asked[row.id] for row in result.queries]
    units = unit_numbers(queries).tolist()
    if len(set(units)) < MIN_UNITS_TO_LEARN:
        return _told(result, Message("ceiling_few", {"fewest": MIN_UNITS_TO_LEARN}))
    other = None if tuned is not None else _best(result)
    against = primary[other] if other is not None else np.asarray(tuned)
    learned = learned_values(source, queries, parse_measures([metric])[0], result.provenance.limit or USUAL_LIMIT)
    mean = mean_interval(learned, units).shown(0.0)
    base = primary[result.provenance.baseline]
    today, gain = (difference_interval(learned - own, units).shown(-1.0) for own in (base, against))
    facts: dict[str, Fact] = {"other": other, "tuned": other is None, "metric": metric, "margin": MARGIN}
    table = Table("ceiling", COLUMNS, [[LABEL, mean, today, gain]], dict(facts))
    facts |= {"learned": mean.mean, "reached": float(against.mean()), "gain": gain}
    return _told(replace(result, tables=[table, *result.tables]), Message(_meaning(gain, other), facts))


def learned_values(source: Source, queries: Sequence[Query], measure: Measure, limit: int) -> Floats:
    """float64[Q]: the metric of a learned ranker on each query, which learned from none of its group."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import GroupKFold
    from threadpoolctl import threadpool_limits

    frame, grades, groups = signal_frame(source, queries, limit, combined=True)
    signals = frame.drop(columns=[QUERY, ENTRY])
    rows = np.flatnonzero(signals.notna().any(axis=1))
    if len(np.unique(groups[rows])) < FOLDS:  # nothing is found that could be ranked
        return np.zeros(len(queries))
    model = HistGradientBoostingRegressor(**TREES, early_stopping=False, random_state=0)
    scores = np.full(len(frame), np.nan)
    with threadpool_limits(1):  # so that no bit follows the number of cores
        for train, test in bar("learned model", list(GroupKFold(FOLDS).split(rows, groups=groups[rows]))):
            model.fit(signals.iloc[rows[train]], grades[rows[train]])
            scores[rows[test]] = model.predict(signals.iloc[rows[test]])
    config = Setting(limit, lists=(LIST,)).strategy(LIST)
    found = values_by_query(
        frame[[QUERY, ENTRY]].assign(**{LIST: scores}), grades, config, measure, source.dataset.tokens
    )
    return np.array([found.get(query.id, 0.0) for query in queries])


def _told(result: Result, message: Message) -> Result:
    return replace(result, answer=replace(result.answer, because=[*result.answer.because, message]))


def _best(result: Result) -> str:
    rows = [row for row in result.rows if not row.tuned or row.edited] or result.rows
    return max(rows, key=lambda row: row.means[result.metric].mean).label


def _meaning(gain: Estimate, other: str | None) -> str:
    """The key of what a difference says of a model; of an `other` contender tuned weights may be better, too."""
    low, high = (gain.mean if end is None else end for end in (gain.low, gain.high))
    if high <= MARGIN:
        return "ceiling_same"
    return "ceiling_open" if low <= 0 else "ceiling_more" if other is None else "ceiling_tune"
