"""Recordings and grids of everything that is tried, over one set of queries."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.memory.query import Query
from steelyard.retrievers import LAYERS
from steelyard_eval.candidates.families import StartingPoint
from steelyard_eval.candidates.grid import Block, Grid, LabelledRecording, Qrels, measured
from steelyard_eval.candidates.kernel import DEEPEST, Kernel, Singles, composite, parts_for
from steelyard_eval.candidates.linear_form import forms
from steelyard_eval.candidates.settings import config_key, simplify_config
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.measures.metrics import Measure, evaluate_lists, known_mean
from steelyard_eval.recording.provenance import agree, agreeing, share
from steelyard_eval.recording.record import needed
from steelyard_eval.recording.replay import ReplayedRun, ShownLists, replay
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Message


class CandidateScorer(Protocol):
    """What measures candidates: labels, or what acts say."""

    def grid(self, known: LabelledRecording, settings: Sequence[SearchConfig], columns: int) -> Grid:
        """So many candidates around each of some settings; ConfigError where weights cannot be searched."""

    def alone(self, known: LabelledRecording, config: SearchConfig) -> Grid:
        """One configuration as it is."""


@dataclass(frozen=True)
class CandidateSet:
    """Every candidate on every query."""

    starts: tuple[StartingPoint, ...]  # the families and systems that were laid out
    grid: Grid  # the candidates of all of them
    start_index: np.ndarray[tuple[int], np.dtype[np.int64]]  # int64[C], the start that each candidate belongs to
    recordings: tuple[LabelledRecording, ...]  # each with the systems that share it
    skipped: tuple[Message, ...]  # what could not be searched, and why
    complete: bool  # whether nothing was left out because the search was broken off

    def only(self, kept: Bools) -> "CandidateSet":
        """The candidates where bool[C] is true, with the starts that still have some."""
        left, start_index = np.unique(self.start_index[kept], return_inverse=True)
        starts = tuple(self.starts[start] for start in left)
        return replace(self, starts=starts, grid=self.grid.only(kept), start_index=start_index.astype(np.int64))

    def written(self, candidate: int, measures: Sequence[Measure]) -> SearchConfig:
        """The configuration of a candidate, without signals whose facts the data does not have."""
        config = self.grid.config(candidate)
        return simplify_config(self.recorded(config).table, config, lambda other: self.means(other, measures))

    def means(self, config: SearchConfig, measures: Sequence[Measure]) -> Floats:
        """float64[M]: the mean of every metric, by replay (`known_mean`)."""
        return np.array([known_mean(values) for values in self.values(config, measures).values()])

    def recorded(self, config: SearchConfig) -> LabelledRecording:
        """The recording that a configuration is replayed on; ConfigError when it retrieves in another way."""
        return recording_for(self.recordings, config)

    def replayed(self, config: SearchConfig) -> ReplayedRun:
        """The configuration's lists, in float64."""
        return replay(self.recorded(config).table, config)

    def values(self, config: SearchConfig, measures: Sequence[Measure]) -> dict[Measure, Floats]:
        """float64[Q] for every measure, by replay."""
        return self.replayed(config).metrics(self.recorded(config).judgments, measures)

    def again(self, metric: Measure) -> Singles:
        """float32[C, Q]: the metric of every candidate, on recordings of other queries or by other labels."""
        return np.concatenate([_again(block, self.recorded(block.config), metric) for block in self.grid.blocks])


def _again(block: Block, known: LabelledRecording, metric: Measure) -> Singles:
    try:
        (form,) = forms(known.table, block.config, [block.config.effective], known.judgments)
        values = Kernel.of(form, [metric]).values(block.placed(form))[metric]
    except ConfigError:  # its weights cannot be searched, so it stands alone
        values = replay(known.table, block.config).metrics(known.judgments, [metric])[metric][None]
    return values.astype(np.float32)


