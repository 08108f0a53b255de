"""A log joined to a recording of its data set: what was shown for each query, and what the acts on it say."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from steelyard.base.errors import ConfigError, DataError
from steelyard.config import SearchConfig, policy_of
from steelyard.embedders.embed import RecordedEmbedder
from steelyard.fusion import leaves
from steelyard.memory.query import Query, clean_query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.choose.few_labels import MIN_QUERIES_WITH_LOG
from steelyard_eval.choose.recommend import random_only
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import Contender, Given, read_config
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.datasets.logs import HeldLog
from steelyard_eval.learn.counts import InterleavingResult, MatchedImpressions, PositionCounts
from steelyard_eval.learn.first_ten import PLACES, LoggedPairs
from steelyard_eval.learn.gains import FeedbackGains
from steelyard_eval.learn.log_reader import DatasetIndex, Log, read_log
from steelyard_eval.recording.provenance import share
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace

SIGNALS = ("bm25", "vector")  # what acts may follow, beside the signals of the strategy that is used
ENTRY_ALONE = "recency"
"""What acts may not follow: a taste for what is new is no worth, and would be imputed to what was never shown.
With it 6 of 60 tries by a log without labels lost on other queries, and 1 without."""


@dataclass(frozen=True)
class LogCase:
    """Everything that is learned from."""

    space: Workspace
    log: Log
    label: str  # what is used today
    config: SearchConfig  # the same, alike for every intent
    queries: tuple[Query, ...]  # those that were logged
    table: SignalTable  # their recording
    hits: MatchedImpressions  # the counts, by its numbers
    learned: FeedbackGains  # what they say of every pair
    apart: PositionCounts | None  # the cells without the largest client; None where that had all acts
    configurations: Mapping[str, SearchConfig]  # those of logged policies, by name
    file: str = ""  # the log, where it is a file other than the data set's own

    def interleaved(self, preferred: bool) -> list[tuple[InterleavingResult, SearchConfig]]:
        """Rankings that interleaving decided about, and that are not today's; those of most searches first."""
        known = [(turn, self.configurations.get(turn.other)) for turn in self.log.turns]
        return [
            (turn, config)
            for turn, config in known
            if config is not None and turn.preferred is preferred and config.effective != self.config.effective
        ]


def prepare(
    dataset: Dataset,
    path: str | Path | HeldLog,
    current: Given | None = None,
    *,
    embedder: str = "auto",
    workspace: Workspace | None = None,
    now: float,
) -> LogCase:
    """Read a log, record the queries that it holds, and learn what its acts say of what was shown.

    Raises DataError when the log cannot be read or has no impression that can be used, and ConfigError when what
    is used today has no weights.
    """
    space = (workspace or Workspace.open(dataset, embedder)).about(
        partial(random_only, fewest=MIN_QUERIES_WITH_LOG)
    )
    numbered = sorted((entry.id for entry in dataset.entries), key=lambda name: name.encode())
    log = read_log(path, _known(space, numbered), max(now, dataset.as_of))
    faults = "; ".join(f"{count} {rule} (line {lines[0]})" for count, rule, lines in log.census.ordered[:3])
    fault, aside = f"the feedback log {str(path)!r} has no", f": {faults}" if faults else "; it is empty"
    if not log.census.impressions:
        raise DataError(f"{fault} impression that can be used{aside}")
    asked = _asked(dataset, log)
    if not asked:
        raise DataError(f"{fault} query that can be searched{aside}")
    configurations = {}  # that the log holds; one that cannot be read, or has another hash, counts as unknown
    for name, document in log.configurations.items():
        with suppress(ConfigError, KeyError):
            held = SearchConfig.from_json(document, f"policy {name}")
            if policy_of(held) == name:
                configurations[name] = held
    label, config = _current(space, current, log, configurations)
    queries, query_of = tuple(asked.values()), np.full(len(dataset.queries) + len(log.added), -1, dtype=np.int64)
    query_of[[*asked]] = np.arange(len(asked))
    table = _recorded(space, queries, config, configurations.values())
    number_of = {name: number for number, name in enumerate(table.entries)}
    hits = log.hits.matched(query_of, np.array([*(number_of.get(name, -1) for name in numbered), -1]))
    named = dict.fromkeys((*(str(leaf) for leaf in leaves(config.effective)), *SIGNALS))
    signals = [name for name in named if name.partition("(")[0] != ENTRY_ALONE]
    pairs = LoggedPairs.of(table, signals, unit_numbers(queries), hits.known)
    cells = hits.cells(pairs)
    if not len(cells.row):
        raise DataError(
            f"the feedback log {str(path)!r} shows no entry of {dataset.name}; name the log of this data set"
        )
    folds = np.unique(hits.fold).tolist()
    clients = [hits.cells(pairs, hits.fold != fold) for fold in folds] if len(folds) > 1 else []
    rest = hits.cells(pairs, ~hits.largest)
    return LogCase(
        space=space,
        log=log,
        label=label,
        config=config,
        queries=queries,
        table=table,
        hits=hits,
        learned=FeedbackGains.of(pairs, cells, log.given, clients),
        apart=rest if hits.largest.any() and rest.positive.any() else None,
        configurations=configurations,
        file="" if isinstance(path, HeldLog) or Path(path) == dataset.feedback else str(path),
    )


