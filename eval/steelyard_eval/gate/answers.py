"""Runs contenders: their lists as users see them, the same down to place 100, and the scores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from json import JSONDecodeError
from pathlib import Path

import numpy as np

from steelyard.base.errors import ConfigError, SteelyardError, shown, together
from steelyard.config.search_config import SearchConfig, read_json
from steelyard.finish import without_floors
from steelyard.live.identity import share
from steelyard.memory.query import Query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.configurations import LIMIT, Named, Setting, parted
from steelyard_eval.common.documents.gate import GatedConfiguration
from steelyard_eval.compare.contenders import Contender, Given, GivenMany, distinct, labelled, read, usable
from steelyard_eval.compare.list_contenders import ListContender, of_run
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.named import Naming
from steelyard_eval.decide.wording import settings
from steelyard_eval.gate.invariants import broken
from steelyard_eval.gate.silence import losses
from steelyard_eval.gate.values import DEEPEST, Values, measure
from steelyard_eval.measures.runs import Ranked, Scored
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import Replay, replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Said


@dataclass(frozen=True)
class Asked:
    """A contender to be gated, with the text that names it again in another process; empty when none does."""

    one: Named | ListContender
    written: str

    @classmethod
    def of(cls, given: Given, label: str = "") -> Asked:
        """Read any contender; ConfigError when it is none."""
        contender = read(given, label)
        if isinstance(contender, ListContender):
            return cls(contender, _again(given, contender))
        return cls(contender, "" if isinstance(contender.given, SearchConfig) else contender.given)

    @classmethod
    def again(cls, naming: Naming, dataset: Dataset, label: str, kind: str, written: str) -> Asked:
        """Read what a baseline names; ConfigError when it may not name that, or it is gone."""
        text = naming.of_kind(kind, written)
        try:
            if kind == "run":
                return cls(of_run(label, Path(text)), written)
            return cls(Named(label, kind, SearchConfig.load(text) if kind == "weights" else text), written)
        except SteelyardError as error:
            torn = isinstance(error.__context__, JSONDecodeError)  # which tells a place and quotes nothing
            if kind == "weights" and (torn or _is_weights(text)):
                remedy = f"{naming.file} names this file: correct it, or restore it from version control"
                raise ConfigError(f"{error} ({remedy})") from None
            # The message may quote the file, which the baseline chose and which may hold anything.
            command = spelled("gate", dataset, text, options={}) or "gate it by name"
            problem = f"{naming.file} names {shown(written)}, which is no {kind} that can be read"
            raise ConfigError(f"{problem}; to see why: {command}") from None

    @property
    def kind(self) -> str:
        """system, strategy, weights, run, endpoint, function or frame."""
        return self.one.kind


def _is_weights(file: str) -> bool:
    """Whether a file has the keys of weights, so that a message may quote it."""
    try:
        record = read_json(file)
    except SteelyardError:
        return False
    return isinstance(record, Mapping) and record.keys() >= {"schema_version", "system", "strategy"}


def read_asked(many: GivenMany) -> list[Asked]:
    """Read contenders; ConfigError lists every fault at once, a label that two of them have among them."""
    asked = together(*(partial(Asked.of, given, label) for given, label in labelled(many)))
    distinct([partial(read, each.one) for each in asked])
    return asked


def _again(given: Given, one: ListContender) -> str:
    """Where lists come from, for those who read the baseline; a run can be read from there again."""
    return parted(given)[1] if isinstance(given, str) and one.kind == "run" else one.source


@dataclass(frozen=True)
class GateAnswers:
    """What a contender answered.

    Attributes
    ----------
    asked : Asked
    config : SearchConfig or None
        None for what is known by its lists alone.
    lists : list of list of (id, score)
        As users see them, a list a query.
    deep : list of list of (id, score)
        The same down to place 100.
    values : Values
        float64[3, Q].
    broken : tuple of mapping
        For every query the promises that its list breaks; see `invariants`.
    answered : tuple of str
        The queries that nothing answers and that show something all the same.
    lost : mapping or None
        query -> the share of the relevant entries that its floor drops; None of what has no floor.
    """

    asked: Asked
    config: SearchConfig | None
    lists: list[list[Scored]]
    deep: list[list[Scored]]
    values: Values
    broken: tuple[Mapping[str, int], ...]
    notices: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    lost: Mapping[str, float] | None = None

    @property
    def label(self) -> str:
        """Its name."""
        return self.asked.one.label

    @property
    def strategy(self) -> str:
        """The strategy, or where the lists come from."""
        if self.config:
            return str(self.config.effective)
        return self.asked.one.source if isinstance(self.asked.one, ListContender) else ""


@dataclass(frozen=True)
class Field:
    """What contenders run on: the data set, its judged queries, the length of lists, the workspace when needed."""

    dataset: Dataset
    queries: Sequence[Query]
    limit: int | None
    workspace: Callable[[], Workspace]
    unanswerable: Sequence[Query] = ()

    def run(self, asked: Iterable[Asked]) -> list[GateAnswers]:
        """Run the contenders, in order; those that retrieve alike share a recording."""
        every = list(asked)
        answers: dict[str, GateAnswers] = {}
        named = [each for each in every if isinstance(each.one, Named)]
        if named:
            answers |= {each.label: each for each in self._replayed(named, self.workspace())}
        lists = [(each, each.one) for each in every if isinstance(each.one, ListContender)]
        answers |= {contender.label: self._listed(each, contender) for each, contender in lists}
        return [answers[each.one.label] for each in every]

    def _replayed(self, asked: Sequence[Asked], space: Workspace) -> list[GateAnswers]:
        built = [usable(space, _contender(each.one, Setting(self.limit, space.model))) for each in asked]
        replayed = []
        for group in share([row.config for row, _ in built]):
            configs = [built[i][0].config for i in group]
            table = record(space, self.queries, [deep for config in configs for deep in (config, deeper(config))])
            silent = record(space, self.unanswerable, configs) if self.unanswerable else None
            for i in group:
                row, notices = built[i]
                answers = self._answers(asked[i], row.config, table, notices)
                replayed.append(replace(answers, answered=_answered(silent, row.config)))
        return replayed

    def _answers(
        self, asked: Asked, config: SearchConfig, table: SignalTable, notices: Sequence[Said]
    ) -> GateAnswers:
        run, deep = replay(table, config), replay(table, deeper(config))
        values = measure(run.ranked, deep.ranked, self.dataset.qrels)
        lists = scored(run)
        facts = tuple(broken(self.dataset, self.queries, lists))
        answers = GateAnswers(asked, config, lists, scored(deep), values, facts, tuple(map(say, notices)))
        bare = replace(config, finish=without_floors(config.finish))
        if bare.finish == config.finish:
            return answers
        lost = losses(replay(table, bare).ranked, run.ranked, self.dataset.qrels)
        return replace(answers, lost=lost)

    def _listed(self, asked: Asked, one: ListContender) -> GateAnswers:
        size = self.limit or LIMIT
        answered = one.answers(self.queries, max(size, DEEPEST), self.dataset)
        lists, deep = ([ranking[:most] for ranking in answered.lists] for most in (size, max(size, DEEPEST)))
        values = measure(ranked(self.queries, lists), ranked(self.queries, deep), self.dataset.qrels)
        facts = tuple(broken(self.dataset, self.queries, lists))
        none = one.answers(self.unanswerable, size, self.dataset).lists if self.unanswerable else []
        shown = tuple(query.id for query, ranking in zip(self.unanswerable, none, strict=True) if ranking)
        return GateAnswers(
            asked, None, lists, deep, values, facts, tuple(map(say, answered.notices)), answered=shown
        )


def _contender(one: Named | ListContender, setting: Setting) -> Contender:
    if isinstance(one, ListContender):
        raise TypeError(f"{one.label} has lists only")
    return Contender(one.label, one.config(setting), one.kind)


def _answered(table: SignalTable | None, config: SearchConfig) -> tuple[str, ...]:
    """The queries of a recording for which a configuration shows anything."""
    if table is None:
        return ()
    sizes = np.diff(replay(table, config).ranking.offsets)
    return tuple(query for query, size in zip(table.queries, sizes.tolist(), strict=True) if size)


def deeper(config: SearchConfig) -> SearchConfig:
    """The same search, shown down to place 100; depths stay, so its first places are those that users see."""
    return config.with_limit(max(config.limit, DEEPEST))


def scored(run: Replay) -> list[list[Scored]]:
    """The lists of a replay with their scores."""
    ids = [run.table.entries[entry] for entry in run.entry.tolist()]
    pairs = list(zip(ids, run.ranking.score.tolist(), strict=True))
    return [pairs[begin:end] for begin, end in itertools.pairwise(run.ranking.offsets.tolist())]


def ranked(queries: Sequence[Query], lists: Sequence[Sequence[Scored]]) -> Ranked:
    """Lists with scores as ranked lists."""
    return Ranked.of([query.id for query in queries], [[id_ for id_, _ in ranking] for ranking in lists])


def by_query(many: Sequence[GateAnswers], queries: Sequence[Query]) -> dict[str, object]:
    """nDCG@10 of each contender on each query, as the documents of comparisons have it."""
    values = {one.label: one.values.ndcg.tolist() for one in many}
    rows = [
        {"id": query.id, "values": {label: own[i] for label, own in values.items()}}
        for i, query in enumerate(queries)
    ]
    return {"per_query": rows}


def about(answers: GateAnswers) -> GatedConfiguration:
    """What a contender is, for documents."""
    config = answers.config
    about: GatedConfiguration = {
        "label": answers.label,
        "kind": answers.asked.kind,
        "system": config.system if config else None,
        "profile": config.profile if config else None,
        "strategy": answers.strategy,
        "limit": config.limit if config else None,
    }
    return {**about, **settings(config)} if config else about
