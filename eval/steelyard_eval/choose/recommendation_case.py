"""Everything that a recommendation is made from, and what follows: evidence, decision, answer, leaderboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config.search_config import SearchConfig
from steelyard.fusion.signal import Signal
from steelyard.memory.query import Query
from steelyard_eval.candidates.current import Current, Only, of_config, of_lists
from steelyard_eval.candidates.families import Tried
from steelyard_eval.candidates.layout import Layout
from steelyard_eval.candidates.restriction import NONE, Restriction
from steelyard_eval.candidates.rounding import in_two_digits
from steelyard_eval.candidates.source import Source
from steelyard_eval.choose.answer import answer_of, is_stated
from steelyard_eval.choose.blockers import BROKEN_OFF, UNREAD, Refusal, Side, refusal
from steelyard_eval.choose.duelled import duel_standing
from steelyard_eval.choose.few_labels import Few, duelled, reconsidered
from steelyard_eval.choose.leaderboard import Board, leaderboard
from steelyard_eval.choose.model_labels import ModelLabels
from steelyard_eval.choose.pair_selection import ENOUGH, DuelStanding
from steelyard_eval.choose.priors import known
from steelyard_eval.choose.public import public_table
from steelyard_eval.choose.restriction_cost import Favourite, Toll
from steelyard_eval.choose.rule import Decision, decide
from steelyard_eval.choose.scored import ALL_FAMILIES, Evidence, Gates, doubt
from steelyard_eval.choose.second_measurement import SecondMeasurement
from steelyard_eval.choose.without_labels import FEWEST, Advice, advise, lacked
from steelyard_eval.common.answer import Conclusion, Step, name_of
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets.groups import questions, unit_numbers
from steelyard_eval.decide.promise import FEWEST as STATED
from steelyard_eval.decide.promise import Usual, usual_over
from steelyard_eval.decide.wording import named
from steelyard_eval.measures.metrics import Judgments, Measure

SMOOTHED = 2
"""Weights of one strategy that move together; more are too many to smooth along: the metric chooses better."""
TOO_FEW_BOTH = f"it has to judge {FEWEST} of your labelled queries whole, drawn and not chosen, and others"


@dataclass(frozen=True)
class RecommendationCase:
    """Everything a recommendation is made from."""

    source: Source
    queries: Sequence[Query]
    measures: Sequence[Measure]
    layout: Layout
    used: Contender | ListContender
    limit: int
    seed: int
    now: Callable[[], float]
    tried: Tried = field(default_factory=Tried)
    second: SecondMeasurement | None = None
    gates: Gates = ALL_FAMILIES
    model: ModelLabels | None = None
    only: Only | None = None
    """The one strategy that is tuned; without it all are tried."""
    restriction: Restriction = NONE
    free: RecommendationCase | None = None
    """The same without the restriction, where there is one."""

    def restricted(self, restriction: Restriction) -> RecommendationCase:
        """The same case over the candidates that may be chosen; ConfigError where none is left."""
        if not restriction:
            return self
        allowed = restriction.allowed(self.layout, self.source.space, self.queries)
        second = self.second and self.second.only(allowed)
        return replace(self, layout=self.layout.only(allowed), second=second, restriction=restriction, free=self)

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
    def label(self) -> str:
        """What is used today, by name."""
        return self.used.label

    @property
    def config(self) -> SearchConfig | None:
        """What is used today, where it is more than lists."""
        return self.used.config if isinstance(self.used, Contender) else None

    @cached_property
    def current(self) -> Current:
        """What is used today, on every query."""
        if isinstance(self.used, Contender):
            return of_config(self.label, self.used.config, self.layout, self.measures)
        return of_lists(self.used, self.source.dataset, self.queries, self.limit, self.measures)

    @cached_property
    def evidence(self) -> Evidence:
        """The candidates' differences to the current configuration, and what else is known of them."""
        return self._evidence(self.second)

    @property
    def labels_alone(self) -> Evidence:
        """The same without the second measurement."""
        return self._evidence(None)

    def _evidence(self, second: SecondMeasurement | None) -> Evidence:
        grid, now = self.layout.grid, self.current
        priors = known(grid.keys, now.key, self.source.model, str(self.metric), self.source.dataset.sha256)
        differences = grid.metric - now.values[self.metric].astype(np.float32)
        groups = unit_numbers(self.queries)
        if self.only and max(block.moving for block in grid.blocks) > SMOOTHED:
            return Evidence.of(differences, differences, None, groups, second)
        steadier = grid.composite - now.composite.astype(np.float32)
        return Evidence.of(differences, steadier, priors, groups, second)

    def worth(self, candidate: int) -> float:
        """How many labelled queries the labels and the second measurement are worth together, by a variance."""
        alone, both = self.labels_alone.of_metric, self.evidence.of_metric
        return float(len(self.queries) * (alone.deviation[candidate] / both.deviation[candidate]) ** 2)

    @property
    def model_told(self) -> str:
        """What a model's labels were worth; empty where none were given."""
        if self.model is None:
            return ""
        if not self.model.agreement["counts"]:
            return f"labels of a model: {self.model.sentence}"
        if self.second is None:
            return f"labels of a model were not used: {TOO_FEW_BOTH}"
        top = int(self.evidence.of_metric.mean.argmax()) if self.picked is None else self.decision.candidate
        count = f"{len(self.second.at)} of your queries and {self.second.others} others"
        used = (
            f"your {len(self.queries)} labelled queries are worth about {self.worth(top or 0):.0f} with them"
            if self.evidence.share
            else "they are unrelated to your labels of these queries, and were not used"
        )
        return f"labels of a model on {count}: {self.model.sentence} By queries, {used}."

    def values(self, candidate: int) -> Floats:
        """float64[Q]: the metric of a candidate, by replay."""
        return self.layout.values(self.layout.grid.config(candidate), [self.metric])[self.metric]

    @cached_property
    def _decided(self) -> tuple[Decision, bool]:
        """The decision, and whether it rests on public collections."""
        base, usual = self.current.values[self.metric], self.usual
        decision = decide(
            self.evidence,
            self.gates,
            self.seed,
            lambda c: self.evidence.moved(c, self.values(c) - base),
            usual,
            self._refusal,
        )
        few = self._few
        if self._duel is not None and few is not None:
            return self._duelled(decision, few, self._duel)
        return self._reconsidered(decision, few, questions(self.queries))

    @cached_property
    def _few(self) -> Few | None:
        """What public collections showed of the candidates; they compared families, not settings of one."""
        if self.only:
            return None
        table = public_table()
        return Few.of(self.layout.grid.keys(table.rows), table, self.source.model, self.source.dataset.sha256)

    @cached_property
    def _duel(self) -> DuelStanding | None:
        """Where contenders stand by pairs that were chosen by duel."""
        if self.source.dataset.sampled != "duel" or self._few is None:
            return None
        return duel_standing(self._few, self.layout, self.source, self.queries)

    def _reconsidered(self, decision: Decision, few: Few | None, labelled: int) -> tuple[Decision, bool]:
        return reconsidered(decision, self.evidence, self.gates, few, self.advice, labelled, self.usual, self.seed)

    def _duelled(self, decision: Decision, few: Few, standing: DuelStanding) -> tuple[Decision, bool]:
        """What single pairs show that were judged by duel; below enough of them, public collections."""
        if self._lacking(standing) > 0:
            return self._reconsidered(decision, few, 0)
        top = int(standing.leaders[0])
        used = self.layout.grid.config(int(few.rows[top])) == self.config
        return duelled(decision, self.evidence, self.gates, few, top, used, self.usual), False

    def _lacking(self, standing: DuelStanding) -> int:
        """Pairs to judge until a duel counts, as `judge` says it: of all queries, not of the labelled alone."""
        enough = ENOUGH if self.source.dataset.unlabelled else standing.enough
        return enough - int(standing.judged.sum())

    @cached_property
    def advice(self) -> Advice:
        """What public collections say."""
        dataset, asked = self.source.dataset, questions(self.queries)
        pairs = sum(map(len, dataset.qrels.values())) if dataset.sampled == "duel" else 0
        facts, model = lacked(self.config, dataset), self.source.model
        more = 0 if self._duel is None else self._lacking(self._duel)
        return advise(self.label, self.config, self.limit, model, dataset.sha256, asked, pairs, facts, more)

    @property
    def labels_needed(self) -> int | None:
        """How many more queries to label; None where it is pairs, or not known."""
        return self.advice.labels_needed if self.public else self.decision.more

    @property
    def decision(self) -> Decision:
        """Ship, try or keep."""
        return self._decided[0]

    @property
    def public(self) -> bool:
        """Whether the decision rests on public collections, because the labels prove nothing."""
        return self._decided[1]

    def _refusal(self, candidate: int) -> Refusal | None:
        """Why a candidate cannot ship, whatever the figures say."""
        if not self.layout.whole:
            return BROKEN_OFF
        config = self.layout.grid.config(candidate)
        return refusal(
            self.source.dataset,
            self.metric,
            self._side(self.label, self.config),
            self._side(named(config), config),
            (self._side(label, finder) for label, finder in self._finders),
            lambda differences: doubt(self.evidence, candidate, differences),
        )

    @property
    def _finders(self) -> list[tuple[str, SearchConfig]]:
        """Whose lists may have been all that was judged: all starts; of one strategy its retrievers alone."""
        if self.only is None:
            return [(start.label, start.config) for start in self.layout.starts]
        config = self.only.row.config
        return [(name, config.with_strategy(Signal(name))) for name in sorted(config.strategy.retrievers())]

    def _side(self, label: str, config: SearchConfig | None) -> Side:
        """What a configuration, or the lists that are used today, show of the labels."""
        if config is not None:
            known = self.layout.recorded(config)
            return Side.replayed(label, config, known.table, known.judgments, self.metric)
        ranked = self.current.lists.ranked
        judgments = Judgments.of(self.source.dataset.qrels, ranked.queries, ranked.entries)
        return Side.of(label, None, (ranked.offsets, ranked.entry), judgments, self.metric)

    @property
    def usual(self) -> Usual:
        """What is usually gained over what is used today; of one strategy it is stated from fewer labels on."""
        usual = usual_over(self.config)
        return replace(usual, stated=STATED) if self.only else usual

    @property
    def stated(self) -> bool:
        """Whether the gain is printed."""
        return is_stated(self.decision, questions(self.queries), self.usual.stated)

    @cached_property
    def picked(self) -> SearchConfig | None:
        """The configuration that was decided on, with rounded weights."""
        candidate = self.decision.candidate
        return None if candidate is None else self._written(candidate)

    def _written(self, candidate: int) -> SearchConfig:
        """A candidate as short as the target still expresses it."""
        full, short = self.layout.grid.config(candidate), self.layout.written(candidate, self.measures)
        for draft in (short, full):
            rounded = in_two_digits(draft, lambda config: self.layout.means(config, self.measures))
            if not self.restriction.lost(rounded):
                return rounded
        return full

    @cached_property
    def toll(self) -> Toll | None:
        """What the restriction costs; None without one."""
        if self.free is None:
            return None
        sides = [case._favourite(bool(case.free and self.barred)) for case in (self.free, self)]
        counts = len(self.layout.grid), len(self.free.layout.grid)
        return Toll(self.restriction, sides[0], sides[1], self.evidence, str(self.metric), counts, self.barred)

    @cached_property
    def barred(self) -> str:
        """Why what is used today may not be chosen; empty where it may."""
        if self.config is None:
            return f"{self.restriction.target} cannot be given lists" if self.restriction.target else ""
        return self.restriction.barred(self.layout, self.source.space, self.queries, self.config)

    def _favourite(self, always: bool) -> Favourite:
        """The best of these candidates, by the gain out of fold."""
        base = self.current.values[self.metric]
        top = int(np.argmax(self.evidence.of_composite.mean))
        formula = named(self.picked or self._written(top))
        return Favourite.of(formula, self.evidence, self.seed, lambda c: self.values(c) - base, self.usual, always)

    @cached_property
    def instead(self) -> SearchConfig | None:
        """Under keep, the best that may be chosen where what is used today may not."""
        if self.picked is not None or not self.barred:
            return None
        return self._written(int(np.argmax(self.evidence.of_composite.mean)))

    @property
    def answer(self) -> Conclusion:
        """Verdict, gain and odds; what to do; the formula."""
        written = self.picked or self.instead
        formula = "" if written is None else named(written)
        if self.public:
            conclusion = self.advice.answer(self.source.dataset, formula, self.source.model)
        else:
            numbers = questions(self.queries), self.usual.stated
            of = self.source.dataset, self.label, str(self.metric)
            conclusion = answer_of(self.decision, *of, *numbers, formula, self.source.model)
            keeps = self.decision.verdict == "keep"
            if keeps and not any(place.values[self.metric].any() for place in self.board.places):
                told = f"Keep {name_of(self.label)}: nothing that was tried finds a relevant entry for any query."
                conclusion = replace(conclusion, sentence=told, steps=(Step(UNREAD),))
        return conclusion if self.toll is None else self.toll.beside(conclusion, self.decision.verdict)

    @cached_property
    def board(self) -> Board:
        """The leaderboard."""
        return leaderboard(
            self.layout, self.evidence, self.current, self.measures, self.decision.candidate, self.picked
        )
