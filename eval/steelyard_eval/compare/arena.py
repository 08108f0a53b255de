"""Runs contenders: configurations are replayed from recordings, other searches are asked for their lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config.search_config import SearchConfig
from steelyard.embedders import CachedEmbedder
from steelyard.finish import Floor, without_floors
from steelyard.fusion.progress import ProgressSummary
from steelyard.live.identity import share
from steelyard.memory.query import Query
from steelyard.systems import find_system
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.configurations import Named, Setting
from steelyard_eval.common.documents.results import ContenderRecord, TimingRecord
from steelyard_eval.common.progress_bar import bar
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.compare.latency import Latencies, latencies
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.scales import Scales
from steelyard_eval.datasets import CLASSIFIED, Dataset
from steelyard_eval.decide.wording import settings
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.measures.runs import Ranked
from steelyard_eval.recording.rankings import ShownLists, lists_of
from steelyard_eval.recording.record import index_all, record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.select import intents_of, only, recorded_lists
from steelyard_eval.recording.workspace import Workspace


@dataclass(frozen=True)
class Unfloored:
    """The lists before a floor; `score` float64[R] is each place's on the floor's scale, `least` the floor."""

    ranked: Ranked
    score: Floats
    least: float


@dataclass(frozen=True)
class ArenaRow:
    """A contender with its lists; `lists` are the same with scores and what each signal adds, where that is known.

    `embedding_calls` is None where it cannot be known; `taken` is None where nothing was timed; `progress` says
    how far layered searches went, None for any other. `unfloored` are the lists without floors,
    of a configuration that has any, and `silent` what is shown for queries that nothing answers.
    """

    contender: Contender | ListContender
    lists: ShownLists
    notices: tuple[str, ...] = ()
    embedding_calls: int | None = None
    taken: Latencies | None = None
    progress: ProgressSummary | None = None
    unfloored: Unfloored | None = None
    silent: Ranked | None = None

    @property
    def label(self) -> str:
        """The label of the contender."""
        return self.contender.label

    @property
    def ranked(self) -> Ranked:
        """The lists alone."""
        return self.lists.ranked

    @property
    def empty(self) -> int:
        """How many queries end without any result."""
        return int((np.diff(self.ranked.offsets) == 0).sum())

    @property
    def tag(self) -> str:
        """The name of its run: ``system.profile`` of systems and strategies, else the label in plain letters."""
        if isinstance(self.contender, Contender) and self.contender.kind != "weights":
            return f"{self.contender.config.system}.{self.contender.config.profile}"
        return re.sub(r"[^A-Za-z0-9_.-]+", "_", self.label.removesuffix(".run").removesuffix(".json")) or "run"

    def about(self) -> ContenderRecord:
        """Describe the contender for the document; lists have no system, and their source as the strategy."""
        row = self.contender
        if isinstance(row, ListContender):
            return {
                "label": row.label,
                "system": None,
                "profile": None,
                "strategy": row.source,
                "family": row.kind,
                "kind": "lists",
            }
        about: ContenderRecord = {
            "label": row.label,
            "system": row.config.system,
            "profile": row.config.profile,
            "strategy": str(row.config.effective),
            "family": row.family,
            "kind": row.kind,
        }
        return {**about, **settings(row.config)}

    def timing(self) -> TimingRecord:
        """Describe latency and cost for the document."""
        about = self.about()
        entry: TimingRecord = {
            "label": self.label,
            "system": about.get("system"),
            "profile": about.get("profile"),
            "queries": len(self.ranked.queries),
            "embedding_calls": self.embedding_calls,
        }
        return {**entry, **self.taken.record()} if self.taken else entry


@dataclass(frozen=True)
class Arena:
    """What contenders run on: an existing recording (`table`), or a workspace that records what they need.

    The workspace is None when no contender needs one.
    """

    dataset: Dataset
    setting: Setting
    table: SignalTable | None
    space: Workspace | None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        named: Sequence[Named | ListContender],
        limit: int,
        table: SignalTable | None,
        space: Workspace | Callable[[], Workspace],
    ) -> Arena:
        """Make the arena for these contenders at a limit."""
        if table is not None:
            return cls(
                dataset, Setting(limit, str(table.fingerprint["model"]), recorded_lists(table)), table, None
            )
        if not any(isinstance(contender, Named) for contender in named):
            return cls(dataset, Setting(limit), None, None)
        opened = space() if callable(space) else space
        return cls(dataset, Setting(limit, opened.model), None, opened)

    @property
    def model(self) -> str:
        """The vectors' model; empty without vectors."""
        return self.setting.model

    @property
    def recipe(self) -> str:
        """The text that was embedded."""
        if self.table is not None:
            return str(self.table.fingerprint["recipe"])
        return (self.space.embedder.recipe or "of each system") if self.space and self.space.embedder else ""

    def run(
        self,
        named: Sequence[Named | ListContender],
        queries: Sequence[Query],
        timed: bool,
        nothing: Sequence[Query] = (),
        measure: Measure | None = None,
    ) -> list[ArenaRow]:
        """Run the contenders and return a row for each, in order; `nothing` are queries that nothing answers.

        By `measure` notices compare two scales of a sum; without one they do not speak of scales.
        """
        configs: list[tuple[Contender, list[str]]] = []
        for contender in named:
            if isinstance(contender, Named):
                row = Contender(contender.label, contender.config(self.setting), contender.kind)
                configs.append(usable(self.space, row) if self.space else (row, []))
        rows = {row.label: row for row in self._replayed(configs, queries, timed, nothing, measure)}
        for contender in named:
            if isinstance(contender, ListContender):
                rows[contender.label] = self._asked(contender, queries, timed, nothing)
        return [rows[contender.label] for contender in named]

    def notices(self, rows: Sequence[ArenaRow], timed: bool) -> list[str]:
        """Make the notices on how the contenders ran."""
        configs = [row.contender for row in rows if isinstance(row.contender, Contender)]
        return [
            *self._of_recording(),
            *self._shared_recipe(configs),
            *self._unclassified(configs),
            *self._cached(timed),
        ]

    def _asked(
        self, contender: ListContender, queries: Sequence[Query], timed: bool, nothing: Sequence[Query]
    ) -> ArenaRow:
        every, size = _once(queries, nothing), self.setting.size
        answers = contender.answers(every, size, self.dataset)
        ranked, silent = (answers.ranked(every, size, part) for part in (queries, nothing))
        taken = Latencies(answers.taken[: len(queries)]) if timed and answers.taken else None
        notices = tuple(answers.notices)
        return ArenaRow(contender, ShownLists(ranked), notices, taken=taken, silent=silent if nothing else None)

    def _replayed(
        self,
        configs: Sequence[tuple[Contender, list[str]]],
        queries: Sequence[Query],
        timed: bool,
        nothing: Sequence[Query],
        measure: Measure | None,
    ) -> list[ArenaRow]:
        """Record each group of contenders that find the same lists once, then replay each configuration."""
        if self.space and self.table is None:
            index_all(self.space, [row.config for row, _ in configs])
        groups = [list(range(len(configs)))] if self.table else share([row.config for row, _ in configs])
        members = ([configs[i] for i in group] for group in groups)
        return [row for group in members for row in self._group(group, queries, timed, nothing, measure)]

    def _group(
        self,
        members: Sequence[tuple[Contender, list[str]]],
        queries: Sequence[Query],
        timed: bool,
        nothing: Sequence[Query],
        measure: Measure | None,
    ) -> list[ArenaRow]:
        every = self._table([row for row, _ in members], _once(queries, nothing))
        table = only(every, [query.id for query in queries])
        others = only(every, [query.id for query in nothing]) if nothing else None
        rows = []
        for row, notices in bar("timing live search")(members) if self.space and timed else members:
            run = replay(table, row.config)
            calls = None if self.setting.lists is not None else int(run.embedded.sum())
            taken = latencies(self.space, row.config, queries) if self.space and timed else None
            progress = row.config.effective.progress(run.table)
            summary = None if progress is None else progress.summary()
            moved = (f"{row.label}: {text}" for text in _other_scale(row.config, self.dataset, self.model))
            scales = of_scales(row, table, self.dataset, measure) if measure else ()
            notes = (*notices, *_degraded(row.label, summary), *moved, *scales)
            whole = _unfloored(table, row.config)
            silent = None if others is None else replay(others, row.config).ranked
            rows.append(ArenaRow(row, lists_of(run, row.config), notes, calls, taken, summary, whole, silent))
        return rows

    def _table(self, rows: Sequence[Contender], queries: Sequence[Query]) -> SignalTable:
        if self.table is not None:
            return only(self.table, [query.id for query in queries])
        if self.space is None:
            raise ValueError("configurations need a workspace or a recording")
        return record(self.space, queries, [row.config for row in rows])

    def _of_recording(self) -> list[str]:
        if self.setting.lists is None:
            return []
        return [
            "the recording has lists of other engines: how they filtered, how deep they searched and what they "
            "embedded is fixed in the lists and unknown here, so no latency and no embedded queries are shown"
        ]

    def _shared_recipe(self, configs: Sequence[Contender]) -> list[str]:
        """A notice when systems with other templates share the recorded vectors of one template."""
        recipe = self.space.embedder.recipe if self.space and self.space.embedder else None
        recipes = {
            row.label: find_system(row.config.name).reading.recipe
            for row in configs
            if "vector" in row.config.retrievers
        }
        others = [label for label, documented in recipes.items() if recipe is not None and documented != recipe]
        if not others:
            return []
        return [
            f"all share the recorded vectors of {recipe!r}, also systems with another recipe: {'; '.join(others)}"
        ]

    def _unclassified(self, configs: Sequence[Contender]) -> list[str]:
        """A notice on strategies by intent of systems that classify nothing, where nobody gives the intents."""
        rows = [row for row in configs if row.config.intents and not find_system(row.config.name).reading.intents]
        if not rows or intents_of(self.dataset, self.table) != CLASSIFIED:
            return []
        labels = "; ".join(row.label for row in rows)
        return [f"{labels}: nothing classifies queries there, so all take the default; see --intents given"]

    def _cached(self, timed: bool) -> list[str]:
        """A notice that latencies do not include the embedding of queries whose vectors are cached on disk."""
        if not timed or self.space is None or not isinstance(self.space.embedder, CachedEmbedder):
            return []
        return [f"latencies leave out the embedding of queries by {self.model}: their vectors come from the cache"]


