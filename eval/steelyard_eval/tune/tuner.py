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
from steelyard.fusion import Expr, Layered, Rrf, Tiered, WeightedSum, parse_strategy
from steelyard.systems import find_system
from steelyard.table import Floats, SignalTable
from steelyard_eval.contenders import Contender, usable
from steelyard_eval.datasets import Dataset, tuning_queries
from steelyard_eval.metrics import Judgments, Measure, parse_measures
from steelyard_eval.progress import bar
from steelyard_eval.record import record
from steelyard_eval.replay import replay
from steelyard_eval.stats import ALPHA, compare_paired, mean_interval
from steelyard_eval.tune.grid import settings
from steelyard_eval.workspace import Workspace, judged

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FOLDS = 5
SAME = 1e-12
"""Objective values closer than this are the same value."""


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
    """Search a grid of settings and say whether the best one should replace the current one.

    Tuned on train, else dev, else a seeded 80%; held out test, else the rest. The verdict is `ship`
    when the gain on the held-out queries lies above 0, by its interval and by a sign-flip test at 5%,
    else `keep-default`. Raises
    ConfigError when the strategy has nothing to tune or no judged queries are left.
    """
    measure = parse_measures([metric])[0]
    space = workspace or Workspace.open(dataset, embedder)
    preset = find_system(system)
    config = preset.config(limit or measure.cutoff or preset.limit, space.model)
    if strategy is not None:
        config = config.with_strategy(parse_strategy(strategy))
    config = usable(space, Contender(system, config, "system"))[0].config
    tuned_on, held_out = (judged(dataset, part) for part in tuning_queries(dataset, seed))
    if not tuned_on or not held_out:
        raise ConfigError(f"{dataset.name}: tuning needs judged queries to tune on and to hold out; add some")
    queries = (*tuned_on, *held_out)
    candidates = settings(config.strategy)
    table = record(space, queries, [config])
    values = _grid(table, config, candidates, Judgments.of(dataset.qrels, table.queries, table.entries), measure)
    return _judge(_Search(config, candidates, values, tuned_on, held_out, seed), dataset, table, measure, now)


@dataclass(frozen=True)
class _Search:
    """The objective of every setting (row 0: the current one) on every query, tuned ones first."""

    config: SearchConfig
    candidates: Sequence[Expr]
    values: NDArray[np.float64]
    tuned_on: Sequence[Query]
    held_out: Sequence[Query]
    seed: int

    @property
    def inside(self) -> NDArray[np.float64]:
        return self.values[:, : len(self.tuned_on)]

    @property
    def outside(self) -> NDArray[np.float64]:
        return self.values[:, len(self.tuned_on) :]


def _grid(
    table: SignalTable, config: SearchConfig, candidates: Sequence[Expr], judgments: Judgments, measure: Measure
) -> NDArray[np.float64]:
    """float64[settings, Q]: the objective of every setting on every query."""
    values = np.empty((len(candidates), len(table.queries)))
    for at, candidate in enumerate(bar("tuning")(candidates)):
        run = replay(table, config.with_strategy(candidate))
        values[at] = run.metrics(judgments, [measure])[measure]
    return values


