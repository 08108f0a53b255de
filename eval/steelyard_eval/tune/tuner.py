"""Tuning as a claim with its proof: in sample, out of fold, on the holdout, and what follows from it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard import __version__
from steelyard.config import SearchConfig
from steelyard.entry import Query
from steelyard.errors import ConfigError
from steelyard.files import canonical
from steelyard.fusion import Expr, parse_strategy
from steelyard.systems import find_system
from steelyard.table import Bools, Floats, SignalTable
from steelyard_eval.contenders import Contender, usable
from steelyard_eval.datasets import Dataset, tuning_queries
from steelyard_eval.kernel import Form
from steelyard_eval.metrics import Judgments, Measure, parse_measures
from steelyard_eval.progress import bar
from steelyard_eval.record import record
from steelyard_eval.replay import replay
from steelyard_eval.stats import ALPHA, compare_paired, mean_interval
from steelyard_eval.tune.ascent import line_of
from steelyard_eval.tune.choice import Choice, Chooser
from steelyard_eval.tune.curve import Curve
from steelyard_eval.tune.objective import Objective
from steelyard_eval.tune.optimise import movable, on_simplices
from steelyard_eval.tune.shapes import shapes
from steelyard_eval.tune.sweep import segment
from steelyard_eval.workspace import Workspace, judged

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FOLDS = 5
POINTS = 400


@dataclass(frozen=True, repr=False)
class Tuning:
    """What tuning found. `record` is the JSON document; `config` is what a weights file should hold."""

    record: Mapping[str, Any]
    config: SearchConfig

    def to_json(self) -> dict[str, Any]:
        """The document, as plain JSON values."""
        return dict(self.record)

    def to_frame(self) -> pd.DataFrame:
        """A row an estimate: in sample, out of fold, holdout, baseline."""
        import pandas as pd

        names = ("in_sample", "out_of_fold", "holdout", "baseline", "gain")
        return pd.DataFrame([{"estimate": name, **self.record[name]} for name in names])

    def __repr__(self) -> str:
        return f"Tuning({self.record['verdict']}: {self.record['strategy']})"

    def _repr_html_(self) -> str:
        import html

        table: str = self.to_frame().to_html(index=False, float_format=lambda value: f"{value:.4f}")
        verdict, strategy = html.escape(self.record["verdict"]), html.escape(self.record["strategy"])
        return f"<p><b>{verdict}</b>: <code>{strategy}</code></p>{table}"

    def plot(self) -> Figure:
        """The objective along the weight, where there is one."""
        from steelyard_eval.plots import curve

        return curve(self.record["curve"], self.record["objective"], "weight of the first signal")


def tune(
    dataset: Dataset,
    system: str = "plain",
    strategy: str | None = None,
    *,
    metric: str = "nDCG@10",
    limit: int | None = None,
    embedder: str = "auto",
    seed: int = 0,
    workspace: Workspace | None = None,
    now: Callable[[], float] = time.time,
) -> Tuning:
    """Search the best setting and say whether it should replace the current one.

    Tuned on train, else dev, else a seeded 80%; held out test, else the rest. The verdict is `ship`
    when the gain on the held-out queries lies above 0, by its interval and by a sign-flip test at 5%,
    else `keep-default`. Ctrl-C ends the search with the best found so far, which is not proven and so not
    shipped. Raises ConfigError when the strategy has nothing to tune or no judged queries are left.
    """
    task = prepare(dataset, system, strategy, metric, limit, embedder, seed, workspace)
    chooser = task.chooser()
    choice = chooser.choose(task.inside, bar("tuning"))
    return _judge(task, choice, _out_of_fold(task, chooser) if choice.whole else None, now)


@dataclass(frozen=True)
class Task:
    """A recording of the queries to tune on, which come first, and of those held out."""

    dataset: Dataset
    config: SearchConfig
    table: SignalTable
    judgments: Judgments
    measure: Measure
    tuned_on: Sequence[Query]
    held_out: Sequence[Query]
    seed: int

    @property
    def inside(self) -> Bools:
        """bool[Q]: the queries to tune on."""
        return np.arange(len(self.table.queries)) < len(self.tuned_on)

    def chooser(self) -> Chooser:
        """What chooses among the shapes of the configuration's strategy."""
        queries = (*self.tuned_on, *self.held_out)
        return Chooser(
            self.table,
            self.config,
            shapes(self.config.strategy),
            self.judgments,
            self.measure,
            group_numbers(queries),
            self.seed,
        )

    def values(self, strategy: Expr) -> Floats:
        """float64[Q]: the objective of a strategy on every query, by replay."""
        run = replay(self.table, self.config.with_strategy(strategy))
        return run.metrics(self.judgments, [self.measure])[self.measure]


