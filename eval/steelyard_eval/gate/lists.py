"""Runs contenders: their lists as users see them, the same down to place 100, and the scores."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from json import JSONDecodeError
from pathlib import Path

from steelyard.base.errors import ConfigError, SteelyardError, shown, together
from steelyard.config.search_config import SearchConfig, read_json
from steelyard.finish import without_floors
from steelyard.live.identity import share
from steelyard_eval.common.configurations import LIMIT, Named, Setting, parted
from steelyard_eval.compare.contenders import Contender, Given, GivenMany, distinct, labelled, read, usable
from steelyard_eval.compare.list_contenders import ListContender, of_run
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.manifest import Naming
from steelyard_eval.gate.rule import losses
from steelyard_eval.gate.setup import Gate
from steelyard_eval.gate.values import DEEPEST, SHALLOW, Values, broken, measure
from steelyard_eval.measures.runs import Ranked, Scored
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import Replay, replay
from steelyard_eval.recording.steps import spelled
from steelyard_eval.result.structs import Said

Lists = list[list[Scored]]


@dataclass(frozen=True)
class ContenderRef:
    """A contender to be gated, with the text that names it again in another process; empty when none does."""

    one: Named | ListContender
    written: str

    @property
    def label(self) -> str:
        """Its name."""
        return self.one.label

    @property
    def kind(self) -> str:
        """system, strategy, weights, run, endpoint, function or frame."""
        return self.one.kind


def read_contenders(many: GivenMany) -> list[ContenderRef]:
    """Read contenders; ConfigError lists every fault at once, a label that two of them have among them."""
    refs = together(*(partial(_read, given, label) for given, label in labelled(many)))
    distinct([partial(read, ref.one) for ref in refs])
    return refs


def _read(given: Given, label: str) -> ContenderRef:
    one = read(given, label)
    if isinstance(one, Named):
        return ContenderRef(one, "" if isinstance(one.given, SearchConfig) else one.given)
    # A run can be read from its file again.
    return ContenderRef(one, parted(given)[1] if isinstance(given, str) and one.kind == "run" else one.source)


def read_again(naming: Naming, dataset: Dataset, label: str, kind: str, written: str) -> ContenderRef:
    """Read what a baseline names; ConfigError when it may not name that, or it is gone."""
    text = naming.of_kind(kind, written)
    try:
        if kind == "run":
            return ContenderRef(of_run(label, Path(text)), written)
        return ContenderRef(Named(label, kind, SearchConfig.load(text) if kind == "weights" else text), written)
    except SteelyardError as error:
        torn = isinstance(error.__context__, JSONDecodeError)  # which tells a place and quotes nothing
        if kind == "weights" and (torn or _is_weights(text)):
            remedy = f"{naming.file} names this file: correct it, or restore it from version control"
            raise ConfigError(f"{error} ({remedy})") from None
        # The message may quote the file, which the baseline chose and which may hold anything.
        command = spelled("gate", dataset, text, options={}) or "gate it by name"
        problem = f"{naming.file} names {shown(written)}, which is no {kind} that can be read"
        raise ConfigError(f"{problem}; to see why: {command}") from None


def _is_weights(file: str) -> bool:
    """Whether a file has the keys of weights, so that a message may quote it."""
    try:
        record = read_json(file)
    except SteelyardError:
        return False
    return isinstance(record, Mapping) and record.keys() >= {"schema_version", "system", "strategy"}


@dataclass(frozen=True)
class ContenderLists:
    """What a contender answered.

    Attributes
    ----------
    ref : ContenderRef
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

    ref: ContenderRef
    config: SearchConfig | None
    lists: Lists
    deep: Lists
    values: Values
    broken: tuple[Mapping[str, int], ...]
    notices: tuple[Said, ...]
    answered: tuple[str, ...]
    lost: Mapping[str, float] | None = None

    @property
    def label(self) -> str:
        """Its name."""
        return self.ref.label

    @property
    def first(self) -> list[list[str]]:
        """The first ten ids of every list."""
        return [[id_ for id_, _ in ranking[:SHALLOW]] for ranking in self.lists]

    @property
    def strategy(self) -> str:
        """The strategy, or where the lists come from."""
        if self.config:
            return str(self.config.effective)
        return self.ref.one.source if isinstance(self.ref.one, ListContender) else ""


