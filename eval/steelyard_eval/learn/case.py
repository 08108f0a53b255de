"""A log joined to a recording of its data set: which of its lists our search gives again, and their counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError, DataError
from steelyard.base.fields import format_time
from steelyard.config.search_config import SearchConfig, policy_of
from steelyard.embedders.embed import RecordedEmbedder
from steelyard.live.identity import share
from steelyard.memory.query import Query, clean_query
from steelyard_eval.compare.contenders import Contender, Given
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.first_ten import PLACES, CandidateLists, lists_of
from steelyard_eval.learn.policies import Hits, Policy, match, recognise
from steelyard_eval.learn.reader import Known, Log, read_log
from steelyard_eval.measures.metrics import Judgments
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace, judged
from steelyard_eval.tune.current import read_current
from steelyard_eval.tune.recommendation import DEFAULT
from steelyard_eval.tune.source import Live


@dataclass(frozen=True)
class LogCase:
    """Everything that is learned from.

    Attributes
    ----------
    label, config : what is used today.
    queries : those of the lists: logged ones first, then labelled ones.
    cells : the counts of the policies that were recognised; `halves` the earlier and the later of them.
    labelled : int64[n], the queries that are labelled for tuning.
    labels : float64[G, n], nDCG@10 of the candidates on them.
    """

    space: Workspace
    path: Path
    log: Log
    label: str
    config: SearchConfig
    lists: CandidateLists
    queries: tuple[Query, ...]
    policies: tuple[Policy, ...]
    hits: Hits
    cells: Cells
    halves: tuple[Cells, Cells]
    labelled: Indices
    labels: Floats
    fingerprint: Mapping[str, object]

    @property
    def foreign(self) -> int:
        """Searches by policies that our replay does not reproduce."""
        return sum(policy.searches for policy in self.policies if policy.how == "foreign")

    @property
    def listless(self) -> bool:
        """Whether every list is one entry that was acted upon: a tally, such as Soleri keeps, and no lists."""
        own = self.hits.tally
        return not self.hits.place.any() and bool((own.acts.sum(axis=1) >= own.shown).all())

    @property
    def recognised(self) -> Bools:
        """bool[M]: which keys of the hits are by policies that were recognised."""
        known = np.array([policy.how != "foreign" for policy in self.policies], dtype=bool)
        return known[self.hits.policy]


def prepare(
    dataset: Dataset,
    path: str | Path,
    current: Given | None = None,
    *,
    embedder: str = "auto",
    workspace: Workspace | None = None,
    now: float,
) -> LogCase:
    """Read a log, record the queries that it holds, and count what was recognised.

    Raises DataError when the log cannot be read or has no impression that can be used, and ConfigError when what
    is used today has no weights.
    """
    space = workspace or Workspace.open(dataset, embedder)
    numbered = sorted((entry.id for entry in dataset.entries), key=lambda name: name.encode())
    log = read_log(path, _known(space, numbered), max(now, dataset.as_of))
    if not log.census.impressions:
        raise DataError(f"the feedback log {str(path)!r} has no impression that can be used{_faults(log)}")
    configurations = _configurations(log)
    label, used = _current(space, current, log, configurations)
    config = replace(used, strategy=used.effective, by_intent={})
    whole = log.history.whole
    asked = _asked(dataset, log, np.unique(log.axes.split(whole.key)[2]))
    queries, query_of = _queries(dataset, asked, log.axes.queries)
    sharing = [one for one in configurations.values() if len(share([config, one])) == 1]
    table = record(space, queries, [config, *(one.with_limit(config.limit) for one in sharing)])
    queries = [
        replace(query, intent=own) for query, own in zip(queries, table.asked.labels["intent"], strict=True)
    ]
    lists = replace(lists_of(table, config), unit=unit_numbers(queries))
    at = {name: number for number, name in enumerate(table.entries)}
    entry_of = np.array([*(at.get(name, -1) for name in numbered), -1], dtype=np.int64)
    hits = match(log, whole, lists, query_of, entry_of)
    policies = tuple(recognise(log, hits, lists, table, configurations | {policy_of(used): used}))
    known = np.array([policy.how != "foreign" for policy in policies], dtype=bool)
    halves = [match(log, half, lists, query_of, entry_of) for half in log.history.halves()]
    earlier, later = (half.cells(lists, known[half.policy]) for half in halves)
    labelled = _labelled(dataset, lists)
    return LogCase(
        space=space,
        path=Path(path),
        log=log,
        label=label,
        config=config,
        lists=lists,
        queries=tuple(queries),
        policies=policies,
        hits=hits,
        cells=hits.cells(lists, known[hits.policy]),
        halves=(earlier, later),
        labelled=labelled,
        labels=_labels(dataset, lists, labelled),
        fingerprint=table.fingerprint,
    )


def _known(space: Workspace, entries: Sequence[str]) -> Known:
    """What lines are matched against; other texts can be learned from where they can be embedded."""
    queries = space.dataset.queries
    texts: dict[str, list[int]] = {}
    for at, query in enumerate(queries):
        texts.setdefault(query.text, []).append(at)
    return Known(
        entries={name: at for at, name in enumerate(entries)},
        by_id={query.id: at for at, query in enumerate(queries)},
        by_text={text: own[0] for text, own in texts.items() if len(own) == 1},
        texts={query.id: query.text for query in queries},
        extensible=not isinstance(space.embedder, RecordedEmbedder),
    )


def _faults(log: Log) -> str:
    """What was set aside, in words."""
    rows = log.census.to_json()["set_aside"]
    found = "; ".join(f"{row['count']} {row['rule']} (line {row['lines'][0]})" for row in rows[:3])
    return f": {found}" if found else "; it is empty"


def _configurations(log: Log) -> dict[str, SearchConfig]:
    """The configurations that the log holds; one that cannot be read, or has another hash, counts as unknown."""
    found = {}
    for name, own in log.configurations.items():
        try:
            config = SearchConfig.from_json(own, f"policy {name}")
        except (ConfigError, KeyError):
            continue
        if policy_of(config) == name:
            found[name] = config
    return found


def _current(
    space: Workspace, given: Given | None, log: Log, configurations: Mapping[str, SearchConfig]
) -> tuple[str, SearchConfig]:
    """What is used today: what was given, else the policy that searched most, else the data set's system."""
    often = sorted(configurations, key=lambda name: -log.searches.get(name, 0))
    if given is None and often and log.searches.get(often[0]):
        given = configurations[often[0]]
    used = read_current(space.dataset.system or DEFAULT if given is None else given, PLACES, Live(space))
    if not isinstance(used, Contender):
        raise ConfigError(f"{used.label} has no weights to learn; name a system, a strategy or a weights file")
    label = str(used.config.effective) if isinstance(given, SearchConfig) else used.label
    return label, used.config


