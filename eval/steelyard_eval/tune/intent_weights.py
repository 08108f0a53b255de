"""Weights by intent, pulled to those of all queries: an intent with few labels has little to say for itself.

The weights of an intent with n queries become ``(n * own + M * common) / (n + M)``: own is its optimum, common
that of all queries under one set of weights, and M says how many queries common is worth. It is the mean of a
group shrunk to that of all groups (James and Stein, 1961), with a fixed M.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.fusion import Expr
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.weights.exact.objective import Objective
from steelyard_eval.weights.exact.optimise import BestFound, optimise
from steelyard_eval.weights.kernel import Form

M = 20
"""An intent with so many labelled queries counts half."""


def alike(strategy: Expr, form: Form, branches: Sequence[Indices]) -> bool:
    """Whether a strategy weighs the same signals for several intents."""
    named = {tuple(form.labels[column] for column in own) for own in branches}
    return strategy.by_query and len(branches) > 1 and len(named) == 1


def shrunk(
    form: Form, branches: Sequence[Indices], found: BestFound, measure: Measure, seed: int, queries: Bools
) -> BestFound:
    """What was found for each intent, pulled to what is best for all the queries where bool[Q] is true."""
    pooled = _pooled(form, branches)
    start = np.append(found.weights[branches[0]], pooled.weights[len(branches[0]) :])
    common = optimise(pooled, measure, start, seed, queries, nodes=0)
    counts = _queries_of(form, branches, queries)
    weights = found.weights.copy()
    for own, count in zip(branches, counts, strict=True):
        weights[own] = (count * found.weights[own] + M * common.weights[: len(own)]) / (count + M)
    value = Objective.of(form, measure, queries).mean(weights)
    looks = found.evaluations + common.evaluations
    return replace(found, weights=weights, value=value, certificate="best-found", plateau=(), evaluations=looks)


def _pooled(form: Form, branches: Sequence[Indices]) -> Form:
    """The form under one set of weights, the columns that do not move behind them.

    A row has columns in one branch only, so those of the branches add up to one.
    """
    columns: Floats = np.sum([form.columns[own] for own in branches], axis=0)
    first, fixed = branches[0], np.setdiff1d(np.arange(len(form.weights)), np.concatenate(branches))
    kept = np.append(first, fixed)
    return replace(
        form,
        columns=np.vstack([columns, form.columns[fixed]]),
        labels=tuple(form.labels[column] for column in kept),
        branch=np.append(np.zeros(len(first), dtype=np.int64), 1 + form.branch[fixed]),
        weights=form.weights[kept],
        slot=np.append(form.slot[first], np.full(len(fixed), -1)),
    )


def _queries_of(form: Form, branches: Sequence[Indices], queries: Bools) -> list[int]:
    """How many of the queries each branch ranks."""
    query = np.repeat(np.arange(form.queries), np.diff(form.offsets))
    ranked = [np.unique(query[(form.columns[own] != 0).any(axis=0)]) for own in branches]
    return [int(queries[own].sum()) for own in ranked]
