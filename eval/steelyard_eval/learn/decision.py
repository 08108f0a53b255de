"""What labels and acts decide together: `recommend` on the labels, which the acts on other queries sharpen.

Labels of `fewest_labels` questions or more decide, by the matrices and gates of all that choose
(`choose.rule`), and the acts are a second measurement of the same candidates on the log's queries. With fewer
labels acts may suggest a try, and nothing ships: an act may follow a signal rather than relevance.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from steelyard.base.arrays import Floats, Indices, Ints
from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.memory.query import Query
from steelyard_eval.candidates.candidates import (
    CandidateSet,
    build_candidates,
    of_config,
    record_all,
    recording_for,
)
from steelyard_eval.candidates.families import starts
from steelyard_eval.candidates.grid import Block, Grid, LabelledRecording, LabelScorer
from steelyard_eval.candidates.kernel import Singles
from steelyard_eval.candidates.settings import without_guarded_cut
from steelyard_eval.choose.choice import Choice, Decided, decide
from steelyard_eval.choose.differences import SecondMeasurement
from steelyard_eval.choose.few_labels import fewest_labels
from steelyard_eval.choose.recommend import METRICS
from steelyard_eval.choose.rule import ALL_FAMILIES, FROM_A_LOG
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets.groups import judged, questions, unit_numbers
from steelyard_eval.learn.first_ten import PLACES, first_rows, rows_of, rows_of_form, top10_rows, unlabelled
from steelyard_eval.learn.gains import FeedbackGains
from steelyard_eval.learn.joined_log import LogCase
from steelyard_eval.measures.metrics import Measure, parse_measures

OBJECTIVE = Measure("nDCG", PLACES)
AGREES = 0.8  # the share of equal places from which on two rankings show nearly the same
MAX_LOGGED_QUERIES = 400
"""Logged queries on which candidates are valued by acts: with more of them some dozens of labels tell no more."""


@dataclass(frozen=True)
class FeedbackScorer:
    """What acts say that candidates gain over today's ranking: a scale for `candidates.build_candidates`."""

    learned: FeedbackGains  # what the acts say
    base: Floats  # float64[Q], what today's lists are worth

    def grid(self, known: LabelledRecording, settings: Sequence[SearchConfig], columns: int) -> Grid:
        """So many candidates around each of some settings; ConfigError where weights cannot be searched."""
        row_of, grids = rows_of(self.learned.pairs, known.table), []
        for depths, alike in groupby(settings, key=lambda config: config.depths):
            masked = known.table.at_depth(depths)
            for config in alike:
                form = unlabelled(masked, config)
                block = Block.of(config, form, columns // len(settings))
                grids.append(self._measured(block, rows_of_form(form, block.weights, row_of)))
        return Grid.joined(grids)

    def alone(self, known: LabelledRecording, config: SearchConfig) -> Grid:
        """One configuration as it is."""
        top = top10_rows(known.table, config, rows_of(self.learned.pairs, known.table))
        return self._measured(Block.alone(config), top[None])

    def _measured(self, block: Block, top: Ints) -> Grid:
        gain = self.gain(top)
        return Grid((block,), gain, gain)

    def gain(self, top: Ints) -> Singles:
        """float32[W, Q]: what lists of rows, int[W, Q, PLACES], gain over today's."""
        return (self.learned.values(top) - self.base).astype(np.float32)


@dataclass(frozen=True)
class LogDecision:
    """The decision on one log."""

    case: LogCase  # what was read
    labelled: tuple[Query, ...]  # the queries whose labels decide; empty where there are too few
    sampled: Indices  # int64[S], the logged queries on which candidates were valued
    candidates: CandidateSet  # over the labelled queries; without labels, over the sampled ones
    recordings: tuple[LabelledRecording, ...]  # those of the sampled queries
    gains: Singles  # float32[C, S], what the acts say that each candidate gains
    recommended: Decided | None  # the decision on the labels; None without
    few: int = 0  # how many different questions have labels, where these are too few to decide; else 0

    @cached_property
    def logged(self) -> list[Query]:
        """The labelled queries whose lists are in the log."""
        ids = {query.id for query in self._sampled}
        return [query for query in self.labelled if query.id in ids]

    @cached_property
    def others(self) -> int:
        """How many logged queries, counted by what varies as one, ask nothing that a logged labelled one asks."""
        known, groups = {query.id for query in self.logged}, unit_numbers(self._sampled).tolist()
        taken = {group for query, group in zip(self._sampled, groups, strict=True) if query.id in known}
        return len({*groups} - taken)

    @property
    def _sampled(self) -> list[Query]:
        return [self.case.queries[number] for number in self.sampled.tolist()]

    @cached_property
    def learned(self) -> FeedbackGains:
        """What the acts on the sampled queries say."""
        return self.case.learned.on(self.sampled)

    def config(self, candidate: int) -> SearchConfig:
        """The configuration of a candidate, as it is written where labels decided on it."""
        made = self.recommended
        if made is not None and made.picked is not None and candidate == made.ruling.candidate:
            return made.picked
        return without_guarded_cut(self.candidates.grid.config(candidate))

    def lists(self, config: SearchConfig) -> Ints:
        """int32[Q, PLACES]: the rows that a configuration shows for the sampled queries; -1 for all others."""
        table = recording_for(self.recordings, config).table
        lists = np.full((len(self.case.queries), PLACES), -1, dtype=np.int32)
        lists[self.sampled] = top10_rows(table, config, rows_of(self.case.learned.pairs, table))
        return lists

    def both(self, candidate: int) -> Ints:
        """int32[2, Q, PLACES]: the lists of what is used today and of a candidate."""
        return np.stack([self.lists(self.case.config), self.lists(self.config(candidate))])

    @cached_property
    def favourite(self) -> int | None:
        """The candidate of largest gain by the acts; None where nothing gains."""
        means = self.gains.mean(axis=1, dtype=np.float64)
        return int(means.argmax()) if means.max() > 0 else None

    @property
    def about(self) -> int | None:
        """The candidate that is looked at closely: what ships or is worth a try, else the favourite."""
        return self.favourite if self.candidate is None else self.candidate

    @cached_property
    def candidate(self) -> int | None:
        """The candidate that ships or is worth a try; None under keep and where interleaving preferred another."""
        if self.recommended is not None:
            return self.recommended.ruling.candidate
        if self.case.hits.listless or self.case.interleaved(preferred=True):
            return None
        rest = self.case.apart
        suggested = self.learned.suggested(self.gains, self.both, None if rest is None else rest.on(self.sampled))
        return None if suggested is None or self._lost(suggested) else suggested

    def _lost(self, candidate: int) -> bool:
        """Whether a candidate shows nearly the lists of a ranking that lost to today's when both took turns."""
        ours = self.lists(self.config(candidate))[self.sampled]
        for _, config in self.case.interleaved(preferred=False):
            with suppress(ConfigError):  # it ranks by what is not recorded here
                if (ours == self.lists(config)[self.sampled]).mean() >= AGREES:
                    return True
        return False

    @cached_property
    def suggested_config(self) -> SearchConfig | None:
        """What ships, or is worth a try; None under keep."""
        if self.candidate is not None:
            return self.config(self.candidate)
        won = self.case.interleaved(preferred=True) if self.recommended is None else []
        return won[0][1] if won else None

    @property
    def verdict(self) -> str:
        """ship, try or keep."""
        if self.recommended is not None:
            return self.recommended.ruling.verdict
        return "keep" if self.suggested_config is None else "try"

    @property
    def share(self) -> float:
        """How much of what the acts say was used, beside the labels."""
        return 0.0 if self.recommended is None else self.recommended.choice.scored.share


def decide_from_log(case: LogCase, labels: bool) -> LogDecision:
    """Lay all candidates out over the labelled and the logged queries, and decide."""
    source = Source.live(case.space)
    dataset = source.dataset
    queries = judged(dataset, dataset.queries) if labels else ()
    asked = questions(queries)
    labelled = queries if asked >= fewest_labels(case.config) else ()
    sampled = _sampled(case, labelled)
    clicked = [case.queries[number] for number in sampled.tolist()]
    tried = starts(source, labelled or clicked, PLACES, case.label, case.config)
    labels_read = dataset.qrels if labelled else {}
    whole = record_all(source, tuple(dict.fromkeys((*labelled, *clicked))), tried, labels_read)
    recordings = tuple(recording.only(clicked, labels_read) for recording in whole) if labelled else whole
    table = recording_for(recordings, case.config).table
    today = top10_rows(table, case.config, rows_of(case.learned.pairs, table))
    acts = FeedbackScorer(case.learned, case.learned.values(today))
    if not labelled:
        candidates = build_candidates(recordings, tried, acts)
        return LogDecision(case, (), sampled, candidates, recordings, candidates.grid.metric, None, asked)
    measured = tuple(recording.only(labelled, labels_read) for recording in whole)
    candidates = build_candidates(measured, tried, LabelScorer(OBJECTIVE))
    served = [(recording_for(recordings, block.config).table, block) for block in candidates.grid.blocks]
    parts = []  # what candidates that were laid out on labelled queries gain on the logged ones
    for _, alike in groupby(served, key=lambda pair: id(pair[0])):
        tables, group = zip(*alike, strict=True)
        row_of = rows_of(case.learned.pairs, tables[0])
        parts += [acts.gain(top) for top in first_rows(tables[0], group, row_of)]
    gains = np.concatenate(parts)
    measures = parse_measures([str(OBJECTIVE), *METRICS])
    used = of_config(Contender(case.label, case.config, "system"), candidates, measures)
    second = None if case.hits.listless else SecondMeasurement.among(gains, clicked, labelled)
    gates = ALL_FAMILIES if second is None else FROM_A_LOG
    recommended = decide(Choice(source, labelled, measures, candidates, used, PLACES, 0, second, gates))
    return LogDecision(case, labelled, sampled, candidates, recordings, gains, recommended)


def _sampled(case: LogCase, labelled: Sequence[Query]) -> Indices:
    """int64[S]: the logged queries that are labelled, and others drawn at random."""
    ids = {query.id for query in labelled}
    known = np.array([query.id in ids for query in case.queries])
    acted = np.isin(np.arange(len(known)), case.learned.cells.queries)
    others = np.random.default_rng(0).permutation(np.flatnonzero(acted & ~known))[:MAX_LOGGED_QUERIES]
    return np.sort(np.concatenate([np.flatnonzero(acted & known), others])).astype(np.int64)
