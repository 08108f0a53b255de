"""One row of evidence: many splits of one collection, a choice on the labelled part, its gain on the rest.

n judged queries are drawn at random; the rest, at least 20 of them, are unseen. A table of other collections is
made of the others of the same group, never of the collection itself.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard_eval.choose.public import PriorGains
from steelyard_eval.choose.rule import (
    ALL_FAMILIES,
    ONE_STRATEGY,
    OVER_FUSION,
    OVER_RETRIEVER,
    OVER_SYSTEM,
    Expectation,
    apply_rule,
    best,
    passes_gates,
)
from steelyard_eval.choose.scored import Scored

GROUPS = {
    "chosen on": ("cacm", "cranfield", "scifact", "locomo", "madial"),
    "confirmed on": ("cisi", "vaswani", "cosqa", "beam-128k"),
}
"""The collections that the rule was chosen on, and those that it was confirmed on."""
LOSS = 0.001
USUAL = dict.fromkeys(("fts", "bm25", "vector", "cortex_mem"), OVER_RETRIEVER)
USUAL |= dict.fromkeys(("echovault", "moltnet", "soleri", "spec_kit", "echo"), OVER_SYSTEM)
"""By current configuration; others are fusions. Cortex-Mem is a search by vectors where there are no layers."""
TIMES = 5
"""How often each question is asked, where questions are repeated."""


@dataclass(frozen=True)
class Side:
    """float32[C, Q] of one measure with its means and variances, and float64[Q] of the current configuration."""

    values: np.ndarray
    own: tuple
    base: np.ndarray

    def on(self, queries):
        """float32[C, n]: the differences on some queries."""
        return self.values[:, queries] - self.base[queries].astype(np.float32)

    def row(self, candidate):
        """float64[Q]: the differences of one candidate."""
        return self.values[candidate] - self.base.astype(np.float32).astype(np.float64)

    @cached_property
    def mean(self):
        """float64[C]: the mean difference over all queries."""
        return self.own[0] - self.base.mean()

    @cached_property
    def variance(self):
        """float64[C]: the variance of the difference between queries: var x + var b - 2 cov(x, b)."""
        away = self.base - self.base.mean()
        shared = (self.values @ away.astype(np.float32)).astype(np.float64) / (len(away) - 1)
        return np.maximum(self.own[1] + away @ away / (len(away) - 1) - 2 * shared, 0.0)


@dataclass(frozen=True)
class Differences:
    """Candidates minus the current configuration, and the candidates' names."""

    keys: tuple
    metric: Side
    composite: Side

    @classmethod
    def of(cls, matrices, current):
        """Against one of the matrices' current configurations."""
        _, metric, composite = matrices.currents[current]
        of_metric, of_composite = matrices.moments
        return cls(
            matrices.keys,
            Side(matrices.metric, of_metric, metric),
            Side(matrices.composite, of_composite, composite),
        )

    def evidence(self, labelled, priors=None, groups=None):
        """What the labelled queries show."""
        return Scored.of(self.metric.on(labelled), self.composite.on(labelled), priors, groups)

    @property
    def queries(self):
        """How many there are."""
        return len(self.metric.base)


def priors_of(others, keys):
    """What other collections' differences to the same current configuration say of these candidates."""
    at = [{key: row for row, key in enumerate(other.keys)} for other in others]
    rows = [np.array([index.get(key, -1) for key in keys]) for index in at]

    def side(name):
        own = [getattr(other, name) for other in others]
        means, variances = (
            np.array(
                [np.where(row >= 0, getattr(one, of)[row], np.nan) for one, row in zip(own, rows, strict=True)]
            )
            for of in ("mean", "variance")
        )
        return PriorGains.of(means, variances)

    return side("metric"), side("composite")


def splits(size, n, count):
    """Labelled and unseen queries, `count` times; none where too few would be left."""
    if n > min(0.8 * size, size - 20):
        return
    for draw in range(count):
        order = np.random.default_rng([n, draw]).permutation(size)
        yield order[:n], order[n:]


def _gains(own, candidate, unseen):
    """The mean difference on the unseen queries, and on all; 0 where nothing was chosen."""
    if candidate is None:
        return 0.0, 0.0
    row = own.metric.row(candidate)
    return float(row[unseen].mean()), float(row.mean())


