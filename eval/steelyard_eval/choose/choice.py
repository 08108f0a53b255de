"""What is chosen among the candidates: what is known of them, the decision, and how it is written."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config import SearchConfig
from steelyard.fusion.node import Signal
from steelyard.memory.query import Query
from steelyard_eval.candidates.candidates import CandidateSet, Current
from steelyard_eval.candidates.choice_limits import NONE, Restriction
from steelyard_eval.candidates.families import Only
from steelyard_eval.candidates.kernel import DEEPEST
from steelyard_eval.candidates.settings import round_weights, same_sum
from steelyard_eval.choose import few_labels
from steelyard_eval.choose.blockers import INTERRUPTED, ContenderScores, find_blocker
from steelyard_eval.choose.differences import ModelLabels, Scored, SecondMeasurement
from steelyard_eval.choose.duel import PairSelectionState, pairwise_estimate
from steelyard_eval.choose.public import lookup_priors, public_table
from steelyard_eval.choose.rule import ALL_FAMILIES, Expectation, Gates, Ruling, apply_rule, gain_prior_over
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets.dataset import MIN_PAIRS
from steelyard_eval.datasets.groups import questions, unit_numbers
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.recording.next_steps import describe_config
from steelyard_eval.result.structs import Blocker, Message


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
    free: "Choice | None" = None
    model: ModelLabels | None = None

    def restricted(self, restriction: Restriction) -> "Choice":
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
        if self.only and grid.steadier is grid.metric:
            return Scored.of(differences, differences, None, units, second)
        model, sha256 = self.source.model, self.source.dataset.sha256
        priors = lookup_priors(grid.keys, now.key, model, str(self.metric), sha256)
        steadier = grid.composite - now.composite.astype(np.float32)
        return Scored.of(differences, steadier, priors, units, second)

    def effective_n(self, candidate: int) -> float:
        """How many labelled queries the labels and the second measurement are worth together, by a variance."""
        alone, both = (of.of_metric.deviation[candidate] for of in (self.scored_with(None), self.scored))
        return float(len(self.queries) * max(1.0, alone / both if both else 1.0) ** 2)

    def differences(self, candidate: int) -> Floats:
        """float64[Q]: the metric of a candidate less that of what is used today, by replay."""
        values = self.candidates.values(self.candidates.grid.config(candidate), [self.metric])
        return values[self.metric] - self.current.values[self.metric]

    @cached_property
    def expect(self) -> Expectation:
        """What to expect of a candidate on unseen queries."""
        scored, prior = self.scored, gain_prior_over(self.current.config)
        return Expectation(
            scored, prior, self.seed, lambda row: scored.adjusted(row, self.differences(row)), self._is_current
        )

    def _is_current(self, candidate: int) -> bool:
        used = self.current.config
        return used is not None and same_sum(used.effective, self.candidates.grid.config(candidate).effective)

    @cached_property
    def few(self) -> few_labels.FewLabelCandidates | None:
        """What public collections showed of the candidates; they compared families, not settings of one."""
        if self.only:
            return None
        table, advice = public_table(), self._known
        keys, favoured = self.candidates.grid.keys(table.rows), advice.attempt is not None
        model, sha256 = self.source.model, self.source.dataset.sha256
        return few_labels.FewLabelCandidates.of(keys, table, model, sha256, advice.shown, favoured)

    @cached_property
    def pairs(self) -> PairSelectionState | None:
        """Where contenders stand by pairs that were chosen one by one."""
        if self.source.dataset.sampled != "duel" or self.few is None:
            return None
        configs = dict(zip(self.few.labels, map(self.candidates.grid.config, self.few.rows.tolist()), strict=True))
        lists = {label: self.candidates.replayed(config).ranked.lists() for label, config in configs.items()}
        return pairwise_estimate(lists, self.queries, self.source.dataset, self.source.model)

    @property
    def pairs_needed(self) -> int:
        """Pairs to judge until they count, as `judge` says it: of all queries, not of the labelled alone."""
        if self.pairs is None:
            return 0
        enough = MIN_PAIRS if self.source.dataset.unlabelled else self.pairs.enough
        return enough - int(self.pairs.judged.sum())

    @cached_property
    def advice(self) -> few_labels.UnlabelledAdvice:
        """What public collections say."""
        return replace(self._known, more=self.pairs_needed)

    @cached_property
    def _known(self) -> few_labels.UnlabelledAdvice:
        dataset, used = self.source.dataset, self.current
        pairs = sum(map(len, dataset.qrels.values())) if dataset.sampled == "duel" else 0
        facts = few_labels.fact_signals_used(used.config, dataset)
        place = self.limit, self.source.model, dataset.sha256
        return few_labels.advise(used.label, used.config, *place, self.labelled, pairs, facts)

    def blocker(self, candidate: int) -> Blocker | None:
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
            self._side(describe_config(config), config),
            (self._side(label, finder) for label, finder in finders),
            lambda differences: self.scored.p_no_gain(candidate, differences),
        )

    def _side(self, label: str, config: SearchConfig | None) -> ContenderScores:
        if config is not None:
            run = self.candidates.replayed(config.with_limit(max(config.limit, DEEPEST)))
            judgments = self.candidates.recorded(config).judgments
            return ContenderScores.of(label, config, (run.ranking.offsets, run.entry), judgments, self.metric)
        ranked, dataset = self.current.lists.ranked, self.source.dataset
        judgments = Judgments.of(dataset.qrels, ranked.queries, ranked.entries, dataset.tokens)
        return ContenderScores.of(label, None, (ranked.offsets, ranked.entry), judgments, self.metric)

    @property
    def top(self) -> int:
        """The candidate of largest posterior mean."""
        return int(np.argmax(self.scored.of_composite.mean))

    def written_as(self, candidate: int) -> SearchConfig:
        """A candidate as short as the target still expresses it."""
        full, short = self.candidates.grid.config(candidate), self.candidates.written(candidate, self.measures)
        for draft in (short, full):
            rounded = round_weights(draft, lambda config: self.candidates.means(config, self.measures))
            if not self.restriction.rejection_reason(rounded):
                return rounded
        return full

    @cached_property
    def not_allowed(self) -> Message | None:
        """Why what is used today may not be chosen; None where it may."""
        if self.current.config is None:
            target = self.restriction.target
            return Message("takes_no_lists", {"target": target}) if target else None
        return self.restriction.not_allowed(self.candidates, self.source.space, self.queries, self.current.config)


@dataclass(frozen=True)
class Decided:
    """A choice that was decided, and what is written of it.

    `public`: the ruling rests on public collections, because the labels prove nothing.
    """

    choice: Choice
    ruling: Ruling
    public: bool

    @property
    def labels_needed(self) -> int | None:
        """How many more queries to label; None where it is pairs, or not known."""
        return self.choice.advice.labels_needed if self.public else self.ruling.more

    @cached_property
    def picked(self) -> SearchConfig | None:
        """The configuration that was decided on, with rounded weights."""
        candidate = self.ruling.candidate
        return None if candidate is None else self.choice.written_as(candidate)

    @cached_property
    def instead(self) -> SearchConfig | None:
        """Under keep, the best that may be chosen where what is used today may not."""
        choice = self.choice
        return choice.written_as(choice.top) if self.picked is None and choice.not_allowed else None


def decide(choice: Choice) -> Decided:
    """Ship, try or keep: by the rule, and where labels prove nothing by pairs, or by public collections."""
    expect, few, gates, labelled = choice.expect, choice.few, choice.gates, choice.labelled
    if few is not None and choice.pairs is not None:
        if choice.pairs_needed <= 0:
            row = int(few.rows[choice.pairs.leaders[0]])
            used = choice.candidates.grid.config(row) == choice.current.config
            return Decided(choice, few_labels.decide_from_pairs(expect, gates, None if used else row), False)
        labelled = 0
    ruling = apply_rule(expect, gates, choice.blocker)
    return Decided(
        choice, *few_labels.decide_with_public_prior(ruling, expect, gates, few, labelled, choice.blocker)
    )