def _recorded(
    space: Workspace, queries: Sequence[Query], config: SearchConfig, others: Iterable[SearchConfig]
) -> SignalTable:
    """The lists of what is used today, of logged configurations that find entries alike, of words and vectors."""
    mixed = Contender("", Setting(config.limit, space.model).strategy("rrf(bm25, vector)"), "strategy")
    try:
        beside = [Source.live(space).usable(mixed)[0].config]
    except ConfigError:
        beside = []
    alike = [other for other in (*others, *beside) if len(share([config, other])) == 1]
    return record(space, queries, [config, *(other.with_limit(config.limit) for other in alike)])


def _known(space: Workspace, entries: Sequence[str]) -> DatasetIndex:
    """What lines are matched against; other texts can be learned from where they can be embedded."""
    numbered = list(enumerate(space.dataset.queries))
    texts = Counter(query.text for _, query in numbered)
    return DatasetIndex(
        entries={name: number for number, name in enumerate(entries)},
        by_id={query.id: number for number, query in numbered},
        by_text={query.text: number for number, query in numbered if texts[query.text] == 1},
        texts={query.id: query.text for _, query in numbered},
        scoped={(query.text, query.filters): number for number, query in numbered},
        extensible=not isinstance(space.embedder, RecordedEmbedder),
    )


def _current(
    space: Workspace, given: Given | None, log: Log, configurations: Mapping[str, SearchConfig]
) -> tuple[str, SearchConfig]:
    """What is used today: what was given, else the policy that searched most, else the data set's system."""
    often = max(configurations, key=lambda name: log.searches.get(name, 0), default="")
    if given is None and often in configurations and log.searches.get(often):  # a log may name no policy
        given = configurations[often]
    named = read_config(space.dataset.today if given is None else given)
    used, _ = Source.live(space).supplied(named, PLACES)
    label = str(used.config.effective) if isinstance(given, SearchConfig) else used.label
    return label, replace(used.config, strategy=used.config.effective, by_intent={})


def _asked(dataset: Dataset, log: Log) -> dict[int, Query]:
    """The queries that were logged, by their numbers in the log; those that cannot be searched are left out."""
    asked = {}
    for number in np.unique(log.hits.query).tolist():
        at = number - len(dataset.queries)
        if at < 0:
            asked[number] = dataset.queries[number]
            continue
        text, filters = log.added[at]
        with suppress(ConfigError):
            clean_query(text)
            asked[number] = Query(text, id=f"logged-{at}", filters=filters)
    return asked
