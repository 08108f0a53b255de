"""What is chosen among the candidates: what is known of them, the decision, and how it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config import LISTS, SearchConfig
from steelyard.fusion.node import Signal
from steelyard.memory.query import Query
from steelyard_eval.candidates.candidates import CandidateSet, Current
from steelyard_eval.candidates.kernel import DEEPEST
from steelyard_eval.candidates.restriction import NONE, Best, Restriction, said_of_cost
from steelyard_eval.candidates.settings import round_weights, same_sum
from steelyard_eval.candidates.source import Only, Source
from steelyard_eval.choose.blockers import INTERRUPTED, ContenderScores, find_blocker
from steelyard_eval.choose.duel import MIN_PAIRS, PairSelectionState, pairwise_estimate
from steelyard_eval.choose.few_labels import (
    Advice,
    FewLabelCandidates,
    advise,
    decide_from_pairs,
    decide_with_public_prior,
    lacked,
)
from steelyard_eval.choose.public import lookup_priors, public_table
from steelyard_eval.choose.rule import (
    ALL_FAMILIES,
    Expectation,
    Gates,
    Ruling,
    decide,
    gain_prior_over,
)
from steelyard_eval.choose.scored import ModelLabels, Scored, SecondMeasurement
from steelyard_eval.datasets.groups import questions, unit_numbers
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.recording.steps import named
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Blocker, Fact, Said

SHORT_FORMULA = 60  # characters of a formula that a sentence can hold
SMOOTHED = 2
"""Weights of one strategy that move together; more are too many to smooth along: the metric chooses better."""


@dataclass(frozen=True)
class Choice:
    """One choice: candidates on labelled queries against what is used today.

    `only` is the one strategy that is tuned; without it all are tried. `free` is the same choice without the
    restriction, where there is one, `model` whose labels are the second measurement.
    """

    source: Source
    queries: Sequence[Query]
    measures: Sequence[Measure]
    candidates: CandidateSet
    current: Current
    limit: int
    seed: int = 0
    second: SecondMeasurement | None = None
    gates: Gates = ALL_FAMILIES
    only: Only | None = None
    restriction: Restriction = NONE
    free: Choice | None = None
    model: ModelLabels | None = None

    def restricted(self, restriction: Restriction) -> Choice:
        """The same among the candidates that may be chosen; ConfigError where none is left."""
        if not restriction:
            return self
        allowed = restriction.allowed(self.candidates, self.source.space, self.queries)
        kept = {"candidates": self.candidates.only(allowed), "second": self.second and self.second.only(allowed)}
        return replace(self, **kept, restriction=restriction, free=self)  # type: ignore[arg-type]  # two fields

    @property
    def metric(self) -> Measure:
        """What is decided on."""
        return self.measures[0]

    @property
    def split(self) -> str:
        """The split that one strategy is tuned on; all without one."""
        splits = {query.split for query in self.queries} - {""}
        return splits.pop() if self.only and len(splits) == 1 else "all"

    @property
    def labelled(self) -> int:
        """How many different questions have labels."""
        return questions(self.queries)

    @cached_property
    def scored(self) -> Scored:
        """The candidates' differences to the current configuration, and what else is known of them."""
        return self.scored_with(self.second)

    def scored_with(self, second: SecondMeasurement | None) -> Scored:
        """The same with another second measurement, or none."""
        grid, now, units = self.candidates.grid, self.current, unit_numbers(self.queries)
        differences = grid.metric - now.values[self.metric].astype(np.float32)
        if self.only and max(block.moving for block in grid.blocks) > SMOOTHED:
            return Scored.of(differences, differences, None, units, second)
        model, sha256 = self.source.model, self.source.dataset.sha256
        priors = lookup_priors(grid.keys, now.key, model, str(self.metric), sha256)
        steadier = grid.composite - now.composite.astype(np.float32)
        return Scored.of(differences, steadier, priors, units, second)

    def effective_n(self, candidate: int) -> float:
        """How many labelled queries the labels and the second measurement are worth together, by a variance."""
        alone, both = self.scored_with(None).of_metric, self.scored.of_metric
        return float(len(self.queries) * (alone.deviation[candidate] / both.deviation[candidate]) ** 2)

    def differences(self, candidate: int) -> Floats:
        """float64[Q]: the metric of a candidate less that of what is used today, by replay."""
        values = self.candidates.values(self.candidates.grid.config(candidate), [self.metric])
        return values[self.metric] - self.current.values[self.metric]

    @cached_property
    def expect(self) -> Expectation:
        """What to expect of a candidate on unseen queries."""
        scored, prior = self.scored, gain_prior_over(self.current.config)
        return Expectation(
            scored, prior, self.seed, lambda row: scored.adjusted(row, self.differences(row)), self._same
        )

    def _same(self, candidate: int) -> bool:
        """Whether a candidate is what is used today on another scale."""
        used = self.current.config
        return used is not None and same_sum(used.effective, self.candidates.grid.config(candidate).effective)

    @property
    def decision(self) -> Ruling:
        """Ship, try or keep."""
        return self._decided[0]

    @property
    def public(self) -> bool:
        """Whether the decision rests on public collections, because the labels prove nothing."""
        return self._decided[1]

    @property
    def labels_needed(self) -> int | None:
        """How many more queries to label; None where it is pairs, or not known."""
        return self.advice.labels_needed if self.public else self.decision.more

    @cached_property
    def _decided(self) -> tuple[Ruling, bool]:
        """The decision, and whether it rests on public collections."""
        expect, few = self.expect, self.few
        decision = decide(expect, self.gates, self._blocker)
        labelled = self.labelled
        if few is not None and self.pairs is not None:
            if self._pairs_needed <= 0:
                row = int(few.rows[self.pairs.leaders[0]])
                used = self.candidates.grid.config(row) == self.current.config
                return decide_from_pairs(expect, self.gates, None if used else row), False
            labelled = 0
        return decide_with_public_prior(decision, expect, self.gates, few, labelled)

    @cached_property
    def few(self) -> FewLabelCandidates | None:
        """What public collections showed of the candidates; they compared families, not settings of one."""
        if self.only:
            return None
        table, advice = public_table(), self._known
        keys, favoured = self.candidates.grid.keys(table.rows), advice.attempt is not None
        model, sha256 = self.source.model, self.source.dataset.sha256
        return FewLabelCandidates.of(keys, table, model, sha256, advice.shown, favoured)

    @cached_property
    def pairs(self) -> PairSelectionState | None:
        """Where contenders stand by pairs that were chosen one by one."""
        if self.source.dataset.sampled != "duel" or self.few is None:
            return None
        configs = dict(zip(self.few.labels, map(self.candidates.grid.config, self.few.rows.tolist()), strict=True))
        lists = {label: self.candidates.replayed(config).ranked.lists() for label, config in configs.items()}
        return pairwise_estimate(lists, self.queries, self.source.dataset, self.source.model)

    @property
    def _pairs_needed(self) -> int:
        """Pairs to judge until they count, as `judge` says it: of all queries, not of the labelled alone."""
        if self.pairs is None:
            return 0
        enough = MIN_PAIRS if self.source.dataset.unlabelled else self.pairs.enough
        return enough - int(self.pairs.judged.sum())

    @cached_property
    def advice(self) -> Advice:
        """What public collections say."""
        return replace(self._known, more=self._pairs_needed)

    @cached_property
    def _known(self) -> Advice:
        dataset, used = self.source.dataset, self.current
        pairs = sum(map(len, dataset.qrels.values())) if dataset.sampled == "duel" else 0
        facts = lacked(used.config, dataset)
        place = self.limit, self.source.model, dataset.sha256
        return advise(used.label, used.config, *place, self.labelled, pairs, facts)

    def _blocker(self, candidate: int) -> Blocker | None:
        """Why a candidate cannot ship, whatever the figures say."""
        if not self.candidates.complete:
            return INTERRUPTED
        config = self.candidates.grid.config(candidate)
        # All starts may have been all that was judged; of one strategy its retrievers alone.
        finders = [(start.label, start.config) for start in self.candidates.starts]
        if self.only:
            own = self.only.row.config
            finders = [(name, own.with_strategy(Signal(name))) for name in sorted(own.strategy.retrievers)]
        return find_blocker(
            self.source.dataset,
            self.metric,
            self._side(self.current.label, self.current.config),
            self._side(named(config), config),
            (self._side(label, finder) for label, finder in finders),
            lambda differences: self.scored.p_no_gain(candidate, differences),
        )

    def _side(self, label: str, config: SearchConfig | None) -> ContenderScores:
        """What a configuration, or the lists that are used today, show of the labels."""
        if config is not None:
            run = self.candidates.replayed(config.with_limit(max(config.limit, DEEPEST)))
            judgments = self.candidates.recorded(config).judgments
            return ContenderScores.of(label, config, (run.ranking.offsets, run.entry), judgments, self.metric)
        ranked = self.current.lists.ranked
        judgments = Judgments.of(self.source.dataset.qrels, ranked.queries, ranked.entries)
        return ContenderScores.of(label, None, (ranked.offsets, ranked.entry), judgments, self.metric)

    @cached_property
    def picked(self) -> SearchConfig | None:
        """The configuration that was decided on, with rounded weights."""
        candidate = self.decision.candidate
        return None if candidate is None else self._written(candidate)

    @cached_property
    def instead(self) -> SearchConfig | None:
        """Under keep, the best that may be chosen where what is used today may not."""
        return None if self.picked is not None or not self.not_allowed else self._written(self._top)

    @property
    def name(self) -> str:
        """What was decided on, as a person calls it: its formula where that is short."""
        config = self.picked or self.instead
        if config is None:
            return ""
        if config.system not in ("plain", LISTS):
            return say(Said("name_system", {"system": config.name.removesuffix(":documented")}))
        formula, strategy = named(config), config.effective
        facts: dict[str, Fact] = {"family": strategy.shown_as, "signals": sorted(strategy.signals)}
        return formula if len(formula) <= SHORT_FORMULA else say(Said("name_family", facts))

    @property
    def _top(self) -> int:
        return int(np.argmax(self.scored.of_composite.mean))

    def _written(self, candidate: int) -> SearchConfig:
        """A candidate as short as the target still expresses it."""
        full, short = self.candidates.grid.config(candidate), self.candidates.written(candidate, self.measures)
        for draft in (short, full):
            rounded = round_weights(draft, lambda config: self.candidates.means(config, self.measures))
            if not self.restriction.rejection_reason(rounded):
                return rounded
        return full

    @cached_property
    def restriction_cost(self) -> Said | None:
        """What the restriction costs; None without one."""
        if self.free is None:
            return None
        sides = self.free._best(always=False), self._best(always=bool(self.not_allowed))
        facts: dict[str, Fact] = {"kept": len(self.candidates.grid), "of": len(self.free.candidates.grid)}
        facts["not_allowed"] = say(self.not_allowed) if self.not_allowed else None
        return said_of_cost(self.restriction, *sides, self.scored.units, str(self.metric), facts)

    @cached_property
    def not_allowed(self) -> Said | None:
        """Why what is used today may not be chosen; None where it may."""
        if self.current.config is None:
            target = self.restriction.target
            return Said("takes_no_lists", {"target": target}) if target else None
        return self.restriction.not_allowed(self.candidates, self.source.space, self.queries, self.current.config)

    def _best(self, always: bool) -> Best:
        """By the estimator of every promise; `always` where what is used today cannot be kept."""
        expect, candidate = replace(self.expect, always=always), self.decision.candidate
        formula = named(self.picked or self._written(self._top))
        return Best(formula, expect.unseen, expect.of(self._top if candidate is None else candidate))