def _once(queries: Sequence[Query], more: Sequence[Query]) -> list[Query]:
    """Queries, then those of others that are not among them."""
    return list({query.id: query for query in (*queries, *more)}.values())


def _unfloored(table: SignalTable, config: SearchConfig) -> Unfloored | None:
    """The lists of a configuration without its floors; None where it has none."""
    floors = [stage for stage in config.finish if isinstance(stage, Floor)]
    if not floors:
        return None
    run = replay(table, replace(config, finish=without_floors(config.finish)))
    return Unfloored(run.ranked, floors[-1].scores(run.table)[run.ranking.row], floors[-1].least)


def _other_scale(config: SearchConfig, dataset: Dataset, model: str) -> list[str]:
    """A notice where a floor was measured on another scale than the one that it is used on."""
    measured = config.provenance.get("floor", {})
    parts = {
        "the vectors are of {now}, and were of {then}": (model, measured.get("model")),
        "the data set has changed since": (dataset.sha256, measured.get("dataset_sha256")),
    }
    moved = [text.format(now=now, then=then) for text, (now, then) in parts.items() if then and then != now]
    if not moved:
        return []
    return [f"its floor was measured on another scale: {'; '.join(moved)}. Find it again with --floor"]


def of_scales(row: Contender, table: SignalTable, dataset: Dataset, measure: Measure) -> Iterator[str]:
    """Notices on the scales of what was written by hand: systems have those of their documents."""
    if row.kind == "system":
        return
    scales = Scales(row.label, row.config, table)
    yield from scales.weightless()
    if not row.config.provenance:  # a scale that tuning chose was better on its labels
        yield from scales.apart(partial(_valued, table, dataset.qrels, measure))


def _valued(
    table: SignalTable, qrels: Mapping[str, Mapping[str, int]], measure: Measure, config: SearchConfig
) -> str:
    """The mean of a configuration in words; empty where not every query has labels."""
    if not all(qrels.get(query) for query in table.queries):
        return ""
    (values,) = replay(table, config).ranked.metrics(qrels, [measure]).values()
    return f"{measure} {float(values.mean()):.3f}"


def _degraded(label: str, progress: ProgressSummary | None) -> list[str]:
    """How often a layered search had to do without abstracts."""
    if not progress or not progress["full_search"]:
        return []
    return [
        f"{label}: {progress['full_search']} of {progress['queries']} queries found no abstract at any step and "
        "searched all details"
    ]
