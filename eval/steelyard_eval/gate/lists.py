"""Runs contenders: their lists as users see them, the same down to place 100, their scores, values and promises.

Promises are scope, validity and exclusion. Systems document different ones (bm25 returns what has expired, soleri
as shipped filters no vectors), and lists of other engines none. So a promise counts where no list of the baseline
broke it; breaking it then fails.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from json import JSONDecodeError
from pathlib import Path

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, SteelyardError, collect_errors, quote
from steelyard.config import SearchConfig, read_json
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query, valid_at
from steelyard.memory.text import content
from steelyard_eval.common.configurations import USUAL_LIMIT, NamedConfig, Setting, split_label
from steelyard_eval.compare.contenders import Contender, Given, GivenMany, distinct, labelled, read, usable
from steelyard_eval.compare.list_contenders import ListContender, of_run
from steelyard_eval.compare.lists_and_latency import without_floors
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.manifest import Naming
from steelyard_eval.gate.rule import NDCG10, NDCG100, SHALLOW, Values, losses
from steelyard_eval.gate.setup import Gate
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.measures.metrics import Judgments, evaluate, evaluate_lists
from steelyard_eval.measures.trec_runs import Scored
from steelyard_eval.recording.next_steps import shell_command
from steelyard_eval.recording.provenance import share
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import ReplayedRun, replay
from steelyard_eval.result.structs import Message

DEEPEST = 100  # how far lists are looked at
PERSISTENCE = 0.9
Lists = list[list[Scored]]
_EXCLUDED = re.compile(r"(?:^|\s)-(\w+)")


@dataclass(frozen=True)
class ContenderRef:
    """A contender to be gated, with the text that names it again in another process; empty when none does."""

    one: NamedConfig | ListContender
    written: str


def read_contenders(many: GivenMany) -> list[ContenderRef]:
    """Read contenders; ConfigError lists every fault at once, a label that two of them have among them."""
    refs = collect_errors(*(partial(_read, given, label) for given, label in labelled(many)))
    distinct([partial(read, ref.one) for ref in refs])
    return refs


def _read(given: Given, label: str) -> ContenderRef:
    one = read(given, label)
    if isinstance(one, NamedConfig):
        return ContenderRef(one, "" if isinstance(one.given, SearchConfig) else one.given)
    # A run can be read from its file again.
    return ContenderRef(one, split_label(given)[1] if isinstance(given, str) and one.kind == "run" else one.source)


def read_again(naming: Naming, dataset: Dataset, label: str, kind: str, written: str) -> ContenderRef:
    """Read what a baseline names; ConfigError when it may not name that, or it is gone."""
    text = naming.of_kind(kind, written)
    try:
        if kind == "run":
            return ContenderRef(of_run(label, Path(text)), written)
        return ContenderRef(
            NamedConfig(label, kind, SearchConfig.load(text) if kind == "weights" else text), written
        )
    except SteelyardError as error:
        torn = isinstance(error.__context__, JSONDecodeError)  # which tells a place and quotes nothing
        if kind == "weights" and (torn or _is_weights(text)):
            remedy = f"{naming.file} names this file: correct it, or restore it from version control"
            raise ConfigError(f"{error} ({remedy})") from None
        # The message may quote the file, which the baseline chose and which may hold anything.
        command = shell_command("gate", dataset, text, options={}) or "gate it by name"
        problem = f"{naming.file} names {quote(written)}, which is no {kind} that can be read"
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
    """What a contender answered."""

    ref: ContenderRef
    config: SearchConfig | None  # None for what is known by its lists alone
    lists: Lists  # as users see them, a list a query
    deep: Lists  # the same down to place 100
    values: Values
    broken: list[dict[str, int]]  # for every query how many entries break each promise; kept ones are left out
    notices: Sequence[Message]
    answered: tuple[str, ...]  # the queries that nothing answers and that show something all the same
    # query -> the share of its relevant entries that the floor, if any, drops
    lost: Mapping[str, float] | None = None

    @property
    def label(self) -> str:
        """Its name."""
        return self.ref.one.label

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
    named = [(ref, ref.one) for ref in refs if isinstance(ref.one, NamedConfig)]
    found = {own.label: own for own in (_replayed(gate, named) if named else ())}
    found |= {ref.one.label: _listed(gate, ref, ref.one) for ref in refs if isinstance(ref.one, ListContender)}
    return [found[ref.one.label] for ref in refs]


def _replayed(gate: Gate, named: Sequence[tuple[ContenderRef, NamedConfig]]) -> Iterator[ContenderLists]:
    space, qrels = gate.space, gate.dataset.qrels
    setting = Setting(gate.limit, space.model)
    built = [usable(space, Contender(one.label, one.config(setting), one.kind)) for _, one in named]
    for group in share([row.config for row, _ in built]):
        configs = [built[i][0].config for i in group]
        # The same search shown down to place 100: depths stay, so its first places are those that users see.
        deeper = [config.with_limit(max(config.limit, DEEPEST)) for config in configs]
        table = record(space, gate.queries, [*itertools.chain(*zip(configs, deeper, strict=True))])
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
                values=measure(gate, near.ranked, far.ranked),
                broken=broken(gate, lists),
                notices=built[i][1],
                answered=_falsely_answered(gate, scored(replay(silent, config)) if silent else []),
                lost=losses(replay(table, bare).ranked, near.ranked, qrels) if floored else None,
            )


def _listed(gate: Gate, ref: ContenderRef, one: ListContender) -> ContenderLists:
    size = gate.limit or USUAL_LIMIT
    found = one.answers(gate.queries, max(size, DEEPEST), gate.dataset)
    lists, deep = ([ranking[:most] for ranking in found.lists] for most in (size, max(size, DEEPEST)))
    near, far = (found.ranked(gate.queries, most) for most in (size, max(size, DEEPEST)))
    none = one.answers(gate.unanswerable, size, gate.dataset).lists if gate.unanswerable else []
    return ContenderLists(
        ref=ref,
        config=None,
        lists=lists,
        deep=deep,
        values=measure(gate, near, far),
        broken=broken(gate, lists),
        notices=found.notices,
        answered=_falsely_answered(gate, none),
    )


def _falsely_answered(gate: Gate, lists: Lists) -> tuple[str, ...]:
    return tuple(query.id for query, ranking in zip(gate.unanswerable, lists, strict=False) if ranking)


def scored(run: ReplayedRun) -> Lists:
    """The lists of a replay with their scores."""
    ids = [run.table.entries[entry] for entry in run.entry.tolist()]
    pairs = list(zip(ids, run.ranking.score.tolist(), strict=True))
    return [pairs[begin:end] for begin, end in itertools.pairwise(run.ranking.offsets.tolist())]


def measure(gate: Gate, lists: Ranked, deep: Ranked) -> Values:
    """Measure lists: nDCG@10 of those that users see, the other two of the same lists down to place 100.

    All end where the tokens of the gate are full, if it has any.
    """
    qrels = gate.dataset.qrels
    if gate.tokens is not None:
        lists, deep = (ranked.within(gate.tokens, gate.dataset.tokens) for ranked in (lists, deep))
    judgments = Judgments.of(qrels, deep.queries, deep.entries)
    ndcg = evaluate_lists(lists, qrels, [NDCG10])[NDCG10]
    far = evaluate(deep.offsets, deep.entry, judgments, [NDCG100])[NDCG100]
    longest = int(np.diff(deep.offsets).max(initial=0))
    return Values(np.array([ndcg, far, geometric_gain(deep, judgments)]), longest > SHALLOW)


def geometric_gain(lists: Ranked, judgments: Judgments) -> Floats:
    """float64[Q]: (1/R) times the sum of .9^(rank - 1) over the relevant entries of a list; 0 without any.

    Rank-biased precision (Moffat and Zobel, TOIS 2008) without its factor 1 - p, over the R relevant entries.
    """
    size, query = np.diff(lists.offsets), lists.query
    place = np.arange(query.size) - np.repeat(lists.offsets[:-1], size)
    relevant = judgments.grades(query, lists.entry) >= 1
    gains = np.where(relevant & (place < DEEPEST), PERSISTENCE**place, 0.0)
    return np.bincount(query, gains, size.size) / np.maximum(judgments.relevant, 1)


def broken(gate: Gate, lists: Lists) -> list[dict[str, int]]:
    """For every query how many entries of its list break each promise; kept promises are left out."""
    entries, found = {entry.id: entry for entry in gate.dataset.entries}, []
    for query, ranking in zip(gate.queries, lists, strict=True):
        listed = [entries[id_] for id_, _ in ranking if id_ in entries]
        counts = {name: sum(map(test, listed)) for name, test in _tests(query, gate.dataset.clock(query))}
        found.append({name: count for name, count in counts.items() if count})
    return found


def _tests(query: Query, clock: float) -> Iterator[tuple[str, Callable[[Entry], bool]]]:
    valid = valid_at(clock)
    yield "validity", lambda entry: bool(valid.failed(entry))
    if query.filters:
        yield "scope", lambda entry: bool(query.filters.failed(entry))
    words = {word.lower() for word in _EXCLUDED.findall(query.text)}
    if words:
        yield "exclusion", lambda entry: not words.isdisjoint(re.findall(r"\w+", content(entry).lower()))
