"""Reads what the user runs today, which every candidate is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from steelyard.base.arrays import Floats
from steelyard.config.search_config import SearchConfig
from steelyard.memory.query import Query
from steelyard_eval.candidates.candidates import CandidateSet
from steelyard_eval.candidates.composite import DEEPEST, composite, parts_for
from steelyard_eval.candidates.configuration_key import config_key
from steelyard_eval.candidates.settings import refuse_fixed
from steelyard_eval.candidates.source import Source
from steelyard_eval.common.configurations import Named, Setting
from steelyard_eval.compare.contenders import Contender, Given, read, read_config
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.measures.runs import Ranked
from steelyard_eval.recording.rankings import ShownLists
from steelyard_eval.result.structs import Said

NO_LISTS = ShownLists(Ranked.of([], []))


@dataclass(frozen=True)
class Current:
    """The current contender on the Q queries.

    `config` is None where lists alone are known (a run, an endpoint, a function). `values` holds the metrics of
    the leaderboard, `composite` what candidates are judged on; float64[Q] each. `lists` are those of a contender
    without configuration, and `notices` say what was odd about them.
    """

    given: Contender | ListContender
    values: dict[Measure, Floats]
    composite: Floats
    lists: ShownLists = NO_LISTS
    notices: tuple[Said, ...] = ()

    @property
    def label(self) -> str:
        """Its name."""
        return self.given.label

    @property
    def config(self) -> SearchConfig | None:
        """What it is, where it is more than lists."""
        return self.given.config if isinstance(self.given, Contender) else None

    @property
    def key(self) -> str | None:
        """Its name in tables of other collections."""
        return None if self.config is None else config_key(self.config)


@dataclass(frozen=True)
class Only:
    """The one strategy that is tuned.

    `word` is how a command names it, None where it exists in Python alone; with `weights_only` its settings stay
    as they are written. `notices` say what it runs without.
    """

    row: Contender
    word: str | None
    weights_only: bool
    notices: tuple[Said, ...] = ()


def read_current(given: Given, limit: int, source: Source) -> Contender | ListContender:
    """Any contender: a system, an expression, a weights file, a run, an endpoint, a table of lists, a function.

    Raises ConfigError for what is none, or needs what the data set or the recording does not have.
    """
    contender = read(given, lists=source.lists or ())
    return contender if isinstance(contender, ListContender) else _supplied(contender, limit, source)[0]


def configured(given: Given, limit: int, source: Source) -> Contender:
    """One that has weights; ConfigError for one that has lists alone."""
    return _supplied(read_config(given, source.lists or ()), limit, source)[0]


def read_only(given: Given, limit: int, source: Source, weights_only: bool) -> Only:
    """One strategy that is tuned alone; ConfigError for one that has lists alone, or nothing to tune."""
    named = read_config(given, source.lists or ())
    row, notices = _supplied(named, limit, source)
    refuse_fixed(row.config.effective)
    config = replace(row.config, strategy=row.config.effective, by_intent={})
    return Only(replace(row, config=config), named.word, weights_only, tuple(notices))


def _supplied(named: Named, limit: int, source: Source) -> tuple[Contender, list[Said]]:
    config = named.config(Setting(limit, source.model, source.lists))
    return source.usable(Contender(named.label, config, named.kind))


def of_config(given: Contender, layout: CandidateSet, measures: Sequence[Measure]) -> Current:
    """A configuration as the current one, by replay."""
    _, composite = layout.measured(given.config, measures[0])
    return Current(given, layout.values(given.config, measures), composite)


def of_lists(
    contender: ListContender, dataset: Dataset, queries: Sequence[Query], limit: int, measures: Sequence[Measure]
) -> Current:
    """Lists as the current contender, asked for as deep as the composite looks."""
    answers = contender.answers(queries, max(limit, DEEPEST), dataset)
    parts = parts_for(measures[0])
    deep = answers.ranked(queries, max(limit, DEEPEST)).metrics(dataset.qrels, parts)
    ranked = answers.ranked(queries, limit)
    values = ranked.metrics(dataset.qrels, measures)
    return Current(contender, values, composite(deep, parts), ShownLists(ranked), tuple(answers.notices))
