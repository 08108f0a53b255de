"""What is explored: the labelled queries of a data set, recorded for each system when it is first looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from itertools import count

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.base.errors import ConfigError
from steelyard.base.files import canonical
from steelyard.config import SearchConfig
from steelyard.fusion import Expr, compile_plan
from steelyard.live.search import rank_table
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.candidates.curve import Curve, Objective, sweep
from steelyard_eval.candidates.linear_form import Form
from steelyard_eval.choose.rule import shrinkage_factor
from steelyard_eval.common.configurations import NamedConfig
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import Dataset, tuning_queries
from steelyard_eval.datasets.groups import judged, unit_numbers
from steelyard_eval.explain.view import contributions
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.measures.paired import difference_interval, mean_interval
from steelyard_eval.measures.spread import Gain, Interval
from steelyard_eval.recording.provenance import estimate, origin, promised
from steelyard_eval.recording.record import needed
from steelyard_eval.recording.replay import only, opening, replay


@dataclass(frozen=True)
class ExplorerData:
    """The queries that weights are chosen on, those held out, and the recordings of both."""

    source: Source
    queries: tuple[Query, ...]  # Q judged ones to choose on: those that `tune` would use
    held_out: tuple[Query, ...]  # judged ones that are looked at when a choice is adopted, and not before
    measure: Measure  # what is shown
    limit: int  # the length of the lists
    _tables: dict[object, SignalTable] = field(default_factory=dict)
    _judged: dict[tuple[int, int], tuple[SignalTable, Judgments]] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source, measure: Measure, limit: int | None) -> "ExplorerData":
        """The labelled queries of a data set; ConfigError with fewer than two."""
        dataset = source.dataset
        chosen, held_out = (judged(dataset, part) for part in tuning_queries(dataset))
        if len(chosen) < 2:
            raise ConfigError(f"{dataset.name}: the explorer needs two labelled queries or more; label some")
        return cls(source, chosen, held_out, measure, limit or measure.places)

    @property
    def dataset(self) -> Dataset:
        """What is explored."""
        return self.source.dataset

    @cached_property
    def units(self) -> list[int]:
        """The unit of every query."""
        return list(map(int, unit_numbers(self.queries)))

    @property
    def entries(self) -> dict[str, Entry]:
        """The entries by id."""
        return {entry.id: entry for entry in self.dataset.entries}

    def config(self, named: NamedConfig) -> SearchConfig:
        """The configuration of a contender, as far as the data set can supply it."""
        return self.source.supplied(named, self.limit)[0].config

    def trial(self, config: SearchConfig) -> "Trial":
        """The configuration over the queries to choose on."""
        return Trial.of(config, *self._part(self._recorded(config), 0, len(self.queries)), self.measure)

    def proof(self, config: SearchConfig) -> "Trial | None":
        """The configuration over the queries held out; None without any."""
        begin, end = len(self.queries), len(self.queries) + len(self.held_out)
        part = self._part(self._recorded(config), begin, end) if end > begin else None
        return Trial.of(config, *part, self.measure) if part else None

    def _part(self, recorded: SignalTable, begin: int, end: int) -> tuple[SignalTable, Judgments]:
        key = (id(recorded), begin)  # recordings are kept as long as this is
        if key not in self._judged:
            table = only(recorded, recorded.queries[begin:end])
            self._judged[key] = (
                table,
                Judgments.of(self.dataset.qrels, table.queries, table.entries, self.dataset.tokens),
            )
        return self._judged[key]

    def _recorded(self, config: SearchConfig) -> SignalTable:
        names = tuple(needed([config]))
        retrievers = {name: config.retrievers[name].to_json() for name in names if name in config.retrievers}
        key = (config.name, names, canonical(retrievers))
        if key not in self._tables:
            self._tables[key] = self.source.record((*self.queries, *self.held_out), [config])
        return self._tables[key]

    def by_category(self) -> dict[str, Bools]:
        """bool[Q] for each category of queries, by name; empty where all are of one."""
        labels = np.array([query.category or "other" for query in self.queries])
        names = sorted(set(labels.tolist()))
        return {name: labels == name for name in names} if len(names) > 1 else {}


@dataclass(frozen=True)
class Trial:
    """A configuration whose weights may be moved, over the recording of Q judged queries.

    `form` and `objective` are None for a configuration that is no linear form once its parameters are fixed, such
    as one that re-ranks: it is replayed for each weight, and has no curves.
    """

    config: SearchConfig
    table: SignalTable
    judgments: Judgments
    measure: Measure
    form: Form | None
    objective: Objective | None

    @classmethod
    def of(cls, config: SearchConfig, table: SignalTable, judgments: Judgments, measure: Measure) -> "Trial":
        """Compile a configuration over its recording; ConfigError when the recording lacks what it needs."""
        effective = replace(config, strategy=config.effective, by_intent={})
        replay(only(table, table.queries[:1]), effective)  # refuses what was not recorded
        try:
            form = Form.of(table, effective, effective.strategy, judgments)
            return cls(effective, table, judgments, measure, form, Objective.of(form, measure))
        except ConfigError:
            return cls(effective, table, judgments, measure, None, None)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights as the configuration has them."""
        return self.config.strategy.weights

    def values(self, weights: Sequence[float]) -> Floats:
        """float64[Q]: the measure of every query under these weights."""
        if self.form is None or self.objective is None:
            run = replay(self.table, self.written(weights))
            return run.metrics(self.judgments, [self.measure])[self.measure]
        return self.objective.values(self.form.spread(np.array([weights], dtype=np.float64))[0])

    def curve(self, at: int, weights: Sequence[float], top: float) -> Curve | None:
        """The mean along one weight from 0 to `top`, the others as they are; exact, None without a form."""
        if self.form is None or self.objective is None:
            return None
        others = np.array([[0.0 if slot == at else weight for slot, weight in enumerate(weights)]])
        moved = (self.form.slot == at).astype(np.float64)
        return sweep(self.objective, self.form.spread(others)[0], moved, 0.0, top)

    def written(self, weights: Sequence[float]) -> SearchConfig:
        """The configuration with these weights."""
        return self.config.with_strategy(self.config.strategy.with_weights(np.array(weights)))