def _asked(dataset: Dataset, log: Log, numbers: Indices) -> list[tuple[int, Query]]:
    """The queries that were logged, with their numbers in the log; those that cannot be searched are left out."""
    found = []
    for number in numbers.tolist():
        if number < len(dataset.queries):
            found.append((number, dataset.queries[number]))
            continue
        text = log.added[number - len(dataset.queries)]
        try:
            clean_query(text)
        except ConfigError:
            continue
        found.append((number, Query(text, id=f"logged-{number - len(dataset.queries)}")))
    return found


def _queries(dataset: Dataset, asked: Sequence[tuple[int, Query]], size: int) -> tuple[list[Query], Indices]:
    """The queries to record, and int64[size]: where each number of the log is among them."""
    queries = [query for _, query in asked]
    query_of = np.full(size, -1, dtype=np.int64)
    query_of[[number for number, _ in asked]] = np.arange(len(asked))
    there = {query.id for query in queries}
    return [*queries, *(query for query in judged(dataset, dataset.queries) if query.id not in there)], query_of


def _labelled(dataset: Dataset, lists: CandidateLists) -> Indices:
    """int64[n]: the queries of the lists that are labelled for tuning."""
    own = {query.id for query in judged(dataset, dataset.queries)}
    return np.array([number for number, name in enumerate(lists.queries) if name in own], dtype=np.int64)


def _labels(dataset: Dataset, lists: CandidateLists, at: Indices) -> Floats:
    """float64[G, n]: nDCG@10 of every candidate on some queries."""
    judgments = Judgments.of(dataset.qrels, lists.queries, lists.entries)
    return lists.values(lists.grades(judgments), at)


def span(log: Log) -> str:
    """From when to when the log runs."""
    first, last = log.census.first_time, log.census.last_time
    return (
        f"{format_time(first)[:10]} to {format_time(last)[:10]}" if first is not None and last is not None else ""
    )
