"""Whether a verdict keeps its word: range, odds, ships and tries, beside what the choice gains on all queries.

A part of `make evidence`, on the matrices of all families. Of every split n judged queries are labelled; the rest,
at least 20 of them, are unseen. It is decided as the product decides it, the step for few labels included, with a
table of the others of the same group, never of the collection itself. The truth is the mean gain over all queries;
its distance to that on the labelled ones is stretched by 1 / sqrt(1 - n / Q), as if the collection were endless,
so that a small one does not flatter the coverage.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from evidence_few import contenders_of, default_of

from steelyard_eval.choose import rule
from steelyard_eval.choose.differences import Scored
from steelyard_eval.choose.few_labels import FewLabelCandidates, decide_with_public_prior
from steelyard_eval.choose.public import PriorGains, PublicGains, table_weight

GROUPS = {
    "chosen on": ("cacm", "cranfield", "scifact", "locomo", "madial"),
    "confirmed on": ("cisi", "vaswani", "cosqa", "beam-128k"),
}
"""The collections that the rule was chosen on, and those that it was confirmed on."""
LOSS = 0.001
USUAL = dict.fromkeys(("fts", "bm25", "vector", "cortex_mem"), rule.OVER_RETRIEVER)
USUAL |= dict.fromkeys(("echovault", "moltnet", "soleri", "spec_kit", "echo"), rule.OVER_SYSTEM)
"""By current configuration; others are fusions. Cortex-Mem is a search by vectors where there are no layers."""
BINS = (0.0, 0.02, 0.1, 0.2, 0.4, 1.0)
FEWEST = 20  # draws of a cell that is told
KINDS = {rule.OVER_SYSTEM: "system", rule.OVER_RETRIEVER: "retriever", rule.OVER_FUSION: "fusion"}


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


def odds_row(own, rest, current, n, draws):
    """Of every split: verdict, expected gain, its ends and odds, the stretched truth, the gain on all queries, and
    the share of labelled queries that the choice changes."""
    rows, variance, default = contenders_of(own, rest)
    shown = PublicGains(np.array([one.metric.mean[one.keys.index(default_of(one))] for one in rest]))
    likely = shown.likely and current != "weighted sum, half"
    priors, usual, found = priors_of(rest, own.keys), USUAL.get(current, rule.OVER_FUSION), []
    for labelled, _ in splits(own.queries, n, draws) if n <= own.queries / 2 else ():
        evidence = own.evidence(labelled, priors)
        elsewhere = evidence.prior_metric.mean[rows]
        known_gain = elsewhere - elsewhere[rows.tolist().index(default)]
        few = FewLabelCandidates(rows, known_gain, variance, default, favoured=likely)
        expect = rule.Expectation(evidence, usual)
        first = rule.apply_rule(expect, rule.ALL_FAMILIES)
        decision, _ = decide_with_public_prior(first, expect, rule.ALL_FAMILIES, few, n)
        if decision.candidate is None:
            found.append([decision.verdict])
            continue
        gains, gain = own.metric.row(decision.candidate), decision.gain
        inside = float(gains[labelled].mean())
        truth = inside + (float(gains.mean()) - inside) / np.sqrt(1 - n / own.queries)
        known = [gain.mean, gain.low, gain.high, 0.5 if gain.worse is None else gain.worse]
        changed = expect.share_changed(decision.candidate)
        found.append([decision.verdict, *known, truth, float(gains.mean()), changed])
    return {"kind": KINDS[usual], "most": float(max(own.metric.mean.max(), 0.0)), "draws": found}


def odds_table(rows):
    """The worst cells first: coverage by what is in use and n; then harm, and the odds beside what came true."""
    named = {key: [one for one in row["draws"] if len(one) > 1] for key, row in rows.items()}
    cells = {}
    for key, own in named.items():
        cells.setdefault((rows[key]["kind"], key[3]), []).extend(own)
    covered = {cell: _covers(own) for cell, own in cells.items() if len(own) >= FEWEST}
    lines = ["Coverage of the 95% range of what is named, by what is in use and the number of labels, worst first"]
    lines += [
        f"  {kind:10} {n:4}: {covered[kind, n]:.1%} of {len(cells[kind, n])}"
        for kind, n in sorted(covered, key=covered.get)
    ]
    whole = [one for own in named.values() for one in own]
    width = np.mean([one[3] - one[2] for one in whole])
    bias = np.mean([one[1] - one[5] for one in whole])
    lines.append(f"  all: {_covers(whole):.1%} of {len(whole)}, width {width:.3f}, bias {bias:+.4f}")
    lines.append("Harm (a gain below -.001 on all queries) by collection, then over all")
    for name in (*dict.fromkeys(key[2] for key in rows), "all"):
        own = [one for key, part in named.items() if name in ("all", key[2]) for one in part]
        draws = sum(len(row["draws"]) for key, row in rows.items() if name in ("all", key[2]))
        harm = f"{_harm(own, 'ship')}, {_harm(own, 'try')}"
        lines.append(f"  {name:14} of {draws} draws: {harm}, covers {_covers(own):.1%}")
    lines.append("Printed odds of a loss: how many, their mean, and the share that was worse on all queries")
    p, worse = np.array([one[4] for one in whole]), np.array([one[6] < 0 for one in whole])
    for low, high in pairwise(BINS):
        inside = (p >= low) & (p <= high if high == 1.0 else p < high)
        if inside.any():
            shares = f"{p[inside].mean():.1%}, {worse[inside].mean():.1%}"
            lines.append(f"  {low:.0%} to {high:.0%}: {inside.sum()}, {shares}")
    lines.append("By the share of labelled queries that the choice changes")
    for low, high in pairwise((0.0, 0.2, 0.4, 0.6, 1.01)):
        own = [one for one in whole if low <= one[7] < high]
        lines.append(f"  below {high:.0%}: {_harm(own, 'ship')}; {_harm(own, 'try')}")
    return "\n".join(lines)


def _covers(own):
    return float(np.mean([one[2] <= one[5] <= one[3] for one in own])) if own else float("nan")


def _harm(own, verdict):
    of = [one for one in own if one[0] == verdict]
    harmful = sum(one[6] < -LOSS for one in of)
    got = sum(one[6] for one in of) / max(sum(one[1] for one in of), 1e-9)
    return f"{verdict} {len(of)}, harm {harmful} ({harmful / max(len(of), 1):.1%}), got/expected {got:.2f}"
