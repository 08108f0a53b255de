"""The document of a recommendation: decision, leaderboard, costs, and the results a report is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from steelyard import __version__
from steelyard.base.arrays import Floats
from steelyard.config.search_config import SearchConfig
from steelyard.memory.query import Query
from steelyard_eval.common.answer import Conclusion
from steelyard_eval.compare.comparison_document import DIALECT
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.warnings import JUDGED, warnings
from steelyard_eval.datasets.alike import alike
from steelyard_eval.datasets.groups import questions, unit_numbers
from steelyard_eval.datasets.labels import unstated
from steelyard_eval.decide.decision import Decision, decide
from steelyard_eval.decide.duel import ENOUGH
from steelyard_eval.decide.few_labels import Few, duelled, reconsidered
from steelyard_eval.decide.prediction_powered import SecondMeasurement
from steelyard_eval.decide.priors import known
from steelyard_eval.decide.promise import Usual, usual_over
from steelyard_eval.decide.provenance import decided, estimate, origin
from steelyard_eval.decide.public import public_table
from steelyard_eval.decide.refusal import BROKEN_OFF, Refusal, Side, refusal
from steelyard_eval.decide.rule import ALL_FAMILIES, Evidence, Gates, doubt
from steelyard_eval.decide.without_labels import FEWEST, Advice, advise
from steelyard_eval.decide.wording import answer_of, depths_read, is_stated, named
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.measures.statistics import difference_interval, mean_interval
from steelyard_eval.recording.rankings import (
    ShownLists,
    described,
    lists_of,
    ordered,
    query_rows,
    rankings,
    spelled,
)
from steelyard_eval.tune.board import Board, Place, leaderboard
from steelyard_eval.tune.candidate import candidates
from steelyard_eval.tune.cost import timing
from steelyard_eval.tune.current import Current, of_config, of_lists
from steelyard_eval.tune.duelled import duel_standing
from steelyard_eval.tune.families import Tried
from steelyard_eval.tune.layout import Layout
from steelyard_eval.tune.model_labels import ModelLabels
from steelyard_eval.tune.restriction import NONE, Favourite, Restriction, Toll
from steelyard_eval.tune.source import Source
from steelyard_eval.tune.tuning_document import curve_of
from steelyard_eval.tune.weight_rounding import in_two_digits
from steelyard_eval.tune.written import said_of_idle

Record = dict[str, Any]
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
    restriction: Restriction = NONE
    free: RecommendationCase | None = None
    """The same without the restriction, where there is one."""

    def restricted(self, restriction: Restriction) -> RecommendationCase:
        """The same case over the candidates that may be chosen; ConfigError where none is left."""
        if not restriction:
            return self
        allowed = restriction.allowed(self.layout, self.source, self.queries)
        second = self.second and self.second.only(allowed)
        return replace(self, layout=self.layout.only(allowed), second=second, restriction=restriction, free=self)

    @property
    def metric(self) -> Measure:
        """What is decided on."""
        return self.measures[0]

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
        return Evidence.of(
            grid.metric - now.values[self.metric].astype(np.float32),
            grid.composite - now.composite.astype(np.float32),
            priors,
            unit_numbers(self.queries),
            second,
        )

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
        found = decide(
            self.evidence,
            self.gates,
            self.seed,
            lambda c: self.evidence.moved(c, self.values(c) - base),
            usual,
            self._refusal,
        )
        table = public_table()
        few = Few.of(self.layout.grid.keys(table.rows), table, self.source.model, self.source.dataset.sha256)
        if self.source.dataset.sampled == "duel" and few is not None:
            return self._duelled(found, few)
        return self._reconsidered(found, few, questions(self.queries))

    def _reconsidered(self, found: Decision, few: Few | None, labelled: int) -> tuple[Decision, bool]:
        return reconsidered(found, self.evidence, self.gates, few, self.advice, labelled, self.usual, self.seed)

    def _duelled(self, found: Decision, few: Few) -> tuple[Decision, bool]:
        """What single pairs show that were judged by duel; below `ENOUGH` of them, public collections."""
        standing = duel_standing(few, self.layout, self.source, self.queries)
        if standing.judged.sum() < ENOUGH:
            return self._reconsidered(found, few, 0)
        top = int(standing.leaders[0])
        used = self.layout.grid.config(int(few.rows[top])) == self.config
        return duelled(found, self.evidence, self.gates, few, top, used, self.usual), False

    @cached_property
    def advice(self) -> Advice:
        """What public collections say."""
        dataset, asked = self.source.dataset, questions(self.queries)
        pairs = sum(map(len, dataset.qrels.values())) if dataset.sampled == "duel" else 0
        return advise(self.label, self.config, self.limit, self.source.model, dataset.sha256, asked, pairs)

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
            (self._side(start.label, start.config) for start in self.layout.starts),
            lambda differences: doubt(self.evidence, candidate, differences),
        )

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
        """What is usually gained over what is used today."""
        return usual_over(self.config)

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
        own, short = self.layout.grid.config(candidate), self.layout.written(candidate, self.measures)
        for one in (short, own):
            rounded = in_two_digits(one, lambda config: self.layout.means(config, self.measures))
            if not self.restriction.lost(rounded):
                return rounded
        return own

    @cached_property
    def toll(self) -> Toll | None:
        """What the restriction costs; None without one."""
        if self.free is None:
            return None
        sides = [case._favourite(bool(case.free and self.barred)) for case in (self.free, self)]
        counts = len(self.layout.grid), len(self.free.layout.grid)
        return Toll(self.restriction, sides[0], sides[1], self.evidence, str(self.metric), counts, self.barred)

    @property
    def barred(self) -> str:
        """Why what is used today may not be chosen; empty where it may."""
        if self.config is None:
            return f"{self.restriction.target} cannot be given lists" if self.restriction.target else ""
        return self.restriction.lost(self.config) or self.restriction.costs(self.layout, self.config)

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
            found = self.advice.answer(self.source.dataset, formula)
        else:
            fewest = 0 if self.stated else self.usual.stated
            found = answer_of(self.decision, self.source.dataset, self.label, str(self.metric), fewest, formula)
        return found if self.toll is None else self.toll.beside(found, self.decision.verdict)

    @cached_property
    def board(self) -> Board:
        """The leaderboard."""
        return leaderboard(
            self.layout, self.evidence, self.current, self.measures, self.decision.candidate, self.picked
        )


def document(case: RecommendationCase, timed: bool) -> tuple[Record, SearchConfig | None, SearchConfig | None]:
    """The JSON document, what to run, and what is worth trying."""
    decision, board, found = case.decision, case.board, _chosen(case)
    record = {
        "schema_version": 1,
        "tool": f"steelyard {__version__}",
        "command": _command(case),
        **case.answer.to_json(),
        "public": case.advice.to_json() if case.public else None,
        **decided(decision, str(case.metric), len(case.queries), case.stated),
        "whole": case.layout.whole,
        "model_labels": _model(case),
        "current": _configuration(case, board.current),
        "chosen": found,
        "runner_up": _runner_up(case),
        "leaderboard": board.rows(),
        "candidates": len(case.layout.grid),
        "table": _table(case),
        **_results(case),
        "timing": timing(case.source, case.queries, board, timed),
    }
    facts = origin(case.source.dataset, _fingerprint(case), case.seed, case.now)
    facts |= {"objective": str(case.metric), "verdict": decision.verdict, "promise": record["promise"]}
    facts["baseline"] = record["current"]["in_sample"]
    if case.toll is not None:
        record["restriction"] = case.toll.to_json()
    current = None if case.config is None else replace(case.config, provenance=facts)
    if case.picked is None or found is None:
        return record, current, case.instead and replace(case.instead, provenance=facts)
    facts |= {"in_sample": found["in_sample"], "certificate": "best-found", "plateau": found["plateau"]}
    picked = replace(case.picked, provenance=facts)
    return (record, picked, None) if decision.verdict == "ship" else (record, current, picked)


def _chosen(case: RecommendationCase) -> Record | None:
    """The configuration that was decided on, and the best weights of its setting, searched exactly."""
    if case.picked is None:
        return None
    values = case.layout.values(case.picked, [case.metric])[case.metric]
    known = case.layout.recorded(case.picked)
    (candidate,) = candidates(known.table, [case.picked], known.judgments, case.metric)
    every = np.ones(len(case.queries), dtype=bool)
    found = candidate.search(every, case.seed)
    return {
        "system": case.picked.system,
        "profile": case.picked.profile,
        "strategy": str(case.picked.effective),
        "depths": depths_read(case.picked),
        "in_sample": estimate(mean_interval(values, case.evidence.groups.tolist()), len(values)),
        "plateau": list(candidate.plateau(candidate.start, every)),
        **curve_of(candidate, every),
        "optimum": {
            "strategy": str(candidate.written(candidate.short(found.weights, every)).effective),
            "value": found.value,
            "certificate": found.certificate,
        },
    }


def _configuration(case: RecommendationCase, place: Place) -> Record:
    values = estimate(mean_interval(place.values[case.metric], case.evidence.groups.tolist()), len(case.queries))
    depths = depths_read(place.config) if place.config else {}
    return {**place.about(), "depths": depths, "in_sample": values, "embedding_calls": place.calls}


def _runner_up(case: RecommendationCase) -> Record | None:
    """The best row that is neither the one decided on nor the current one, and what parts it from the former."""
    first = next((one for one in case.board.places if one.config == case.picked), case.board.current)
    others = [one for one in case.board.places if one is not first and one is not case.board.current]
    if not others:
        return None
    values, other = first.values[case.metric], others[0].values[case.metric]
    lead = difference_interval(values - other, case.evidence.groups.tolist())
    parted = bool(lead.low > 0 or lead.high < 0)
    return {"label": others[0].label, "strategy": others[0].about()["strategy"], **asdict(lead), "parted": parted}


def _table(case: RecommendationCase) -> Record | None:
    """How much of the candidates a table of other collections is known of."""
    worth = case.evidence.prior_composite.worth
    return {"known": int((worth > 0).sum()), "worth": float(worth.max())} if worth.any() else None


def _model(case: RecommendationCase) -> Record | None:
    """What a model's labels were, and how far they were used."""
    if case.model is None:
        return None
    both, others = (0, 0) if case.second is None else (len(case.second.at), case.second.others)
    return {**case.model.agreement, "labelled": both, "others": others, "share": case.evidence.share}