def prepare(
    dataset: Dataset,
    system: str,
    strategy: str | None,
    metric: str,
    limit: int | None,
    embedder: str,
    seed: int,
    workspace: Workspace | None = None,
) -> Task:
    """Record what tuning needs; see `tune` for the arguments and errors."""
    measure = parse_measures([metric])[0]
    space = workspace or Workspace.open(dataset, embedder)
    preset = find_system(system)
    config = preset.config(limit or measure.cutoff or preset.limit, space.model)
    if strategy is not None:
        config = config.with_strategy(parse_strategy(strategy))
    config = usable(space, Contender(system, config, "system"))[0].config
    shapes(config.strategy)  # refuses one without parameters before anything is recorded
    tuned_on, held_out = (judged(dataset, part) for part in tuning_queries(dataset, seed))
    if not tuned_on or not held_out:
        raise ConfigError(f"{dataset.name}: tuning needs judged queries to tune on and to hold out; add some")
    table = record(space, (*tuned_on, *held_out), [config])
    judgments = Judgments.of(dataset.qrels, table.queries, table.entries)
    return Task(dataset, config, table, judgments, measure, tuned_on, held_out, seed)


def group_numbers(queries: Sequence[Query]) -> NDArray[np.int64]:
    """int64[Q]: a number for the group of each query; a query without one is a group of its own."""
    known: dict[str, int] = {}
    return np.array([known.setdefault(q.group or f"query {q.id}", len(known)) for q in queries], dtype=np.int64)


def _folds(queries: Sequence[Query], seed: int) -> NDArray[np.int64]:
    """Fold of every query; queries of one group share a fold, groups are dealt by a seeded shuffle."""
    group = group_numbers(queries)
    dealt = np.random.default_rng(seed).permutation(int(group.max()) + 1) % FOLDS
    folds: NDArray[np.int64] = dealt[group]
    return folds


def _out_of_fold(task: Task, chooser: Chooser) -> tuple[Floats, int] | None:
    """The objective of every tuning query under the setting chosen without its fold, and how many folds.

    Every choice, of shape, weights and tie, is made anew inside the fold. None when it was broken off.
    """
    fold = np.concatenate((_folds(task.tuned_on, task.seed), np.full(len(task.held_out), -1)))
    result = np.empty(len(fold))
    try:
        for left_out in bar("cross-validation")(np.unique(fold[fold >= 0]).tolist()):
            rest = (fold >= 0) & (fold != left_out)
            chosen = chooser.choose(rest).strategy if rest.any() else task.config.strategy
            result[fold == left_out] = task.values(chosen)[fold == left_out]
    except KeyboardInterrupt:
        return None
    return result[fold >= 0], len(np.unique(fold[fold >= 0]))


def _gain(task: Task, tuned: Floats, current: Floats) -> dict[str, Any]:
    """The held-out gain over the current setting, with its interval and sign-flip p.

    The interval alone would ship on a single query, whose interval is a point; p cannot.
    """
    found = compare_paired(tuned, current, _units(task.held_out), seed=task.seed)
    return {"value": found.delta, "low": found.low, "high": found.high, "p": found.p, "queries": len(tuned)}