def rule_row(own, others, grid30, n, count, usual=OVER_FUSION):
    """Means over splits of what each way of choosing gains, and how often it harms, for one strategy."""
    priors = priors_of(others, own.keys)
    found = {}
    for labelled, unseen in splits(own.queries, n, count):
        known, alone = own.evidence(labelled, priors), own.evidence(labelled)
        decision = apply_rule(Expectation(known, usual), ONE_STRATEGY)
        ways = {
            "grid of 30": grid30[int(np.argmax(known.metric[grid30].mean(axis=1)))],
            "optimum": int(np.argmax(known.metric.mean(axis=1))),
            "A, shipped": _proven(known),
            "A, no table": _proven(alone),
            "B, tried": best(known),
        }
        for way, candidate in ways.items():
            gain, population = _gains(own, candidate, unseen)
            promise = decision.gain.mean if way == "A, shipped" and decision.verdict == "ship" else np.nan
            kept = gain if np.isfinite(promise) else np.nan
            found.setdefault(way, []).append((gain, population, candidate is not None, promise, kept))
    return {way: _summary(rows) for way, rows in found.items()}


def _summary(rows):
    gain, population, moved, promise, kept = np.array(rows, dtype=float).T
    shipped = np.isfinite(promise)
    return {
        "gain": gain.mean(),
        "harm": (gain < -LOSS).mean(),
        "population harm": (population < -LOSS).mean(),
        "moved": moved.mean(),
        "promised": promise[shipped].sum() / len(rows),
        "kept": kept[shipped].sum() / len(rows),
    }


def recommend_row(own, others, n, count, usual=OVER_FUSION):
    """Means over splits of the whole procedure over all families, against one current configuration."""
    priors = priors_of(others, own.keys) if others else None
    rows = []
    for labelled, unseen in splits(own.queries, n, count):
        found = apply_rule(Expectation(own.evidence(labelled, priors), usual), ALL_FAMILIES)
        rows.append((found, *_gains(own, found.candidate, unseen), found.bound >= own.metric.mean.max() - 1e-9))
    return _verdicts(rows) if rows else {}


def repeats_row(own, others, n, count):
    """Verdicts on n questions that were asked `TIMES` times each, counted apart and counted as one."""
    priors = priors_of(others, own.keys)
    found = {"apart": [], "as one": []}
    for asked, _ in splits(own.queries, n, count):
        for way, groups in (("apart", None), ("as one", np.tile(asked, TIMES))):
            decision = apply_rule(Expectation(own.evidence(np.tile(asked, TIMES), priors, groups)), ALL_FAMILIES)
            gain = 0.0 if decision.candidate is None else float(own.metric.row(decision.candidate).mean())
            found[way].append((decision.verdict == "ship", gain))
    return {way: _ships(rows) for way, rows in found.items()}


def _ships(rows):
    shipped = [gain for ships, gain in rows if ships]
    return {"splits": len(rows), "ship": len(shipped), "false ship": sum(gain < -LOSS for gain in shipped)}


def _verdicts(rows):
    of = {verdict: [row for row in rows if row[0].verdict == verdict] for verdict in ("ship", "try", "keep")}
    shipped, tried, kept = of["ship"], of["try"], of["keep"]
    count = len(rows)

    def share(some, test):
        return sum(map(test, some)) / count

    return {
        "ship": len(shipped) / count,
        "try": len(tried) / count,
        "gain": sum(row[1] for row in shipped) / count,
        "gain tried": sum(row[1] for row in tried) / count,
        "harm": share(shipped, lambda row: row[1] < -LOSS),
        "false ship": share(shipped, lambda row: row[2] < -LOSS),
        "try right": share(tried, lambda row: row[2] > 0),
        "try harm": share(tried, lambda row: row[2] < -LOSS),
        "promised": sum(row[0].gain.mean for row in shipped) / count,
        "stated harm": sum(row[0].gain.worse for row in shipped) / count,
        "stated harm tried": sum(row[0].gain.worse for row in tried) / count,
        "bound covers": share(rows, lambda row: row[3]),
        "bound": sum(row[0].bound for row in rows) / count,
        "right": (
            share(shipped, lambda row: row[2] > 0)
            + share(tried, lambda row: row[2] > 0)
            + share(kept, lambda row: row[3])
        ),
    }


def _proven(evidence):
    """The candidate of largest posterior mean among those that pass both gates; None when there is none."""
    passing = passes_gates(evidence, ONE_STRATEGY)
    return int(np.argmax(np.where(passing, evidence.of_composite.mean, -np.inf))) if passing.any() else None