def _fingerprint(case: RecommendationCase) -> dict[str, object]:
    config = case.picked or case.config
    known = case.layout.recordings[0] if config is None else case.layout.recorded(config)
    return dict(known.table.fingerprint)


def _results(case: RecommendationCase) -> Record:
    """The part of the document that is a comparison's, for reports."""
    dataset, board = case.source.dataset, case.board
    judged, tests = len(case.queries), board.comparisons(case.seed)
    return {
        "dataset": {
            **described(dataset),
            "queries": len(dataset.queries) - dataset.set_apart,
            "judged": judged,
        },
        "split": "all",
        "limit": case.limit,
        "intents": case.source.intents,
        "dialect": DIALECT,
        "model": case.source.model,
        "recipe": case.source.recipe,
        "notices": [
            *([case.model_told] if case.model_told else []),
            *dataset.notices,
            *unstated(dataset.sampled, dataset.pool),
            *_warnings(case, tests),
            *case.layout.skipped,
            *said_of_idle(case.tried.idle, case.picked),
            *case.tried.left_out,
        ],
        "primary": str(case.metric),
        "baseline": board.current.label,
        "configurations": [place.about() for place in board.places],
        "results": board.results(),
        "comparisons": tests,
        "per_query": query_rows(case.queries, {one.label: one.values[case.metric] for one in board.places}),
        "rankings": _rankings(case),
        "tuning": None,
    }