def _judge(task: Task, choice: Choice, folded: tuple[Floats, int] | None, now: Callable[[], float]) -> Tuning:
    current = task.config.strategy
    values = {"tuned": task.values(choice.strategy), "current": task.values(current)}
    gain = _gain(task, values["tuned"][~task.inside], values["current"][~task.inside])
    ship = bool(choice.strategy != current and folded and gain["low"] > 0 and gain["p"] < ALPHA)
    inside = {name: _interval(found[task.inside], task.tuned_on, task.seed) for name, found in values.items()}
    outside = {name: _interval(found[~task.inside], task.held_out, task.seed) for name, found in values.items()}
    out_of_fold = _interval(folded[0], task.tuned_on, task.seed) if folded else None
    optimism = inside["tuned"]["value"] - out_of_fold["value"] if out_of_fold else None
    written = choice.strategy if ship else current
    verdict = "ship" if ship else "keep-default"
    document = {
        "schema_version": 1,
        "system": task.config.system,
        "profile": task.config.profile,
        "objective": str(task.measure),
        "strategy": str(written),
        "tuned": str(choice.strategy),
        "current": str(current),
        "value": inside["tuned"]["value"],
        "optimum": {"strategy": str(choice.optimum), "value": choice.best, "bound": choice.bound},
        "certificate": choice.certificate,
        "plateau": list(choice.plateau),
        "in_sample": inside["tuned"],
        "out_of_fold": out_of_fold,
        "holdout": outside["tuned"],
        "baseline": outside["current"],
        "gain": gain,
        "optimism": optimism,
        "verdict": verdict,
        "whole": folded is not None,
        "looks": choice.looks,
        "embedding_calls": {
            "queries": len(task.table.queries),
            "current": _calls(task, current),
            "tuned": _calls(task, choice.strategy),
        },
        "curve": curve_of(task, choice.strategy),
    }
    # The file vouches for the strategy in it: under keep-default nothing was chosen, so nothing is optimistic.
    kept = {"in_sample": inside["current"], "out_of_fold": inside["current"], "holdout": outside["current"]}
    vouched = {name: document[name] for name in kept} if ship else kept
    provenance = {
        **vouched,
        "baseline": outside["current"],
        "dataset": task.dataset.name,
        "dataset_sha256": task.dataset.sha256,
        "fingerprint": sha256(canonical(dict(task.table.fingerprint)).encode()).hexdigest(),
        "objective": str(task.measure),
        "seed": task.seed,
        "folds": folded[1] if folded else 0,
        "optimism": optimism if ship else 0.0,
        "verdict": verdict,
        "certificate": choice.certificate,
        "plateau": list(choice.plateau) if ship else [],
        "learned_from": "labels",
        "tool": f"steelyard {__version__}",
        "date": _date(now),
    }
    return Tuning(document, replace(task.config.with_strategy(written), provenance=provenance))


def _calls(task: Task, strategy: Expr) -> int:
    """How many of the queries live search would embed."""
    return int(replay(task.table, task.config.with_strategy(strategy)).embedded.sum())


def _units(queries: Sequence[Query]) -> list[str] | None:
    """What is resampled: the group of a query where queries have one."""
    return [q.group or f"query {q.id}" for q in queries] if any(q.group for q in queries) else None


def _interval(values: Floats, queries: Sequence[Query], seed: int) -> dict[str, Any]:
    found = mean_interval(values, _units(queries), seed=seed)
    return {"value": found.mean, "low": found.low, "high": found.high, "queries": len(values)}


def curve_of(task: Task, strategy: Expr) -> list[dict[str, float]]:
    """The objective along the first weight, the others of its sum in proportion: a point a step, thinned."""
    form = Form.of(task.table, task.config, strategy, task.judgments)
    branches = movable(form)
    if not branches:
        return []
    objective = Objective.of(form, task.measure, task.inside)
    weights = on_simplices(form.weights, form, branches)
    return steps_of(segment(objective, *line_of(weights, branches[0], int(branches[0][0]))).curve())


def steps_of(curve: Curve) -> list[dict[str, float]]:
    """Weights and values of a curve, at most about `POINTS` of them: both ends of its widest steps."""
    middles = (curve.edges[:-1] + curve.edges[1:]) / 2
    wide = np.flatnonzero(curve.wide)
    kept = np.sort(wide[np.argsort(-np.diff(curve.edges)[wide], kind="stable")[:POINTS]])
    return [{"weight": float(middles[at]), "value": float(curve.values[at])} for at in kept]


def _date(now: Callable[[], float]) -> str:
    """Today, or the day of SOURCE_DATE_EPOCH, for reproducible files."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    seconds = float(epoch) if epoch.isdigit() else now()
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
