"""Do printed intervals cover what they promise? Simulation from real per-query values, which have many zeros.

From each collection of `make evidence` queries are drawn with replacement, n at a time; the truth is the mean over
the collection. Differences are those of every pair of current configurations, and of two that are nearly the same.
Groups: ten conversations of locomo are drawn whole. False better: how often that is the verdict of a comparison
whose differences are centred at 0.
"""

import argparse
import itertools
from pathlib import Path

import numpy as np
from evidence import CURRENTS
from evidence_matrices import Collection
from evidence_rows import GROUPS

from steelyard_eval.datasets.groups import judged
from steelyard_eval.measures.paired import difference_interval, mean_interval, paired

SIZES = (20, 59, 300)
PAIRS = (("RRF", "echovault"), ("vector", "bm25"), ("soleri", "moltnet"), ("weighted sum", "spec_kit"))
"""Of which false verdicts are counted; those that agree on most queries would, centred, differ on all."""
NEAR = "weighted_sum(0.32*bm25, 0.68*vector, normalize=minmax)"


def values_of(collection):
    """label -> float[Q]: nDCG@10 of the current configurations, and of one next to the weighted sum."""
    found = {name: collection.families().currents[name][1] for name in CURRENTS}
    near = collection.tuned("ws")
    (row,) = [at for at, key in enumerate(near.keys) if "bm25=100,vector=100" in key and key.endswith(NEAR)]
    return found | {"near the weighted sum": near.metric[row].astype(np.float64)}


def covers(values, interval, n, draws, rng):
    truth, hits = values.mean(), 0
    for _ in range(draws):
        found = interval(values[rng.integers(0, len(values), n)])
        hits += found.low - 1e-12 <= truth <= found.high + 1e-12
    return hits / draws


def grouped(values, groups, draws, rng):
    """The same where whole groups are drawn, as many as there are."""
    names = np.unique(groups)
    parts = [values[groups == name] for name in names]
    truth, hits = values.mean(), 0
    for _ in range(draws):
        chosen = [parts[at] for at in rng.integers(0, len(parts), len(parts))]
        labels = np.repeat(np.arange(len(chosen)), [len(part) for part in chosen])
        found = difference_interval(np.concatenate(chosen), labels.tolist())
        hits += found.low <= truth <= found.high
    return hits / draws


def false_better(differences, n, draws, rng):
    """How often a comparison calls a configuration better that is not: differences are centred at 0."""
    centred = differences - differences.mean()
    samples = (centred[rng.integers(0, len(centred), n)] for _ in range(draws))
    return np.mean([paired({"": s}, np.zeros(n), draws=999)[""].verdict == "better" for s in samples])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("reports/evidence"))
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--sets", nargs="+", default=[*itertools.chain(*GROUPS.values())], metavar="NAME")
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    means, changes, wrong = {n: [] for n in SIZES}, {n: [] for n in SIZES}, {n: [] for n in SIZES}
    for name in asked.sets:
        values = values_of(Collection(name, asked.folder))
        for n in SIZES:
            means[n] += [covers(own, mean_interval, n, asked.draws, rng) for own in values.values()]
            for one, other in itertools.combinations(values.values(), 2):
                changes[n].append(covers(one - other, difference_interval, n, asked.draws, rng))
            wrong[n] += [false_better(values[a] - values[b], n, asked.draws, rng) for a, b in PAIRS]
    for label, found, worst, of in (
        ("means", means, "least", np.min),
        ("differences", changes, "least", np.min),
        ("false better", wrong, "most", np.max),
    ):
        for n in SIZES:
            told = f"mean {np.mean(found[n]):.1%}, {worst} {of(found[n]):.1%}"
            print(f"{label:12} n={n:<4} {len(found[n]):>4} cells: {told}")
    locomo = Collection("locomo", asked.folder)
    queries = judged(locomo.space.dataset, locomo.space.dataset.queries)
    groups = np.array([query.id.split(":")[0] for query in queries])
    own = locomo.families().currents
    pairs = itertools.combinations(CURRENTS, 2)
    found = np.array([grouped(own[a][1] - own[b][1], groups, asked.draws, rng) for a, b in pairs])
    print(f"ten groups         {len(found):>4} cells: mean {found.mean():.1%}, least {found.min():.1%}")


if __name__ == "__main__":
    main()