def _warnings(case: RecommendationCase, tests: Sequence[Record]) -> list[str]:
    places = case.board.places
    values, judged = (
        {one.label: one.values[metric] for one in places if metric in one.values}
        for metric in (case.metric, JUDGED)
    )
    near = alike(case.source.dataset, case.queries)
    return warnings(case.queries, values, judged, case.board.current.label, tests, case.source.model, near)


def _rankings(case: RecommendationCase) -> Record:
    """The lists of the current configuration, of the one that was decided on, then of the others, best first."""
    board = case.board
    places = {place.label: place for place in board.places}
    picked = [label for label, place in places.items() if place.config and place.config == case.picked]
    means = {label: float(place.values[case.metric].mean()) for label, place in places.items()}
    made = [
        (label, partial(_listed, case, places[label])) for label in ordered(means, [board.current.label, *picked])
    ]
    return rankings(case.source.dataset, case.queries, made)


def _listed(case: RecommendationCase, place: Place) -> ShownLists:
    if place.config is None:
        return case.current.lists
    return lists_of(case.layout.replayed(place.config), place.config)


def _command(case: RecommendationCase) -> str | None:
    """The command that recommends the same; None where something of it is known in Python alone."""
    used = case.used
    word = used.source if isinstance(used, ListContender) else used.label
    if isinstance(used, ListContender) and used.kind not in ("run", "endpoint"):
        return None
    options = {"--current": word, "--metric": str(case.metric), "--limit": case.limit, "--seed": case.seed or None}
    options |= {"--model-labels": case.model and case.model.path, **case.restriction.options}
    return spelled("recommend", case.source.dataset, options={**options, **case.source.options})
