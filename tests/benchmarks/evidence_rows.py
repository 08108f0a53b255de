"""One row of evidence: many splits of one collection, a choice on the labelled part, its gain on the rest.

n judged queries are drawn at random; the rest, at least 20 of them, are unseen. A table of other collections is
made of the others of the same group, never of the collection itself.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard_eval.choose import rule
from steelyard_eval.choose.differences import Scored
from steelyard_eval.choose.public import PriorGains, table_weight

GROUPS = {
    "chosen on": ("cacm", "cranfield", "scifact", "locomo", "madial"),
    "confirmed on": ("cisi", "vaswani", "cosqa", "beam-128k"),
}
"""The collections that the rule was chosen on, and those that it was confirmed on."""
LOSS = 0.001
USUAL = dict.fromkeys(("fts", "bm25", "vector", "cortex_mem"), rule.OVER_RETRIEVER)
USUAL |= dict.fromkeys(("echovault", "moltnet", "soleri", "spec_kit", "echo"), rule.OVER_SYSTEM)
"""By current configuration; others are fusions. Cortex-Mem is a search by vectors where there are no layers."""


@dataclass(frozen=True)
class Side:
    """float32[C, Q] of one measure with its means and variances, and float64[Q] of the current configuration."""

    values: np.ndarray
    own: tuple
    base: np.ndarray

    def on(self, queries):
        return self.values[:, queries] - self.base[queries].astype(np.float32)

    def row(self, candidate):
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
        _, metric, composite = matrices.currents[current]
        of_metric, of_composite = matrices.moments
        sides = (matrices.metric, of_metric, metric), (matrices.composite, of_composite, composite)
        return cls(matrices.keys, *(Side(*side) for side in sides))

    def evidence(self, labelled, priors=None, groups=None):
        return Scored.of(self.metric.on(labelled), self.composite.on(labelled), priors, groups)

    @property
    def queries(self):
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
        seen = np.isfinite(means)
        count = seen.sum(axis=0)
        kept = (np.where(seen, side, 0.0).sum(axis=0) / np.maximum(count, 1) for side in (means, variances))
        return PriorGains(*kept, table_weight(count))

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


def recommend_row(own, others, current, n, count):
    """Means over splits of the whole procedure over all families, against one current configuration."""
    priors = priors_of(others, own.keys) if others else None
    rows = []
    for labelled, unseen in splits(own.queries, n, count):
        found = rule.apply_rule(
            rule.Expectation(own.evidence(labelled, priors), USUAL.get(current, rule.OVER_FUSION)),
            rule.ALL_FAMILIES,
        )
        rows.append((found, *_gains(own, found.candidate, unseen), found.bound >= own.metric.mean.max() - 1e-9))
    return _verdicts(rows) if rows else {}


def _verdicts(rows):
    of = {verdict: [row for row in rows if row[0].verdict == verdict] for verdict in ("ship", "try", "keep")}
    shipped, tried, kept = of["ship"], of["try"], of["keep"]

    def mean(some, of):
        return sum(map(of, some)) / len(rows)

    better = mean(shipped, lambda row: row[2] > 0), mean(tried, lambda row: row[2] > 0)
    return {
        "ship": len(shipped) / len(rows),
        "try": len(tried) / len(rows),
        "gain": mean(shipped, lambda row: row[1]),
        "gain tried": mean(tried, lambda row: row[1]),
        "harm": mean(shipped, lambda row: row[1] < -LOSS),
        "false ship": mean(shipped, lambda row: row[2] < -LOSS),
        "try right": better[1],
        "try harm": mean(tried, lambda row: row[2] < -LOSS),
        "promised": mean(shipped, lambda row: row[0].gain.mean),
        "stated harm": mean(shipped, lambda row: row[0].gain.worse),
        "stated harm tried": mean(tried, lambda row: row[0].gain.worse),
        "bound covers": mean(rows, lambda row: row[3]),
        "bound": mean(rows, lambda row: row[0].bound),
        "right": sum(better) + mean(kept, lambda row: row[3]),
    }


SYSTEMS = ("echovault", "soleri", "moltnet", "spec_kit", "cortex_mem")
RETRIEVERS = ("fts", "bm25", "vector")
COLUMNS = {
    "gain": (1e4, ".0f"),
    "ship": (100, ".0f"),
    "try": (100, ".0f"),
    "harm": (100, ".1f"),
    "false ship": (100, ".1f"),
    "stated harm": (100, ".1f"),
    "try right": (100, ".0f"),
    "try harm": (100, ".1f"),
    "bound covers": (100, ".1f"),
    "bound": (1, ".3f"),
    "right": (100, ".0f"),
}


def recommend_table(rows, best):
    """Per group of collections and of current configurations, by number of labelled queries."""
    lines = ["recommend over all families (gain in 10^-4 nDCG@10; shares in % of splits)"]
    kinds = {
        "systems": lambda key: key[1] in SYSTEMS,
        "retrievers": lambda key: key[1] in RETRIEVERS,
        "fusions": lambda key: key[1] not in (*SYSTEMS, *RETRIEVERS),
        "presets": lambda key: True,
        "best preset": lambda key: key[1] == best.get(key[2]),
    }
    heads = "".join(f"{name:>14}" for name in COLUMNS) + f"{'kept':>8}"
    lines.append(f"{'collections':14}{'current':13}{'n':>5}{'rows':>6}{heads}")
    for group in dict.fromkeys(key[0] for key in rows):
        for kind, belongs in kinds.items():
            for n in sorted({key[3] for key in rows}):
                own = {key: row for key, row in rows.items() if key[0] == group and key[3] == n and belongs(key)}
                if own:
                    lines.append(f"{group:14}{kind:13}{n:>5}{len(own):>6}" + _cells(own))
    worst = sorted(rows.items(), key=lambda item: -item[1]["harm"])[:8]
    lines += ["", "worst rows by harm"]
    lines += [
        f"{key[2]:12}{key[1]:20}{key[3]:>5}  harm {row['harm']:.0%}, gain {row['gain']:+.4f}" for key, row in worst
    ]
    return "\n".join(lines)


def _cells(rows):
    cells = []
    for name, (scale, form) in COLUMNS.items():
        cells.append(f"{scale * np.mean([row[name] for row in rows.values()]):>14{form}}")
    promised = sum(row["promised"] for row in rows.values())
    kept = f"{sum(row['gain'] for row in rows.values()) / promised:.0%}" if promised else "-"
    return "".join(cells) + f"{kept:>8}"
