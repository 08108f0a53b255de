"""What a tuning works on: one recording of the queries to tune on and of those held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.memory.query import Query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import Contender, Given, read_config, usable
from steelyard_eval.datasets import Dataset, tuning_queries
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.decide.grid import Grid, measured
from steelyard_eval.decide.priors import key_of, known
from steelyard_eval.decide.rule import Evidence
from steelyard_eval.measures.metrics import Judgments, Measure, parse_measures
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import Replay, replay
from steelyard_eval.recording.select import only, reaches, recorded_lists
from steelyard_eval.recording.workspace import Workspace, judged
from steelyard_eval.tune.candidate import Candidate, candidate_of
from steelyard_eval.tune.layout import ByLabels, Measured, grid_over, serving
from steelyard_eval.tune.tuned_parameters import (
    depths,
    fixed_parameters,
    not_tried,
    of_retrievers,
    recorded_alike,
    refuse_fixed,
    settings,
)

COLUMNS = 10_000
"""Weights laid out over all settings of the strategy."""


@dataclass(frozen=True)
class Task:
    """Recordings of the queries to tune on, which come first, and of those held out.

    `recordings` begins with that of the configuration; each other is one of `varied`, which have other parameters
    of retrievers. `origin` has the options of a command that tell where they are from, `notices` what the data set
    lacks, and what is not tried.
    """

    dataset: Dataset
    config: SearchConfig
    recordings: tuple[Measured, ...]
    measure: Measure
    tuned_on: Sequence[Query]
    held_out: Sequence[Query]
    seed: int
    origin: Mapping[str, object] = field(default_factory=dict)
    notices: Sequence[str] = ()
    varied: Sequence[SearchConfig] = ()
    space: Workspace | None = None

    @property
    def table(self) -> SignalTable:
        """The recording of the configuration."""
        return self.recordings[0].table

    @property
    def judgments(self) -> Judgments:
        """The judgments of its queries."""
        return self.recordings[0].judgments

    def recorded(self, config: SearchConfig) -> Measured:
        """The recording that a configuration is replayed on."""
        return serving(self.recordings, config)

    def replayed(self, config: SearchConfig) -> Replay:
        """A configuration's lists on every query."""
        return replay(self.recorded(config).table, config)

    @property
    def queries(self) -> tuple[Query, ...]:
        """The Q queries of the recording."""
        return (*self.tuned_on, *self.held_out)

    @property
    def inside(self) -> Bools:
        """bool[Q]: the queries to tune on."""
        return np.arange(len(self.table.queries)) < len(self.tuned_on)

    @cached_property
    def settings(self) -> list[SearchConfig]:
        """Every choice of the parameters and depths that the recording reaches, the configuration itself first."""
        return [config for config in settings(self.config) if reaches(self.table, config)] + list(self.varied)

    @property
    def model(self) -> str:
        """The model of the vectors that were recorded; empty without any."""
        return str(self.table.fingerprint.get("model", ""))

    @cached_property
    def grid(self) -> Grid:
        """All settings under many weights, on every query."""
        return grid_over(self.recordings, recorded_alike(self.settings), ByLabels(self.measure), COLUMNS)

    @cached_property
    def evidence(self) -> Evidence:
        """The candidates' differences to the configuration on every query, and what is known beforehand."""
        metric, composite = measured(self.table, self.config, self.judgments, self.measure)
        priors = known(self.grid.keys, key_of(self.config), self.model, str(self.measure), self.dataset.sha256)
        differences = self.grid.metric - metric.astype(np.float32)
        steadier = self.grid.composite - composite.astype(np.float32)
        if self.weights > 2:  # too many to smooth along, and then the metric itself chooses better
            steadier, priors = differences, None
        return Evidence.of(differences, steadier, priors, unit_numbers(self.queries))

    def only(self, kept: Bools) -> Task:
        """The same with the candidates where bool[C] is true."""
        part = replace(self)
        vars(part)["grid"] = self.grid.only(kept)  # laid out already
        return part

    @property
    def weights(self) -> int:
        """The most weights that move together in a setting."""
        return max(block.moving for block in self.grid.blocks)

    @property
    def best(self) -> SearchConfig:
        """The candidate with the highest mean on the queries to tune on, of equal ones the first."""
        return self.grid.config(int(np.argmax(self.grid.metric[:, self.inside].mean(axis=1))))

    def candidate(self, config: SearchConfig) -> Candidate:
        """One configuration with its weights free."""
        known = self.recorded(config)
        return candidate_of(known.table, config, known.judgments, self.measure)

    def values(self, config: SearchConfig) -> Floats:
        """float64[Q]: the objective of a configuration on every query, by replay."""
        return self.replayed(config).metrics(self.recorded(config).judgments, [self.measure])[self.measure]

    def under(self, config: SearchConfig) -> Task:
        """The same queries and recording for another configuration, which needs no other signals."""
        return replace(self, config=config, varied=())


def prepare(
    dataset: Dataset,
    contender: Given | None,
    strategy: str | None,
    metric: str,
    limit: int | None,
    embedder: str,
    seed: int,
    workspace: Workspace | None = None,
    table: SignalTable | None = None,
) -> Task:
    """Record what tuning needs, down to the greatest depth it tries; see `tune` for the arguments and errors.

    `table` is a recording made before, of the same data set: one of the same system, or of another engine's lists.
    """
    measure = parse_measures([metric])[0]
    lists = recorded_lists(table)
    space = None if table is not None else workspace or Workspace.open(dataset, embedder)
    model = space.model if space else str(table.fingerprint["model"]) if table is not None else ""
    given = (f"rrf({', '.join(lists)})" if lists else "plain") if contender is None else contender
    named = read_config(strategy if lists and strategy else given, lists or ())
    config = named.config(Setting(limit or measure.cutoff, model, lists))
    if strategy and not lists:
        config = config.with_strategy(parse_strategy(strategy))
    notices: list[str] = []
    if space is not None:
        row, notices = usable(space, Contender(named.label, config, named.kind))
        config = row.config
    refuse_fixed(config.strategy)
    tuned_on, held_out = (judged(dataset, part) for part in tuning_queries(dataset))
    if len(tuned_on) < 2:
        raise ConfigError(f"{dataset.called}: tuning needs two judged queries at least; add some")
    queries = (*tuned_on, *held_out)
    varied = of_retrievers(config, len(queries)) if space else []
    tables = [
        _recorded(config, queries, space, table),
        *(record(space, queries, [setting]) for setting in varied if space),
    ]
    recordings = tuple(Measured.of(dataset.qrels, each) for each in tables)
    fixed = fixed_parameters(config, varied)
    notices += not_tried([], fixed)
    origin = space.options if space else {}
    return Task(dataset, config, recordings, measure, tuned_on, held_out, seed, origin, notices, varied, space)


def _recorded(
    config: SearchConfig, queries: Sequence[Query], space: Workspace | None, table: SignalTable | None
) -> SignalTable:
    """The recording of these queries, made now or before; ConfigError when the latter cannot serve."""
    if space is not None:
        return record(space, queries, depths(config))
    if table is None:
        raise ValueError("tuning needs a workspace or a recording")
    chosen = only(table, [query.id for query in queries])
    replay(chosen, config)  # refuses what was not recorded, before the search begins
    return chosen
