"""What is explored: the labelled queries of a data set, recorded for each system when it is first looked at."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.base.errors import ConfigError
from steelyard.base.files import canonical
from steelyard.config.search_config import SearchConfig
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.candidates.curve import Curve, Objective, sweep
from steelyard_eval.candidates.form import Form
from steelyard_eval.choose.rule import shrinkage_factor
from steelyard_eval.common.configurations import Named, Setting
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.datasets import Dataset, tuning_queries
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.measures.paired import difference_interval, mean_interval
from steelyard_eval.measures.spread import Gain, Interval
from steelyard_eval.recording.record import estimate, needed, origin, promised, record
from steelyard_eval.recording.replay import only, recorded_lists, replay
from steelyard_eval.recording.workspace import Workspace, judged


@dataclass(frozen=True)
class Bench:
    """The queries that weights are chosen on, those held out, and the recordings of both.

    Attributes
    ----------
    dataset: Dataset.
    queries: The Q judged queries to choose on: those that `tune` would use.
    held_out: Judged queries that are looked at when a choice is adopted, and not before.
    measure : Measure; limit : int. What is shown, and the length of the lists.
    space: The data set, indexed; None where `table` was recorded before.
    """

    dataset: Dataset
    queries: tuple[Query, ...]
    held_out: tuple[Query, ...]
    measure: Measure
    limit: int
    space: Workspace | None
    table: SignalTable | None = None
    _tables: dict[object, SignalTable] = field(default_factory=dict)
    _judged: dict[tuple[int, int], tuple[SignalTable, Judgments]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        measure: Measure,
        limit: int | None,
        space: Workspace | None,
        table: SignalTable | None = None,
    ) -> Bench:
        """The labelled queries of a data set; ConfigError with fewer than two."""
        chosen, held_out = (judged(dataset, part) for part in tuning_queries(dataset))
        if len(chosen) < 2:
            raise ConfigError(f"{dataset.name}: exploring needs two judged queries at least; judge some first")
        return cls(dataset, chosen, held_out, measure, limit or measure.cutoff or 10, space, table)

    @property
    def setting(self) -> Setting:
        """What configurations are built for."""
        if self.space is not None:
            return Setting(self.limit, self.space.model)
        model = "" if self.table is None else str(self.table.fingerprint.get("model", ""))
        return Setting(self.limit, model, recorded_lists(self.table))

    @cached_property
    def units(self) -> list[int]:
        """The unit of every query."""
        return list(map(int, unit_numbers(self.queries)))

    @property
    def entries(self) -> dict[str, Entry]:
        """The entries by id."""
        return {entry.id: entry for entry in self.dataset.entries}

    def config(self, named: Named) -> SearchConfig:
        """The configuration of a contender, as far as the data set can supply it."""
        config = named.config(self.setting)
        if self.space is None:
            return config
        return usable(self.space, Contender(named.label, config, named.kind))[0].config

    def trial(self, config: SearchConfig) -> Trial:
        """The configuration over the queries to choose on."""
        return self._trial(config, self.queries, 0)

    def proof(self, config: SearchConfig) -> Trial | None:
        """The configuration over the queries held out; None without any."""
        return self._trial(config, self.held_out, len(self.queries)) if self.held_out else None

    def _trial(self, config: SearchConfig, queries: Sequence[Query], begin: int) -> Trial:
        return Trial.of(config, *self._part(self._recorded(config), begin, begin + len(queries)), self.measure)

    def _part(self, recorded: SignalTable, begin: int, end: int) -> tuple[SignalTable, Judgments]:
        """Some queries of a recording, with their judgments; made once."""
        key = (id(recorded), begin)  # recordings are kept as long as this is
        if key not in self._judged:
            table = recorded.slice(begin, end)
            self._judged[key] = table, Judgments.of(self.dataset.qrels, table.queries, table.entries)
        return self._judged[key]

    def _recorded(self, config: SearchConfig) -> SignalTable:
        """The lists that this configuration fuses, of all queries; made once."""
        names = tuple(needed([config]))
        retrievers = {name: config.retrievers[name].to_json() for name in names if name in config.retrievers}
        key = (config.name, names, canonical(retrievers))
        if key not in self._tables:
            every = (*self.queries, *self.held_out)
            if self.space is not None:
                self._tables[key] = record(self.space, every, [config])
            elif self.table is not None:
                self._tables[key] = only(self.table, [query.id for query in every])
            else:
                raise ValueError("exploring needs a workspace or a recording")
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
    def of(cls, config: SearchConfig, table: SignalTable, judgments: Judgments, measure: Measure) -> Trial:
        """Compile a configuration over its recording; ConfigError when the recording lacks what it needs."""
        effective = replace(config, strategy=config.effective, by_intent={})
        replay(table.slice(0, 1), effective)  # refuses what was not recorded
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
        return self.objective.values(self._columns(self.form, weights))

    def curve(self, at: int, weights: Sequence[float], top: float) -> Curve | None:
        """The mean along one weight from 0 to `top`, the others as they are; exact, None without a form."""
        if self.form is None or self.objective is None:
            return None
        start = self._columns(self.form, [0.0 if slot == at else weight for slot, weight in enumerate(weights)])
        return sweep(self.objective, start, (self.form.slot == at).astype(np.float64), 0.0, top)

    def written(self, weights: Sequence[float]) -> SearchConfig:
        """The configuration with these weights."""
        return self.config.with_strategy(self.config.strategy.with_weights(np.array(weights)))

    @staticmethod
    def _columns(form: Form, weights: Sequence[float]) -> Floats:
        spread: Floats = form.spread(np.array([weights], dtype=np.float64))[0]
        return spread


Record = dict[str, object]


def adopted(
    bench: Bench,
    config: SearchConfig,
    values: Floats,
    current: Floats,
    held_out: tuple[Floats, Floats] | None,
    now: Callable[[], float] = time.time,
) -> SearchConfig:
    """The configuration with its provenance: `chosen_by` is hand.

    The promise is the gain over the current one on the queries that were looked at, times what a gate leaves of
    it (`rule.shrinkage`), because a hand that follows the number chooses what happens to look good on them.
    Under `holdout` stands the gain on queries that were not looked at.

    Parameters
    ----------
    values, current: float64[Q]. The chosen and the current one on the queries that were looked at.
    held_out: two float64[H], or None. The same on the queries held out.
    """
    gains = values - current
    numbers = np.array(bench.units)
    left, seen = shrinkage_factor(gains, numbers), difference_interval(gains, bench.units)
    promise = Gain.within(Interval(*(left * value for value in astuple(seen))), len(np.unique(numbers)))
    fingerprint = bench.trial(config).table.fingerprint
    record: Record = {
        **origin(bench.dataset, fingerprint, 0, now),
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