def run(gate: Gate, refs: Iterable[ContenderRef]) -> list[ContenderLists]:
    """Run the contenders, in order; those that retrieve alike share a recording."""
    refs = list(refs)
    named = [(ref, ref.one) for ref in refs if isinstance(ref.one, Named)]
    found = {own.label: own for own in (_replayed(gate, named) if named else ())}
    found |= {ref.label: _listed(gate, ref, ref.one) for ref in refs if isinstance(ref.one, ListContender)}
    return [found[ref.label] for ref in refs]


def _replayed(gate: Gate, named: Sequence[tuple[ContenderRef, Named]]) -> Iterator[ContenderLists]:
    space, qrels = gate.space, gate.dataset.qrels
    setting = Setting(gate.limit, space.model)
    built = [usable(space, Contender(one.label, one.config(setting), one.kind)) for _, one in named]
    for group in share([row.config for row, _ in built]):
        configs = [built[i][0].config for i in group]
        deeper = [with_depth_100(config) for config in configs]
        both = itertools.chain.from_iterable(zip(configs, deeper, strict=True))
        table = record(space, gate.queries, [*both])
        silent = record(space, gate.unanswerable, configs) if gate.unanswerable else None
        for i, config, deep in zip(group, configs, deeper, strict=True):
            near, far = replay(table, config), replay(table, deep)
            lists, bare = scored(near), replace(config, finish=without_floors(config.finish))
            floored = bare.finish != config.finish
            yield ContenderLists(
                ref=named[i][0],
                config=config,
                lists=lists,
                deep=scored(far),
                values=measure(near.ranked, far.ranked, qrels),
                broken=tuple(broken(gate.dataset, gate.queries, lists)),
                notices=tuple(built[i][1]),
                answered=_answered(scored(replay(silent, config)), silent.queries) if silent else (),
                lost=losses(replay(table, bare).ranked, near.ranked, qrels) if floored else None,
            )


def _listed(gate: Gate, ref: ContenderRef, one: ListContender) -> ContenderLists:
    size = gate.limit or LIMIT
    found = one.answers(gate.queries, max(size, DEEPEST), gate.dataset)
    lists, deep = ([ranking[:most] for ranking in found.lists] for most in (size, max(size, DEEPEST)))
    ids = [query.id for query in gate.queries]
    near, far = (Ranked.of(ids, [[id_ for id_, _ in ranking] for ranking in cut]) for cut in (lists, deep))
    none = one.answers(gate.unanswerable, size, gate.dataset).lists if gate.unanswerable else []
    return ContenderLists(
        ref=ref,
        config=None,
        lists=lists,
        deep=deep,
        values=measure(near, far, gate.dataset.qrels),
        broken=tuple(broken(gate.dataset, gate.queries, lists)),
        notices=tuple(found.notices),
        answered=_answered(none, [query.id for query in gate.unanswerable]),
    )


def _answered(lists: Lists, queries: Iterable[str]) -> tuple[str, ...]:
    """The queries for which anything is shown."""
    return tuple(query for query, ranking in zip(queries, lists, strict=False) if ranking)


def with_depth_100(config: SearchConfig) -> SearchConfig:
    """The same search, shown down to place 100; depths stay, so its first places are those that users see."""
    return config.with_limit(max(config.limit, DEEPEST))


def scored(run: Replay) -> Lists:
    """The lists of a replay with their scores."""
    ids = [run.table.entries[entry] for entry in run.entry.tolist()]
    pairs = list(zip(ids, run.ranking.score.tolist(), strict=True))
    return [pairs[begin:end] for begin, end in itertools.pairwise(run.ranking.offsets.tolist())]
