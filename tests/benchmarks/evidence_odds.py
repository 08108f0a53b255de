"""Whether "1 in N that it is worse" comes true: the printed odds of a *try*, beside what it lost on other queries.

A part of `make evidence`, on the matrices of all families. Every split is decided as the product decides it, the
step for few labels included, with a table of the other collections of the group.
"""

from itertools import pairwise

import numpy as np
from evidence_few import _contenders, _name
from evidence_rows import USUAL, priors_of, splits

from steelyard_eval.choose.few_labels import FewLabelCandidates, decide_with_public_prior
from steelyard_eval.choose.public import PublicGains
from steelyard_eval.choose.rule import ALL_FAMILIES, OVER_FUSION, decide

SIZES = (15, 25, 40, 100)
BINS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)


def odds_row(own, rest, current, n, draws):
    """Of every split that ends in a try: the printed odds, the gain on unseen queries, and on all."""
    rows, variance, default = _contenders(own, rest)
    shown = PublicGains(np.array([one.metric.mean[one.keys.index(_name(one))] for one in rest]))
    likely = shown.likely and current != "weighted sum, half"
    priors, usual, found = priors_of(rest, own.keys), USUAL.get(current, OVER_FUSION), []
    for labelled, unseen in splits(own.queries, n, draws):
        evidence = own.evidence(labelled, priors)
        elsewhere = evidence.prior_metric.mean[rows]
        known_gain = elsewhere - elsewhere[rows.tolist().index(default)]
        few = FewLabelCandidates(rows, known_gain, variance, default, favoured=likely)
        first = decide(evidence, ALL_FAMILIES, 0, None, usual)
        decision, public = decide_with_public_prior(first, evidence, ALL_FAMILIES, few, n, usual)
        if decision.verdict == "try" and not public:  # what rests on public collections says other words
            gains = own.metric.row(decision.candidate)
            found.append([decision.gain.worse, float(gains[unseen].mean()), float(gains.mean())])
    return {"tries": found}


def odds_table(rows):
    """Printed odds beside the share that was worse, over all rows and for each collection."""
    lines = ["Printed odds of a try: tries, their mean, and the share that was worse on unseen queries, on all"]
    lines.append(f"{'':14}" + "".join(f"{f'{low:.0%} to {high:.0%}':>26}" for low, high in PAIRS))
    names = dict.fromkeys(key[2] for key in rows)
    for name in ("all", *names):
        own = [one for key, row in rows.items() if name in ("all", key[2]) for one in row["tries"]]
        lines.append(f"{name:14}" + "".join(f"{_cell(np.array(own).reshape(-1, 3), *ends):>26}" for ends in PAIRS))
    for n in SIZES:
        own = [one for key, row in rows.items() if key[3] == n for one in row["tries"]]
        cells = (f"{_cell(np.array(own).reshape(-1, 3), *ends):>26}" for ends in PAIRS)
        lines.append(f"{f'{n} labels':14}" + "".join(cells))
    return "\n".join(lines)


PAIRS = tuple(pairwise(BINS))


def _cell(own, low, high):
    inside = own[(own[:, 0] >= low) & (own[:, 0] < high)]
    if not len(inside):
        return "-"
    worse = (inside[:, 1:] < 0).mean(axis=0)
    return f"{len(inside)}: {inside[:, 0].mean():.1%}, {worse[0]:.0%}, {worse[1]:.0%}"