def build_candidates(
    recordings: tuple[LabelledRecording, ...], starts: Sequence[StartingPoint], scale: CandidateScorer
) -> CandidateSet:
    """Lay weights out around each start, over what `record_all` recorded; Ctrl-C ends it with what there is.

    Raises KeyboardInterrupt when there is nothing yet, ConfigError when nothing could be searched.
    """
    grids: list[tuple[StartingPoint, Grid]] = []
    skipped: list[Message] = []
    complete = True
    try:
        for start in starts:
            made, fault = candidates_around(recordings, start, scale)
            grids += [] if made is None else [(start, made)]
            skipped += [fault] if fault else []
    except KeyboardInterrupt:
        if not grids:
            raise
        complete = False
    if not grids:
        raise ConfigError("; ".join(map(say, skipped)))
    start_index = np.repeat(np.arange(len(grids)), [len(part) for _, part in grids])
    joined = Grid.joined([part for _, part in grids])
    return CandidateSet(
        tuple(start for start, _ in grids), joined, start_index, recordings, tuple(skipped), complete
    )


def candidates_around(
    recordings: Sequence[LabelledRecording], start: StartingPoint, scale: CandidateScorer
) -> tuple[Grid | None, Message | None]:
    """Weights around a start, or why not: then a preset stands alone, and there is nothing of a family."""
    every = len(start.settings)
    try:
        served = [(recording_for(recordings, part[0]), part) for part in start.parts]
        grids = [scale.grid(known, part, start.columns * len(part) // every) for known, part in served]
        return Grid.joined(grids), None
    except ConfigError as error:
        only = scale.alone(recording_for(recordings, start.config), start.config) if start.preset else None
        return only, Message("not_tuned", {"label": start.label, "why": str(error)})


def record_all(
    source: Source,
    queries: Sequence[Query],
    starts: Sequence[StartingPoint],
    qrels: Qrels | None = None,
    beside: Sequence[SearchConfig] = (),
) -> tuple[LabelledRecording, ...]:
    """One recording for all systems that retrieve alike, and one for those of them that read layers.

    `qrels` are the labels of these queries, the data set's by default. What is `beside` is no candidate.
    """
    recordings: list[LabelledRecording] = []
    parts = [part for start in starts for part in ((start.config,), *start.parts)]
    parts += [(config,) for config in beside]
    known = source.dataset.qrels if qrels is None else qrels
    for group in share([part[0] for part in parts]):
        alike = [parts[i] for i in group]
        wide = [config for part in alike if _wide(part) for config in part]
        others = [config for part in alike if not _wide(part) for config in part]
        # Layers are indexed for their recording, and what was found before another index is not used again.
        made = [
            LabelledRecording.of(known, source.record(queries, configs), source.dataset.tokens)
            for configs in (wide, others)
            if configs
        ]
        recordings += made[::-1]
    return tuple(recordings)


def _wide(configs: Sequence[SearchConfig]) -> bool:
    """Whether they read layers. These give every entry a row, over which all others would be laid out in vain."""
    return not set(LAYERS).isdisjoint(needed(configs))


def recording_for(recordings: Sequence[LabelledRecording], config: SearchConfig) -> LabelledRecording:
    """The recording whose lists are those that a configuration would find."""
    *others, last = recordings
    fitting = agreeing(config, [known.table.fingerprint for known in others])
    for known, fits in zip(others, fitting, strict=True):
        if fits and set(needed([config])) & set(LAYERS) <= known.table.columns.keys():
            return known
    agree(config, last.table.fingerprint)
    return last


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
    notices: tuple[Message, ...] = ()

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


def of_config(given: Contender, candidates: CandidateSet, measures: Sequence[Measure]) -> Current:
    """A configuration as the current one, by replay."""
    _, composite = measured(candidates.recorded(given.config), given.config, measures[0])
    return Current(given, candidates.values(given.config, measures), composite)


def of_lists(
    contender: ListContender, dataset: Dataset, queries: Sequence[Query], limit: int, measures: Sequence[Measure]
) -> Current:
    """Lists as the current contender, asked for as deep as the composite looks."""
    answers = contender.answers(queries, max(limit, DEEPEST), dataset)
    parts = parts_for(measures[0])
    far, ranked = answers.ranked(queries, max(limit, DEEPEST)), answers.ranked(queries, limit)
    deep = evaluate_lists(far, dataset.qrels, parts, dataset.tokens)
    values = evaluate_lists(ranked, dataset.qrels, measures, dataset.tokens)
    return Current(contender, values, composite(deep, parts), ShownLists(ranked), tuple(answers.notices))
