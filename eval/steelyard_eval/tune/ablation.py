"""What a tuned setting rests on: on which signals, on which weights, on how many labels.

Every signal is left out in turn and the rest tuned anew; every weight is followed from 0 to all of the sum, the
others in proportion; and tuning is repeated on fewer labelled queries, drawn by group.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.base.arrays import Bools, Indices
from steelyard.config.search_config import SearchConfig
from steelyard_eval.common.documents.tuning import AblationRecord, LabelsWorth, SignalWorth, WeightWorth
from steelyard_eval.common.progress_bar import bar
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.decide.rule import best
from steelyard_eval.tune.candidate import Candidate
from steelyard_eval.tune.task import Task
from steelyard_eval.tune.tuning_document import TuningDecision, held_out_gain, steps_of

SIZES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of the groups of tuning queries."""
DRAWS = 5
"""Orders in which groups are taken; the shares of one order are nested."""


def ablation(task: Task, judged: TuningDecision) -> AblationRecord:
    """The three parts as JSON values: `signals`, `weights`, `labels`."""
    return {"signals": signals(task), "weights": weights(task, judged.picked), "labels": labels(task)}


def signals(task: Task) -> list[SignalWorth]:
    """For every signal what it is worth: the best candidate with it less the best of the strategy without it.

    `in_sample` is the difference on the tuning queries, `held_out` that on the others with interval and p, null
    where nothing is held out. Both sides are the best of what was laid out, because a cautious choice would blur a
    small difference. A signal that is all the strategy has is left out of the list.
    """
    best = task.values(task.best)
    rows: list[SignalWorth] = []
    for name, rest in bar("leaving signals out")(_rests(task.config)):
        without = task.under(rest)
        values = without.values(without.best)
        rows.append(
            {
                "signal": name,
                "strategy": str(without.best.strategy),
                "in_sample": float((best - values)[task.inside].mean()),
                "held_out": held_out_gain(task, best, values),
            }
        )
    return rows


def _rests(config: SearchConfig) -> list[tuple[str, SearchConfig]]:
    """Every signal, by name, with the configuration without it, where one is left."""
    rests = {name: config.strategy.without({name}) for name in sorted(config.strategy.signals())}
    return [(name, config.with_strategy(rest)) for name, rest in rests.items() if rest is not None]


def weights(task: Task, config: SearchConfig) -> list[WeightWorth]:
    """For every weight that moves its exact curve over the tuning queries, as steps.

    `weight` is where it stands, `best` and `at` the highest value and a weight that has it, `without` and
    `alone` the values at both ends.
    """
    candidate = task.candidate(config)
    return [_curve(candidate, int(s), branch, task.inside) for branch in candidate.branches for s in branch]


def _curve(candidate: Candidate, s: int, branch: Indices, queries: Bools) -> WeightWorth:
    total = float(candidate.total[s])
    curve = candidate.line_of(branch, s).curve(queries)
    top = curve.choose(near=float(candidate.start[s]))
    return {
        "signal": candidate.form.labels[s],
        "weight": total * float(candidate.start[s]),
        "best": top.value,
        "at": total * top.t,
        "without": curve.ends[0],
        "alone": curve.ends[1],
        "curve": steps_of(curve, total),
    }


def labels(task: Task) -> list[LabelsWorth]:
    """The learning curve: chosen on ever more groups of queries, the value there and on queries not chosen for.

    Those are the held-out queries, or where there are none the rest of the tuning queries. Means over `DRAWS`
    seeded orders of the groups; `low` and `high` are the least and greatest value on the queries not chosen for.
    """
    rows: list[LabelsWorth] = []
    for share in bar("fewer labels")(SIZES):
        tried = [_tuned_on(task, subset) for subset in _subsets(task, share)]
        tried = [draw for draw in tried if draw is not None]
        if not tried:
            continue
        queries, inside, outside = np.array(tried).T
        rows.append(
            {
                "share": share,
                "queries": float(queries.mean()),
                "in_sample": float(inside.mean()),
                "held_out": float(outside.mean()),
                "low": float(outside.min()),
                "high": float(outside.max()),
            }
        )
    return rows


def _subsets(task: Task, share: float) -> Iterator[Bools]:
    """bool[Q]: the tuning queries of the first groups in each order; all orders agree on the whole."""
    groups = unit_numbers(task.queries)
    known = np.unique(groups[task.inside])
    count = max(1, round(share * len(known)))
    for draw in range(DRAWS if count < len(known) else 1):
        order = np.random.default_rng([task.seed, draw]).permutation(known)
        yield task.inside & np.isin(groups, order[:count])


def _tuned_on(task: Task, subset: Bools) -> tuple[int, float, float] | None:
    """How many queries, and the value of what is chosen for them: there, and elsewhere; None without an
    elsewhere.
    """
    elsewhere = ~task.inside if len(task.held_out) else ~subset
    if not elsewhere.any():
        return None
    chosen = best(task.evidence.on(subset))
    values = task.values(task.config if chosen is None else task.grid.config(chosen))
    return int(subset.sum()), float(values[subset].mean()), float(values[elsewhere].mean())
