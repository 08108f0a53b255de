"""The evidence for a choice: in sample, out of fold, on the holdout; the verdict, and what is written of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import numpy as np

from steelyard import __version__
from steelyard.config import SearchConfig
from steelyard.errors import ConfigError, shown
from steelyard.fields import parse_number
from steelyard.files import canonical
from steelyard.query import Query
from steelyard.table import Floats, Indices
from steelyard_eval.datasets.groups import unit_numbers, units
from steelyard_eval.exact.curve import Curve
from steelyard_eval.measures.statistics import ALPHA, compare_paired, mean_interval
from steelyard_eval.progress import bar
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.select import recorded_lists
from steelyard_eval.tune.brief import brief
from steelyard_eval.tune.choice import Choice
from steelyard_eval.tune.task import Task

FOLDS = 5
POINTS = 400
Record = dict[str, Any]


@dataclass(frozen=True)
class Folded:
    """The objective of every tuning query under the setting chosen without its fold, and how many folds."""

    values: Floats
    folds: int


def folds(queries: Sequence[Query], seed: int) -> Indices:
    """int64[Q]: queries of one group share a fold, groups are dealt by a seeded shuffle."""
    group = unit_numbers(queries)
    dealt: Indices = np.random.default_rng(seed).permutation(int(group.max()) + 1) % FOLDS
    return dealt[group]


def out_of_fold(task: Task) -> Folded | None:
    """Every choice, of setting, weights and tie, is made anew without the fold. None when it was broken off."""
    fold = np.concatenate((folds(task.tuned_on, task.seed), np.full(len(task.held_out), -1)))
    result = np.empty(len(fold))
    try:
        for left_out in bar("cross-validation")(np.unique(fold[fold >= 0]).tolist()):
            rest = (fold >= 0) & (fold != left_out)
            chosen = task.chooser.choose(rest, proof=False).config if rest.any() else task.config
            result[fold == left_out] = task.values(chosen)[fold == left_out]
    except KeyboardInterrupt:
        return None
    return Folded(result[fold >= 0], len(np.unique(fold[fold >= 0])))


def judge(
    task: Task, choice: Choice, folded: Folded | None, now: Callable[[], float]
) -> tuple[Record, SearchConfig]:
    """The JSON document of a tuning, and the configuration for its weights file."""
    tuned, current = task.values(choice.config), task.values(task.config)
    gain = held_out_gain(task, tuned, current)
    ship = bool(choice.config != task.config and folded and gain["low"] > 0 and gain["p"] < ALPHA)
    # Shortened, they rank every query of the recording as before, so all numbers here stand for them.
    chosen, best, current_one = (brief(task.table, one) for one in (choice.config, choice.optimum, task.config))
    written = chosen if ship else task.config
    out = _interval(folded.values, task.tuned_on, task.seed) if folded else None
    inside = {name: _inside(task, values) for name, values in (("tuned", tuned), ("current", current))}
    outside = {name: _outside(task, values) for name, values in (("tuned", tuned), ("current", current))}
    document = {
        "schema_version": 1,
        "dataset": task.dataset.name,
        "dataset_sha256": task.dataset.sha256,
        "limit": task.config.limit,
        "system": task.config.system,
        "profile": task.config.profile,
        "objective": str(task.measure),
        "strategy": str(written.strategy),
        "tuned": str(chosen.strategy),
        "current": str(current_one.strategy),
        "depths": {"strategy": written.depths, "tuned": choice.config.depths, "current": task.config.depths},
        "value": inside["tuned"]["value"],
        "optimum": {
            "strategy": str(best.strategy),
            "depths": choice.optimum.depths,
            "value": choice.best,
            "bound": choice.bound,
        },
        "certificate": choice.certificate,
        "plateau": list(choice.plateau),
        "in_sample": inside["tuned"],
        "out_of_fold": out,
        "holdout": outside["tuned"],
        "baseline": outside["current"],
        "gain": gain,
        "optimism": inside["tuned"]["value"] - out["value"] if out else None,
        "verdict": "ship" if ship else "keep-default",
        "whole": folded is not None,
        "looks": choice.looks,
        "embedding_calls": {
            "queries": len(task.table.queries),
            "current": _calls(task, task.config),
            "tuned": _calls(task, choice.config),
        },
        "curve": curve_of(task, choice.config),
    }
    # The file vouches for the strategy in it: under keep-default nothing was chosen, so nothing is optimistic.
    kept: Record = {
        "in_sample": inside["current"],
        "out_of_fold": inside["current"],
        "holdout": outside["current"],
    }
    kept |= {"optimism": 0.0, "plateau": []}
    vouched = {name: document[name] for name in kept} if ship else kept
    shared = {name: document[name] for name in ("baseline", "objective", "verdict", "certificate")}
    facts = _facts(task, now) | {"folds": folded.folds if folded else 0}
    return document, replace(written, provenance={**vouched, **shared, **facts})


def held_out_gain(task: Task, tuned: Floats, current: Floats) -> Record:
    """The gain of one setting over another on the held-out queries, with its interval and sign-flip p.

    `tuned` and `current` are float64[Q]. The interval alone would ship on a single query, whose interval is a
    point; p cannot.
    """
    out = ~task.inside
    found = compare_paired(tuned[out], current[out], units(task.held_out), seed=task.seed)
    return {"value": found.delta, "low": found.low, "high": found.high, "p": found.p, "queries": int(out.sum())}


def _inside(task: Task, values: Floats) -> Record:
    return _interval(values[task.inside], task.tuned_on, task.seed)


def _outside(task: Task, values: Floats) -> Record:
    return _interval(values[~task.inside], task.held_out, task.seed)


def _interval(values: Floats, queries: Sequence[Query], seed: int) -> Record:
    found = mean_interval(values, units(queries), seed=seed)
    return {"value": found.mean, "low": found.low, "high": found.high, "queries": len(values)}


def _calls(task: Task, config: SearchConfig) -> int | None:
    """How many of the queries live search would embed; None where lists of other engines were recorded."""
    if recorded_lists(task.table) is not None:
        return None
    return int(replay(task.table, config).embedded.sum())


def _facts(task: Task, now: Callable[[], float]) -> Record:
    """Where a weights file comes from."""
    return {
        "dataset": task.dataset.name,
        "dataset_sha256": task.dataset.sha256,
        "fingerprint": sha256(canonical(dict(task.table.fingerprint)).encode()).hexdigest(),
        "seed": task.seed,
        "learned_from": "labels",
        "tool": f"steelyard {__version__}",
        "date": _date(now),
    }


def _date(now: Callable[[], float]) -> str:
    """Today, or the day of SOURCE_DATE_EPOCH, for reproducible files."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        return datetime.fromtimestamp(parse_number(epoch) if epoch else now(), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise ConfigError(f"SOURCE_DATE_EPOCH {shown(epoch)} is no time in seconds; unset it") from None


def curve_of(task: Task, config: SearchConfig) -> list[dict[str, float]]:
    """The objective along the first weight, the others of its sum in proportion: a point a step, thinned."""
    candidate = task.candidate(config)
    if not candidate.branches:
        return []
    own = candidate.branches[0]
    first = int(own[0])
    line = candidate.line_of(own, first, candidate.start)
    return steps_of(line.curve(task.inside), float(candidate.total[first]))


def steps_of(curve: Curve, total: float) -> list[dict[str, float]]:
    """Weights, as shares of a total, and values of a curve: one point in each of its `POINTS` widest steps."""
    middles = (curve.edges[:-1] + curve.edges[1:]) / 2
    wide = np.flatnonzero(curve.wide)
    kept = np.sort(wide[np.argsort(-np.diff(curve.edges)[wide], kind="stable")[:POINTS]])
    return [{"weight": total * float(middles[at]), "value": float(curve.values[at])} for at in kept]
