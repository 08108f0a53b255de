"""How many labels of locomo give the verdict that all of them give: in the judge's order, and in a random one.

Labels are revealed one after the other; what counts is the number after which the verdict stays what it is with
all labels. Five seeds each. Locomo is in STEELYARD_DATA.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

import steelyard_eval as sy
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import read
from steelyard_eval.notebook.label.outlook import standings
from steelyard_eval.notebook.label.pool import pooled, searched
from steelyard_eval.recording.record import record

CONTENDERS = {
    "bm25": "rrf(bm25)",
    "vector": "rrf(vector)",
    "rrf": "rrf(bm25, vector)",
    "sum 0.3/0.7": "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)",
    "sum 0.5/0.5": "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)",
    "tiered": "tiered(fts, min_results=3, then=vector)",
}
COMPARED = [
    ("bm25", "vector"),
    ("bm25", "rrf"),
    ("bm25", "sum 0.3/0.7"),
    ("rrf", "sum 0.5/0.5"),
    ("tiered", "rrf"),
    ("sum 0.3/0.7", "sum 0.5/0.5"),
]
SEEDS = range(5)
STEP = 1.05


def settled(pool, grades, verdict) -> int:
    """The number of labels from which on the verdict stays."""
    late, count = 0, 30.0
    while count < len(pool):
        seen = np.full(len(pool), -1)
        first = pool.order[: int(count)]
        seen[first] = grades[first]
        if standings(pool, seen)[0].verdict != verdict:
            late = count * STEP
        count *= STEP
    return int(min(max(late, 30), len(pool)))


def main() -> None:
    data = sy.load(Path(os.environ["STEELYARD_DATA"]) / "locomo")
    queries = [query for query in data.dataset.queries if query.id in data.dataset.qrels]
    blank = replace(data.dataset, qrels={})
    setting = Setting(10, data.workspace.model)
    configs = {name: read(text).config(setting) for name, text in CONTENDERS.items()}
    table = record(data.workspace, queries, list(configs.values()))
    found = {name: searched(table, config) for name, config in configs.items()}
    print(f"{'':28} {'pairs':>6} {'verdict':>8} {'judge':>7} {'random':>7}  share")
    shares = []
    for pair in COMPARED:
        pool = pooled(blank, pair, queries, [found[name] for name in pair])
        grades = np.array([data.dataset.qrels[q].get(id_, 0) for q, id_ in map(pool.pair, range(len(pool)))])
        verdict = standings(pool, grades)[0].verdict
        counts = []
        for values in (pool.value, np.ones(len(pool))):
            made = [replace(pool, value=values, seed=seed) for seed in SEEDS]
            counts.append(int(np.median([settled(one, grades, verdict) for one in made])))
        shares.append(counts[0] / counts[1])
        line = f"{' against '.join(pair[::-1]):28} {len(pool):6} {verdict:>8} {counts[0]:7} {counts[1]:7}"
        print(f"{line}  {shares[-1]:.0%}", flush=True)
    print(f"median share {np.median(shares):.0%}")


if __name__ == "__main__":
    main()
