"""Whether a verdict keeps its word: range, odds, ships and tries, beside what the choice gains on all queries.

A part of `make evidence`, on the matrices of all families. Every split is decided as the product decides it, the
step for few labels included, with a table of the other collections of the group. The truth is the mean gain over
all queries; its distance to that on the labelled ones is stretched by 1 / sqrt(1 - n / Q), as if the collection
were endless, so that a small one does not flatter the coverage.
"""

from itertools import pairwise

import numpy as np
from evidence_few import contenders_of, default_of
from evidence_rows import LOSS, USUAL, priors_of, splits

from steelyard_eval.choose import rule
from steelyard_eval.choose.few_labels import FewLabelCandidates, decide_with_public_prior
from steelyard_eval.choose.public import PublicGains

BINS = (0.0, 0.02, 0.1, 0.2, 0.4, 1.0)
FEWEST = 20  # draws of a cell that is told
KINDS = {rule.OVER_SYSTEM: "system", rule.OVER_RETRIEVER: "retriever", rule.OVER_FUSION: "fusion"}


def odds_row(own, rest, current, n, draws):
    """Of every split: verdict, expected gain, its ends and odds, the stretched truth, the gain on all queries."""
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
        found.append([decision.verdict, *known, truth, float(gains.mean())])
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
    return "\n".join(lines)


def _covers(own):
    return float(np.mean([one[2] <= one[5] <= one[3] for one in own])) if own else float("nan")


def _harm(own, verdict):
    of = [one for one in own if one[0] == verdict]
    harmful = sum(one[6] < -LOSS for one in of)
    got = sum(one[6] for one in of) / max(sum(one[1] for one in of), 1e-9)
    return f"{verdict} {len(of)}, harm {harmful} ({harmful / max(len(of), 1):.1%}), got/expected {got:.2f}"
