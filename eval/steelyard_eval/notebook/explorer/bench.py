"""What is explored: the labelled queries of a data set, recorded for each system when it is first looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools
from steelyard.base.errors import ConfigError
from steelyard.base.files import canonical
from steelyard.config.search_config import SearchConfig
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.configurations import Named, Setting
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.datasets import Dataset, tuning_queries
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.notebook.explorer.trial import Trial
from steelyard_eval.recording.record import needed, record
from steelyard_eval.recording.replay import only, recorded_lists
from steelyard_eval.recording.workspace import Workspace, judged


@dataclass(frozen=True)
class Bench:
    """The queries that weights are chosen on, those held out, and the recordings of both.

    Attributes
    ----------
    dataset : Dataset
    queries : tuple of Query
        The Q judged queries to choose on: those that `tune` would use.
    held_out : tuple of Query
        Judged queries that are looked at when a choice is adopted, and not before.
    measure : Measure; limit : int
        What is shown, and the length of the lists.
    space : Workspace or None
        The data set, indexed; None where `table` was recorded before.
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
