"""A tuning as a document: the decision of the rule, and what it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from steelyard import __version__
from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import changes
from steelyard.fusion.signal import Signal
from steelyard.systems import written_name
from steelyard_eval.common.documents.parts import CurveAxis, CurvePoint, CurveRecord, Estimate, HeldOutGain
from steelyard_eval.common.documents.tuning import QueriesPart, TuningDocument
from steelyard_eval.datasets.groups import questions, unit_numbers
from steelyard_eval.decide.decision import Decision, decide
from steelyard_eval.decide.promise import FEWEST, usual_over
from steelyard_eval.decide.provenance import decided, estimate, origin, vouched
from steelyard_eval.decide.refusal import Refusal, Side, refusal
from steelyard_eval.decide.rule import ONE_STRATEGY, Evidence, doubt
from steelyard_eval.decide.wording import answer_of, is_stated, named
from steelyard_eval.measures.metrics import parse_measures
from steelyard_eval.measures.statistics import compare_paired, mean_interval
from steelyard_eval.recording.rankings import ShownLists, lists_of, query_rows, rankings, spelled
from steelyard_eval.recording.select import intents_of, only, recorded_lists
from steelyard_eval.tune.candidate import Candidate
from steelyard_eval.tune.restriction import NONE, Favourite, Restriction, Toll
from steelyard_eval.tune.task import Task
from steelyard_eval.tune.weight_rounding import in_two_digits
from steelyard_eval.tune.written import as_chosen, idle_signals, said_of_idle
from steelyard_eval.weights.exact.curve import Curve

POINTS = 400
BESIDE = parse_measures(["R@10", "RR@10"])


@dataclass(frozen=True)
class TuningDecision:
    """What was decided for a task, and on what."""

    task: Task
    restriction: Restriction = NONE
    free: TuningDecision | None = None
    """The same without the restriction, where there is one."""

    def restricted(self, restriction: Restriction) -> TuningDecision:
        """The same over the candidates that may be chosen; ConfigError where none is left."""
        if not restriction:
            return self
        kept = restriction.allowed(self.task, self.task.space, self.task.tuned_on)
        return replace(self, task=self.task.only(kept), restriction=restriction, free=self)

    @cached_property
    def decision(self) -> Decision:
        """Ship, try or keep."""
        task = self.task
        return decide(self.evidence, ONE_STRATEGY, task.seed, self._gain, usual_over(task.config), self._refusal)

    def _gain(self, candidate: int) -> Floats:
        """float64[n]: the differences of a candidate, by replay."""
        values = self.task.values(self.task.grid.config(candidate))
        return np.asarray((values - self._base)[self.task.inside], dtype=np.float64)

    @cached_property
    def _base(self) -> Floats:
        return self.task.values(self.task.config)

    @cached_property
    def evidence(self) -> Evidence:
        """That of the queries to tune on."""
        return self.task.evidence.on(self.task.inside)

    def _refusal(self, candidate: int) -> Refusal | None:
        """Why a candidate cannot ship, whatever the figures say."""
        task, config = self.task, self.task.grid.config(candidate)
        alone = {name: task.config.with_strategy(Signal(name)) for name in sorted(config.effective.retrievers())}
        return refusal(
            task.dataset,
            task.measure,
            self._side("current setting", task.config),
            self._side(str(config.effective), config),
            (self._side(name, setting) for name, setting in alone.items()),
            lambda differences: doubt(self.evidence, candidate, differences),
        )

    def _side(self, label: str, config: SearchConfig) -> Side:
        """What a setting shows of the labels of the queries to tune on."""
        count = len(self.task.tuned_on)
        known = self.task.recorded(config)
        table = only(known.table, known.table.queries[:count])
        return Side.replayed(label, config, table, known.judgments.slice(0, count), self.task.measure)

    @cached_property
    def picked(self) -> SearchConfig:
        """The configuration that was decided on, with rounded weights: the current one under keep."""
        candidate = self.decision.candidate
        if candidate is None:
            return self.task.config
        return self._written(candidate)

    def _written(self, candidate: int) -> SearchConfig:
        """A candidate as short as the target still expresses it."""
        full = self.task.grid.config(candidate)
        for draft in (as_chosen(self.task.recorded(full).table, full, self._means), full):
            rounded = in_two_digits(draft, self._means)
            if not self.restriction.lost(rounded):
                return rounded
        return full

    @cached_property
    def barred(self) -> str:
        """Why the current configuration may not be chosen; empty where it may."""
        return self.restriction.barred(self.task, self.task.space, self.task.tuned_on, self.task.config)

    @cached_property
    def toll(self) -> Toll | None:
        """What the restriction costs; None without one."""
        if self.free is None:
            return None
        without, within = self.free._favourite(False), self._favourite(bool(self.barred))
        counts = len(self.task.grid), len(self.free.task.grid)
        return Toll(self.restriction, without, within, self.evidence, str(self.task.measure), counts, self.barred)

    def _favourite(self, always: bool) -> Favourite:
        formula = named(self._written(int(np.argmax(self.evidence.of_composite.mean))))
        usual = usual_over(self.task.config)
        return Favourite.of(formula, self.evidence, self.task.seed, self._gain, usual, always)

    @property
    def instead(self) -> SearchConfig | None:
        """Under keep, the best that may be chosen where the current configuration may not."""
        if self.decision.candidate is not None or self.free is None or not self.barred:
            return None
        return self._written(int(np.argmax(self.evidence.of_composite.mean)))

    def _means(self, config: SearchConfig) -> Floats:
        """float64[M]: the mean of the objective, and of the metrics that stand beside it everywhere."""
        task = self.task
        values = task.replayed(config).metrics(task.recorded(config).judgments, [task.measure, *BESIDE])
        return np.array([column[task.inside].mean() for column in values.values()])

    @property
    def written(self) -> SearchConfig:
        """What the weights file holds."""
        return self.picked if self.decision.verdict == "ship" else self.task.config


def judge(
    tuning: TuningDecision, now: Callable[[], float]
) -> tuple[TuningDocument, SearchConfig, SearchConfig | None]:
    """The JSON document of a tuning, the configuration for its weights file, and under try the one to be tried."""
    task, decision, picked = tuning.task, tuning.decision, tuning.picked
    tuned, current = task.values(picked), task.values(task.config)
    count = len(task.tuned_on)
    asked = questions(task.tuned_on)
    stated = is_stated(decision, asked, FEWEST)
    inside = {name: _inside(task, values) for name, values in (("tuned", tuned), ("current", current))}
    written = tuning.instead if decision.candidate is None else picked
    formula = named(written) if written else ""
    of = task.dataset, "current setting", str(task.measure)
    answer = answer_of(decision, *of, asked, FEWEST, formula, task.model)
    document: TuningDocument = {
        "schema_version": 1,
        "tool": f"steelyard {__version__}",
        "command": _command(task, tuning.restriction),
        "dataset": task.dataset.name,
        "dataset_sha256": task.dataset.sha256,
        "limit": task.config.limit,
        "intents": intents_of(task.dataset, task.table),
        "system": task.config.system,
        "profile": task.config.profile,
        "objective": str(task.measure),
        "strategy": str(tuning.written.strategy),
        "tuned": str(picked.strategy),
        "current": str(task.config.strategy),
        "dropped": [str(change) for change in changes(task.config.strategy, picked.strategy) if change.dropped],
        "notices": [*said_of_idle(idle_signals(task.table, task.config.effective), picked), *task.notices],
        "depths": {"strategy": tuning.written.depths, "tuned": picked.depths, "current": task.config.depths},
        "value": inside["tuned"]["value"],
        "plateau": list(task.candidate(picked).plateau(task.inside)),
        "in_sample": inside["tuned"],
        "baseline": inside["current"],
        "holdout": held_out_gain(task, tuned, current),
        "optimism": inside["tuned"]["value"] - inside["current"]["value"] - decision.gain.mean,
        "embedding_calls": {
            "queries": len(task.table.queries),
            "current": _calls(task, task.config),
            "tuned": _calls(task, picked),
        },
    }
    document = {
        **document,
        **(answer if tuning.toll is None else tuning.toll.beside(answer, decision.verdict)).to_json(),
        **decided(decision, str(task.measure), count, stated),
        **curve_of(task.candidate(picked), task.inside, task.candidate(task.config)),
        **_queries(tuning),
    }
    if tuning.toll is not None:
        document["restriction"] = tuning.toll.to_json()
    facts = origin(task.dataset, task.table.fingerprint, task.seed, now)
    shared = {
        "baseline": inside["current"],
        "objective": document["objective"],
        "verdict": decision.verdict,
        "promise": document["promise"],
    }
    # The file vouches for the strategy in it: under try and keep that is the current one.
    kept = replace(task.config, provenance={**facts, **shared, "in_sample": inside["current"], "plateau": []})
    known = {
        "in_sample": inside["tuned"],
        "plateau": document["plateau"],
        "optimism": document["optimism"],
    }
    chosen = vouched(picked, {**facts, **shared, **known})
    if decision.verdict == "ship":
        return document, chosen, None
    instead = tuning.instead and vouched(tuning.instead, facts)
    return document, kept, chosen if decision.verdict == "try" else instead


def _command(task: Task, restriction: Restriction) -> str | None:
    """The command that tunes the same; None where the data set is in memory alone."""
    config = task.config
    system = None if recorded_lists(task.table) is not None else written_name(config)
    options = {"--system": system, "--strategy": str(config.strategy)}
    shared = {"--metric": str(task.measure), "--limit": config.limit, "--seed": task.seed or None}
    return spelled("tune", task.dataset, options={**options, **shared, **restriction.options, **task.origin})


def held_out_gain(task: Task, tuned: Floats, current: Floats) -> HeldOutGain | None:
    """The gain of one setting over another on the held-out queries, with interval and sign-flip p; None without
    any.

    `tuned` and `current` are float64[Q].
    """
    out = ~task.inside
    if not out.any():
        return None
    gain = compare_paired(tuned[out], current[out], unit_numbers(task.held_out).tolist(), seed=task.seed)
    return {**estimate(gain.interval, int(out.sum()), least=-1.0), "p": gain.p}


def _inside(task: Task, values: Floats) -> Estimate:
    inside = values[task.inside]
    return estimate(mean_interval(inside, unit_numbers(task.tuned_on).tolist()), len(inside))


def _calls(task: Task, config: SearchConfig) -> int | None:
    """How many of the queries live search would embed; None where lists of other engines were recorded."""
    if recorded_lists(task.table) is not None:
        return None
    return int(task.replayed(config).embedded.sum())


def curve_of(candidate: Candidate, queries: Bools, current: Candidate | None = None) -> CurveRecord:
    """The objective along the first weight that moves, the others of its sum in proportion.

    `curve` has the widest steps; it is empty where nothing moves. `axis` names the weight, where the
    candidate has it and, where the current setting has the same columns, what that would be in the same sum.
    """
    if not candidate.branches:
        return {"curve": [], "axis": None}
    branch = candidate.branches[0]
    first = int(branch[0])
    total = float(candidate.total[first])
    names = _names(candidate, branch)
    axis: CurveAxis = {
        "signal": names[0],
        "others": names[1:],
        "chosen": total * float(candidate.start[first]),
        "current": None if current is None else _share(current, names, total),
    }
    line = candidate.line_of(branch, first)
    return {"curve": steps_of(line.curve(queries), total), "axis": axis}


def _names(candidate: Candidate, branch: Indices) -> list[str]:
    return [candidate.form.labels[column] for column in branch]


def _share(current: Candidate, names: list[str], total: float) -> float | None:
    """The first weight of the current sum of the same columns, if there is one, as a part of another total."""
    for branch in current.branches:
        if _names(current, branch) == names:
            return total * float(current.start[branch[0]])
    return None


def _queries(tuning: TuningDecision) -> QueriesPart:
    """Values and lists of the current and of the chosen setting, on every query; nothing where they are one."""
    task, picked = tuning.task, tuning.picked
    if picked == task.config:
        return {}
    sides = {"current": task.config, "chosen": picked}
    lists = [(label, partial(_listed, task, config)) for label, config in sides.items()]
    return {
        "per_query": query_rows(task.queries, {label: task.values(config) for label, config in sides.items()}),
        "rankings": rankings(task.dataset, task.queries, lists),
    }


def _listed(task: Task, config: SearchConfig) -> ShownLists:
    return lists_of(task.replayed(config), config)


def steps_of(curve: Curve, total: float) -> list[CurvePoint]:
    """The `POINTS` widest steps of a curve: weights at their middle and ends, as shares of a total, and values."""
    wide = np.flatnonzero(curve.wide)
    kept = np.sort(wide[np.argsort(-np.diff(curve.edges)[wide], kind="stable")[:POINTS]])
    lows, highs = total * curve.edges[kept], total * curve.edges[kept + 1]
    steps = zip(
        ((lows + highs) / 2).tolist(), lows.tolist(), highs.tolist(), curve.values[kept].tolist(), strict=True
    )
    return [{"weight": middle, "low": low, "high": high, "value": value} for middle, low, high, value in steps]