Record = dict[str, object]


def adopted(
    bench: ExplorerData,
    config: SearchConfig,
    values: Floats,
    current: Floats,
    held_out: tuple[Floats, Floats] | None,
) -> SearchConfig:
    """The configuration with its provenance: `chosen_by` is hand.

    The promise is the gain over the current one on the queries that were looked at, times what a gate leaves of
    it (`rule.shrinkage`), because a hand that follows the number chooses what happens to look good on them.
    Under `holdout` stands the gain on queries that were not looked at. `values` and `current` (float64[Q]) are the
    chosen and the current one on the queries that were; `held_out` (two float64[H], or None) on those held out.
    """
    gains = values - current
    numbers = np.array(bench.units)
    left, seen = shrinkage_factor(gains, numbers), difference_interval(gains, bench.units)
    promise = Gain.within(Interval(*(left * value for value in astuple(seen))), len(np.unique(numbers)))
    fingerprint = bench.trial(config).table.fingerprint
    record: Record = {
        **origin(bench.dataset, fingerprint, 0),
        "chosen_by": "hand",
        "objective": str(bench.measure),
        "certificate": "none",
        "in_sample": estimate(mean_interval(values, bench.units), len(values)),
        "baseline": estimate(mean_interval(current, bench.units), len(values)),
        "promise": promised(promise, str(bench.measure), len(values)),
    }
    if held_out is not None:
        after = difference_interval(np.subtract(*held_out), unit_numbers(bench.held_out).tolist())
        record["holdout"] = estimate(after, len(bench.held_out), least=-1.0)
    return replace(config, provenance=record)


SLIDER_TOPS = (1.0, 2.0, 5.0)


def weight_names(strategy: Expr) -> list[str]:
    """What each weight of a strategy multiplies, in the order of `strategy.weights`; distinct.

    >>> from steelyard.fusion import parse_strategy
    >>> weight_names(parse_strategy("tiered(fts, then=weighted_sum(0.3*fts, 0.7*vector))"))
    ['fts', 'vector']
    """
    names = strategy.weight_names
    seen = [names[:at].count(name) for at, name in enumerate(names)]
    return [f"{name} ({before + 1})" if before else name for name, before in zip(names, seen, strict=True)]


def top_of(weights: Sequence[float]) -> float:
    """Where sliders end: the first of 1, 2, 5, 10, 20 ... above the largest weight.

    >>> top_of([0.3, 0.7]), top_of([1.0, 1.5]), top_of([4.0, 12.0])
    (1.0, 2.0, 20.0)
    """
    largest = max(weights, default=0.0)
    return next(top * 10.0**power for power in count() for top in SLIDER_TOPS if top * 10.0**power > largest)


SHOWN = 10
MAX_TEXT_CHARS = 160


def top(
    table: SignalTable,
    config: SearchConfig,
    query: int,
    entries: Mapping[str, Entry],
    grades: Mapping[str, int],
    before: Sequence[str],
) -> list[dict[str, object]]:
    """The first places of one query, by the engine's own fusion and finish.

    Each has its id, title, grade (None: not judged), score, place in the list `before` (None: not in it), and its
    parts: what each signal adds to the score, as pairs of name and number.
    """
    masked, ranking, _ = rank_table(only(table, table.queries[query : query + 1]), config, config.effective)
    plan = compile_plan(masked, config.effective)
    rows: list[dict[str, object]] = []
    for row, score in zip(ranking.row[:SHOWN].tolist(), ranking.score[:SHOWN].tolist(), strict=True):
        id_ = masked.entries[masked.entry[row]]
        terms, factor = contributions(tree) if (tree := plan.explain(row)) else ([], None)
        times = 1.0 if factor is None else factor["value"]
        parts = [[term["signal"], term["contribution"] * times] for term in terms]
        place = before.index(id_) + 1 if id_ in before else None
        rows.append({**described(id_, entries, grades), "score": score, "before": place, "parts": parts})
    return rows


def described(id_: str, entries: Mapping[str, Entry], grades: Mapping[str, int]) -> dict[str, object]:
    """An entry as it is listed; one that a foreign list names and the data set lacks has its id for a title."""
    title, text = (opening(entry), entry.text[:MAX_TEXT_CHARS]) if (entry := entries.get(id_)) else (id_, "")
    return {"id": id_, "title": title, "text": text, "grade": grades.get(id_)}