def _best(means: Floats, candidates: Sequence[Expr]) -> int:
    """The setting with the highest mean; among equals the middle of the plateau nearest to setting 0."""
    top = np.flatnonzero(means >= means.max() - SAME)
    if top[0] == 0:
        return 0
    here = _numbers(candidates[0])
    away = [float(np.abs(_numbers(candidates[int(at)]) - here).sum()) for at in top]
    plateau = _plateau(means, candidates, int(top[int(np.argmin(away))]))
    return plateau[len(plateau) // 2]


def _line(candidates: Sequence[Expr], at: int) -> list[int]:
    """Settings that differ from one only in a pair of weights, by ascending first weight; itself if none."""
    own = _pair(candidates[at])
    if own is None:
        return [at]
    pairs = ((other, _pair(candidate)) for other, candidate in enumerate(candidates))
    line = [(pair[1], other) for other, pair in pairs if pair is not None and pair[0] == own[0]]
    return [other for _, other in sorted(line)]


def _plateau(means: Floats, candidates: Sequence[Expr], at: int) -> list[int]:
    """The neighbours on the line that score the same, without a gap, by ascending first weight."""
    line = _line(candidates, at)
    low = high = line.index(at)
    while low > 0 and abs(means[line[low - 1]] - means[at]) <= SAME:
        low -= 1
    while high + 1 < len(line) and abs(means[line[high + 1]] - means[at]) <= SAME:
        high += 1
    return line[low : high + 1]


def _numbers(expr: Expr) -> Floats:
    """Weights and parameters of a strategy, each on a scale of about 1, for distances."""
    found: list[float] = []
    if isinstance(expr, WeightedSum | Rrf | Layered):
        total = sum(term.weight for term in expr.terms) or 1.0
        found += [term.weight / total for term in expr.terms]
    if isinstance(expr, Rrf):
        found.append(np.log10(expr.k + 1))
    if isinstance(expr, Tiered):
        found.append(np.log10(expr.min_results + 1))
    if isinstance(expr, Layered):
        found.append(expr.threshold)
    return np.concatenate([np.array(found, dtype=np.float64), *(_numbers(child) for child in expr.children())])


def _folds(queries: Sequence[Query], seed: int) -> NDArray[np.int64]:
    """Fold of every query; queries of one group share a fold, groups are dealt by a seeded shuffle."""
    groups = {group: at for at, group in enumerate(dict.fromkeys(q.group or q.id for q in queries))}
    dealt = np.random.default_rng(seed).permutation(len(groups)) % FOLDS
    return np.array([dealt[groups[q.group or q.id]] for q in queries])


def _out_of_fold(search: _Search) -> tuple[Floats, int]:
    """The objective of every tuning query under the setting chosen without its fold, and how many folds."""
    fold = _folds(search.tuned_on, search.seed)
    result = np.empty(len(search.tuned_on))
    for left_out in np.unique(fold):
        rest = fold != left_out
        chosen = _best(search.inside[:, rest].mean(axis=1), search.candidates) if rest.any() else 0
        result[~rest] = search.inside[chosen, ~rest]
    return result, len(np.unique(fold))


def _gain(search: _Search, best: int) -> dict[str, Any]:
    """The held-out gain over the current setting, with its interval and sign-flip p.

    The interval alone would ship on a single query, whose interval is a point; p cannot.
    """
    found = compare_paired(search.outside[best], search.outside[0], _units(search.held_out), seed=search.seed)
    return {
        "value": found.delta,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "queries": len(search.held_out),
    }


def _judge(
    search: _Search, dataset: Dataset, table: SignalTable, measure: Measure, now: Callable[[], float]
) -> Tuning:
    best = _best(search.inside.mean(axis=1), search.candidates)
    out_of_fold, folds = _out_of_fold(search)
    gain = _gain(search, best)
    ship = best != 0 and gain["low"] > 0 and gain["p"] < ALPHA
    written = best if ship else 0
    inside = {at: _interval(search.inside[at], search.tuned_on, search.seed) for at in {0, best, written}}
    plateau, curve = _along(search, best)
    estimates = {
        "in_sample": inside[best],
        "out_of_fold": _interval(out_of_fold, search.tuned_on, search.seed),
        "holdout": _interval(search.outside[best], search.held_out, search.seed),
        "baseline": _interval(search.outside[0], search.held_out, search.seed),
    }
    optimism = inside[best]["value"] - estimates["out_of_fold"]["value"]
    verdict = "ship" if ship else "keep-default"
    # The file vouches for the strategy in it: under keep-default nothing was chosen, so nothing is optimistic.
    vouched = (
        estimates
        if ship
        else {
            "in_sample": inside[0],
            "out_of_fold": inside[0],
            "holdout": estimates["baseline"],
            "baseline": estimates["baseline"],
        }
    )
    provenance = {
        **vouched,
        "dataset": dataset.name,
        "dataset_sha256": dataset.sha256,
        "fingerprint": sha256(canonical(dict(table.fingerprint)).encode()).hexdigest(),
        "objective": str(measure),
        "seed": search.seed,
        "folds": folds,
        "optimism": optimism if ship else 0.0,
        "verdict": verdict,
        "certificate": "best-found",
        "plateau": plateau if ship else [],
        "learned_from": "labels",
        "tool": f"steelyard {__version__}",
        "date": _date(now),
    }
    config = search.config.with_strategy(search.candidates[written])
    document = {
        "schema_version": 1,
        "system": config.system,
        "profile": config.profile,
        "objective": str(measure),
        "strategy": str(config.strategy),
        "tuned": str(search.candidates[best]),
        "current": str(search.candidates[0]),
        "value": inside[best]["value"],
        "certificate": "best-found",
        "plateau": plateau,
        **estimates,
        "gain": gain,
        "optimism": optimism,
        "verdict": verdict,
        "settings": len(search.candidates),
        "embedding_calls": {
            "queries": len(table.queries),
            "current": _calls(table, search.config, search.candidates[0]),
            "tuned": _calls(table, search.config, search.candidates[best]),
        },
        "curve": curve,
    }
    return Tuning(document, replace(config, provenance=provenance))


def _calls(table: SignalTable, config: SearchConfig, strategy: Expr) -> int:
    """How many of the queries live search would embed."""
    return int(replay(table, config.with_strategy(strategy)).embedded.sum())


def _units(queries: Sequence[Query]) -> list[str] | None:
    """What is resampled: the group of a query where queries have one."""
    return [q.group or f"query {q.id}" for q in queries] if any(q.group for q in queries) else None


def _interval(values: Floats, queries: Sequence[Query], seed: int) -> dict[str, Any]:
    found = mean_interval(values, _units(queries), seed=seed)
    return {"value": found.mean, "low": found.low, "high": found.high, "queries": len(values)}


def _along(search: _Search, best: int) -> tuple[list[float], list[dict[str, float]]]:
    """For a strategy with one pair of weights: the ends of its plateau, and its curve over the first weight."""
    means = search.inside.mean(axis=1)
    weights = {at: pair[1] for at in _line(search.candidates, best) if (pair := _pair(search.candidates[at]))}
    if not weights:
        return [], []
    plateau = [weights[at] for at in _plateau(means, search.candidates, best)]
    curve = [{"weight": weight, "value": float(means[at])} for at, weight in weights.items()]
    return [plateau[0], plateau[-1]], curve


def _pair(expr: Expr) -> tuple[str, float] | None:
    """What stands around a two-term sum, and its first weight; None when there is no such sum."""
    if isinstance(expr, Tiered) and not expr.first.children():
        inner = _pair(expr.then)
        return (f"{expr.first} {expr.min_results} {inner[0]}", inner[1]) if inner else None
    if not isinstance(expr, WeightedSum) or len(expr.terms) != 2 or any(t.expr.children() for t in expr.terms):
        return None
    first, second = expr.terms
    total = first.weight + second.weight
    return (f"{first.expr} {second.expr} {expr.normalize}", first.weight / total) if total else None


def _date(now: Callable[[], float]) -> str:
    """Today, or the day of SOURCE_DATE_EPOCH, for reproducible files."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    seconds = float(epoch) if epoch.isdigit() else now()
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
