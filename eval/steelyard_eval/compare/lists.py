"""Contenders to lists: configurations are replayed from recordings, other searches are asked for their lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

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
from steelyard_eval.common.progress_bar import bar
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.compare.latency import Latencies, latencies
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.scales import of_scales
from steelyard_eval.datasets import CLASSIFIED, Dataset
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.measures.runs import Ranked
from steelyard_eval.recording.record import index_all, record
from steelyard_eval.recording.replay import intents_of, only, recorded_lists, replay
from steelyard_eval.recording.shown_lists import ShownLists, lists_of
from steelyard_eval.recording.steps import settings
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Cost, Fact, Latency, Row, Said

TIES = {
    "run": "ties_runs",
    "frame": "ties_runs",
    "function": "ties_answers",
    "endpoint": "ties_answers",
}
"""How equal scores of lists are ordered, by the kind of contender."""


def ties(kinds: Iterable[str], lists: bool = False) -> list[str]:
    """How ties of contenders of these kinds are broken, as keys; `lists`: recorded lists of other engines."""
    ours = "ties_lists" if lists else "ties_configurations"
    return list(dict.fromkeys(TIES.get(kind, ours) for kind in sorted({*kinds})))


@dataclass(frozen=True)
class Unfloored:
    """The lists before a floor; `score` float64[R] is each place's on the floor's scale, `least` the floor."""

    ranked: Ranked
    score: Floats
    least: float


@dataclass(frozen=True)
class Made:
    """A contender with its lists; `lists` have scores and what each signal adds, where that is known.

    `embedded` is None where it cannot be known; `latency` is None where nothing was timed; `progress` says
    how far layered searches went, None for any other. `unfloored` are the lists without floors,
    of a configuration that has any, and `silent` what is shown for queries that nothing answers.
    """

    contender: Contender | ListContender
    lists: ShownLists
    notices: tuple[Said, ...] = ()
    embedded: int | None = None
    latency: Latency | None = None
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

    def row(self) -> Row:
        """What it is and costs, as a row of the result; lists have no system, and their source as the strategy."""
        one, cost = self.contender, Cost(embedded=self.embedded, latency=self.latency)
        if isinstance(one, ListContender):
            return Row(one.label, "lists", one.source, family=one.kind, cost=cost, empty=self.empty)
        config = one.config
        return Row(
            one.label, one.kind, str(config.effective), system=config.system, profile=config.profile,
            family=one.family, settings=settings(config).get("settings"), cost=cost, empty=self.empty,
        )  # fmt: skip


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
    ) -> list[Made]:
        """The lists of the contenders, in order; `nothing` are queries that nothing answers.

        By `measure` notices compare two scales of a sum; without one they do not speak of scales.
        """
        configs: list[tuple[Contender, list[Said]]] = []
        for contender in named:
            if isinstance(contender, Named):
                row = Contender(contender.label, contender.config(self.setting), contender.kind)
                configs.append(usable(self.space, row) if self.space else (row, []))
        made = {one.label: one for one in self._replayed(configs, queries, timed, nothing, measure)}
        for contender in named:
            if isinstance(contender, ListContender):
                made[contender.label] = self._asked(contender, queries, timed, nothing)
        return [made[contender.label] for contender in named]

    def _asked(
        self, contender: ListContender, queries: Sequence[Query], timed: bool, nothing: Sequence[Query]
    ) -> Made:
        every, size = _once(queries, nothing), self.setting.size
        answers = contender.answers(every, size, self.dataset)
        ranked, silent = (answers.ranked(every, size, part) for part in (queries, nothing))
        taken = Latencies(answers.taken[: len(queries)]).summary() if timed and answers.taken else None
        return Made(
            contender,
            ShownLists(ranked),
            tuple(answers.notices),
            latency=taken,
            silent=silent if nothing else None,
        )

    def _replayed(
        self,
        configs: Sequence[tuple[Contender, list[Said]]],
        queries: Sequence[Query],
        timed: bool,
        nothing: Sequence[Query],
        measure: Measure | None,
    ) -> list[Made]:
        """Record each group of contenders that find the same lists once, then replay each configuration."""
        if self.space and self.table is None:
            index_all(self.space, [row.config for row, _ in configs])
        groups = [list(range(len(configs)))] if self.table else share([row.config for row, _ in configs])
        members = ([configs[i] for i in group] for group in groups)
        return [made for group in members for made in self._group(group, queries, timed, nothing, measure)]

    def _group(
        self,
        members: Sequence[tuple[Contender, list[Said]]],
        queries: Sequence[Query],
        timed: bool,
        nothing: Sequence[Query],
        measure: Measure | None,
    ) -> Iterator[Made]:
        every = self._table([row for row, _ in members], _once(queries, nothing))
        table = only(every, [query.id for query in queries])
        others = only(every, [query.id for query in nothing]) if nothing else None
        for row, notices in bar("timing live search")(members) if self.space and timed else members:
            run = replay(table, row.config)
            progress = row.config.effective.progress(run.table)
            summary = None if progress is None else progress.summary()
            notes = [*notices, *_no_abstract(row.label, summary), *_other_scale(row, self.dataset, self.model)]
            yield Made(
                row,
                lists_of(run, row.config),
                (*notes, *(of_scales(row, table, self.dataset, measure) if measure else ())),
                embedded=None if self.setting.lists is not None else int(run.embedded.sum()),
                latency=latencies(self.space, row.config, queries).summary() if self.space and timed else None,
                progress=summary,
                unfloored=_unfloored(table, row.config),
                silent=None if others is None else replay(others, row.config).ranked,
            )

    def _table(self, rows: Sequence[Contender], queries: Sequence[Query]) -> SignalTable:
        if self.table is not None:
            return only(self.table, [query.id for query in queries])
        if self.space is None:
            raise ValueError("configurations need a workspace or a recording")
        return record(self.space, queries, [row.config for row in rows])

    def notices(self, made: Sequence[Made], timed: bool) -> Iterator[Said]:
        """How the contenders ran: on what recording, by whose vectors and intents, with which caches."""
        configs = [one.contender for one in made if isinstance(one.contender, Contender)]
        embedder = self.space.embedder if self.space else None
        if self.setting.lists is not None:
            yield Said("recorded_lists")
        recipe = embedder.recipe if embedder else None
        reading = [row for row in configs if recipe is not None and "vector" in row.config.retrievers]
        if others := [row.label for row in reading if find_system(row.config.name).reading.recipe != recipe]:
            yield Said("shared_recipe", {"recipe": repr(recipe), "labels": others})
        rows = [row for row in configs if row.config.intents and not find_system(row.config.name).reading.intents]
        if rows and intents_of(self.dataset, self.table) == CLASSIFIED:
            yield Said("unclassified", {"labels": [row.label for row in rows]})
        if timed and isinstance(embedder, CachedEmbedder):
            yield Said("cached", {"model": self.model})


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


def _other_scale(row: Contender, dataset: Dataset, model: str) -> list[Said]:
    """A notice where a floor was measured on another scale than the one that it is used on."""
    measured = row.config.provenance.get("floor", {})
    then = measured.get("model")
    moved = bool(then) and then != model
    changed = measured.get("dataset_sha256") not in (None, "", dataset.sha256)
    if not (moved or changed):
        return []
    facts: dict[str, Fact] = {"label": row.label, "both": moved and changed, "changed": changed}
    facts |= {"now": model, "then": str(then)} if moved else {}
    return [Said("other_scale", facts)]


def _no_abstract(label: str, progress: ProgressSummary | None) -> list[Said]:
    """How often a layered search had to do without abstracts."""
    if not progress or not progress["full_search"]:
        return []
    facts: dict[str, Fact] = {"label": label, "count": progress["full_search"], "queries": progress["queries"]}
    return [Said("no_abstract", facts)]
