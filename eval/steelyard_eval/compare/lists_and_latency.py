"""Contenders to lists: configurations are replayed from recordings, other searches are asked for their lists."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config import SearchConfig
from steelyard.embedders.embed import CachedEmbedder
from steelyard.finish import Floor, Stage
from steelyard.fusion.layered import progress as layered_progress
from steelyard.memory.query import Query
from steelyard.retrievers import LAYERS
from steelyard.systems import find_system
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.configurations import NamedConfig
from steelyard_eval.common.console import bar
from steelyard_eval.compare.buried import AgeEffect
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.score_scales import ProgressSummary, of_configuration, summary_of, undated
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import CLASSIFIED
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.recording.next_steps import settings
from steelyard_eval.recording.provenance import share
from steelyard_eval.recording.record import index_all
from steelyard_eval.recording.replay import ShownLists, lists_of, only, replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Cost, Latency, Message, Row

TIMED_QUERIES = 50
TIES_BY_KIND = {"run": "ties_runs", "frame": "ties_runs", "function": "ties_answers", "endpoint": "ties_answers"}


def ties(kinds: Iterable[str], lists: bool = False) -> list[str]:
    """How ties of contenders of these kinds are broken, as keys; `lists`: recorded lists of other engines."""
    ours = "ties_lists" if lists else "ties_configurations"
    return list(dict.fromkeys(TIES_BY_KIND.get(kind, ours) for kind in sorted({*kinds})))


@dataclass(frozen=True)
class BeforeThreshold:
    """The lists before a floor; `score` float64[R] is each place's on the floor's scale, `least` the floor."""

    ranked: Ranked
    score: Floats
    least: float


@dataclass(frozen=True)
class Made:
    """A contender with its lists; `lists` have scores and what each signal adds, where that is known.

    `embedded` is None where it cannot be known; `latency` is None where nothing was timed; `progress` says
    how far layered searches went, None for any other. `unfloored` are the lists without floors,
    of a configuration that has any, and `unanswered` what is shown for queries that nothing answers; `age` is
    what dates do, None for lists.
    """

    contender: Contender | ListContender
    lists: ShownLists
    notices: tuple[Message, ...] = ()
    embedded: int | None = None
    latency: Latency | None = None
    progress: ProgressSummary | None = None
    unfloored: BeforeThreshold | None = None
    unanswered: Ranked | None = None
    age: AgeEffect | None = None

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
            family=one.family, settings=settings(config), cost=cost, empty=self.empty,
        )  # fmt: skip


@dataclass(frozen=True)
class Runner:
    """Contenders run where `source` is, an existing recording or a workspace, for lists of `limit` places."""

    source: Source
    limit: int

    def run(
        self,
        named: Sequence[NamedConfig | ListContender],
        queries: Sequence[Query],
        timed: bool,
        nothing: Sequence[Query] = (),
        measure: Measure | None = None,
    ) -> list[Made]:
        """The lists of the contenders, in order; `nothing` are queries that nothing answers.

        Each group of contenders that find the same lists is recorded once. By `measure` notices compare two scales
        of a sum; without one they do not speak of scales.
        """
        every = list({query.id: query for query in (*queries, *nothing)}.values())
        source, space, dataset = self.source, self.source.space, self.source.dataset
        rows, notices = [], {}
        for contender in named:
            if isinstance(contender, NamedConfig):
                row = Contender(contender.label, contender.config(source.setting(self.limit)), contender.kind)
                row, notices[row.label] = usable(space, row) if space else (row, [])
                rows.append(row)
        configs = [row.config for row in rows]
        if space:
            index_all(space, configs)
        made: dict[str, Made] = {}
        for group in [[*range(len(rows))]] if source.table is not None else share(configs):
            whole = source.record(every, [configs[i] for i in group])
            table = only(whole, [query.id for query in queries])
            others = only(whole, [query.id for query in nothing]) if nothing else None
            if space and timed:  # what is read of the store once, the first one would pay for all
                latencies(space, configs[group[0]], queries, TIMED_QUERIES)
            for i in bar("timing live search", group) if space and timed else group:
                one = self._replayed(rows[i], table, others)
                said = of_configuration(rows[i], table, one.progress, dataset, source.model, measure)
                taken = latencies(space, configs[i], queries, TIMED_QUERIES).summary() if space and timed else None
                made[one.label] = replace(one, notices=(*notices[one.label], *said), latency=taken)
        for contender in named:
            if isinstance(contender, ListContender):
                answers = contender.answers(every, self.limit, dataset)
                ranked, silent = (answers.ranked(every, self.limit, part) for part in (queries, nothing))
                took = Latencies(answers.taken[: len(queries)]).summary() if timed and answers.taken else None
                made[contender.label] = Made(
                    contender,
                    ShownLists(ranked),
                    tuple(answers.notices),
                    latency=took,
                    unanswered=silent if nothing else None,
                )
        return [made[contender.label] for contender in named]

    def _replayed(self, row: Contender, table: SignalTable, others: SignalTable | None) -> Made:
        config, run = row.config, replay(table, row.config)
        progress = layered_progress(config.effective, run.table)
        unfloored = None
        if floors := [stage for stage in config.finish if isinstance(stage, Floor)]:
            bare = replay(table, replace(config, finish=without_floors(config.finish)))
            scores = floors[-1].scores(bare.table)[bare.ranking.row]
            unfloored = BeforeThreshold(bare.ranked, scores, floors[-1].least)
        return Made(
            row,
            lists_of(run, config),
            embedded=None if self.source.lists is not None else int(run.embedded.sum()),
            progress=None if progress is None else summary_of(progress),
            unfloored=unfloored,
            unanswered=None if others is None else replay(others, config).ranked,
            age=AgeEffect.of(row.label, run.ranked, table, config, self.source.dataset),
        )

    def notices(self, made: Sequence[Made], timed: bool) -> Iterator[Message]:
        """How the contenders ran: on what recording, by whose vectors and intents, with which caches."""
        configs = [one.contender for one in made if isinstance(one.contender, Contender)]
        source, space = self.source, self.source.space
        embedder = space.embedder if space else None
        if source.lists is not None:
            yield Message("recorded_lists")
        for layer in space.stood_in(row.config for row in configs) if space else ():
            yield Message("layer_stands_in", {"layer": layer})
        yield from undated(source.dataset, [row.config for row in configs])
        recipe = embedder.recipe if embedder else None
        reading = [row for row in configs if recipe is not None and "vector" in row.config.retrievers]
        if others := [row.label for row in reading if find_system(row.config.name).reading.recipe != recipe]:
            yield Message("shared_recipe", {"recipe": repr(recipe), "labels": others})
        rows = [row for row in configs if row.config.intents and not find_system(row.config.name).reading.intents]
        if rows and source.intents == CLASSIFIED:
            yield Message("unclassified", {"labels": [row.label for row in rows]})
        if timed and isinstance(embedder, CachedEmbedder):
            yield Message("cached", {"model": source.model})


@dataclass(frozen=True)
class Latencies:
    """Milliseconds of live searches, of their layers by name, and how many searches the embedder failed."""

    searches: Sequence[float]
    layers: Mapping[str, Sequence[float]] = field(default_factory=dict)
    degraded: int = 0

    def summary(self) -> Latency | None:
        """Percentiles for the result; None where nothing was searched."""
        if not self.searches:
            return None
        p50, p95, p99 = np.percentile(self.searches, (50, 95, 99)).tolist()
        ends = {name: np.percentile(taken, (50, 99)).tolist() for name, taken in self.layers.items()}
        layers = {name: Latency(low, None, high) for name, (low, high) in ends.items()}
        return Latency(p50, p95, p99, layers, self.degraded)


def latencies(space: Workspace, config: SearchConfig, queries: Sequence[Query], most: int) -> Latencies:
    """Time live searches of the first `most` queries, in milliseconds; count those that the embedder failed.

    Their lists were recorded before, so what is kept of the store is there, unless workers recorded them: a
    search in each scope, or a first pass, is not measured. Recorded vectors cost a look-up, not an embedding, so
    the latency is that of searching alone.
    """
    searcher = space.searcher(config)
    queries = space.dataset.with_known_intents(queries, searcher.knows)[:most]
    first_of = {query.filters: query for query in reversed(queries)}
    for query in queries if space.workers.started else first_of.values():
        searcher.search(query)
    taken: list[float] = []
    layers: dict[str, list[float]] = {}
    for query in queries:
        begin = time.perf_counter()
        result = searcher.search(query)
        taken.append((time.perf_counter() - begin) * 1000)
        for name in result.seconds.keys() & LAYERS:
            layers.setdefault(name, []).append(result.seconds[name] * 1000)
    return Latencies(taken, dict(sorted(layers.items())), searcher.degraded)


def without_floors(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages but for floors: what would be shown if nothing were too far off."""
    return tuple(stage for stage in stages if not isinstance(stage, Floor))
