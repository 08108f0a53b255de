"""Greedy agents that tune, under a referee and without: how often is something called better that is not?

Nothing is better here than anything else: the mean difference of every candidate to the current one is taken off
its differences. Each agent looks at 500 candidates, mostly near its best one, and names the best five.

    STEELYARD_DATA=../shared/data python tests/benchmarks/referee.py cranfield cisi vaswani
"""

import os
import sys
from pathlib import Path

import numpy as np

from steelyard_eval import load
from steelyard_eval.candidates.candidates import build_candidates, record_all
from steelyard_eval.candidates.families import starts
from steelyard_eval.candidates.grid import LabelScorer
from steelyard_eval.compare.referee import SHORTLIST
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets.groups import judged
from steelyard_eval.measures.metrics import parse_measures
from steelyard_eval.measures.paired import paired

AGENTS, LOOKS, LABELS, NEAR, ANYWHERE = 200, 500, 60, 20, 0.3


def matrix_of(folder):
    """nDCG@10 of every candidate on every labelled query, float64[C, Q]."""
    source = Source.live(load(folder).workspace)
    queries = judged(source.dataset, source.dataset.queries)
    tried = starts(source, queries, 10)
    scorer = LabelScorer(parse_measures(["nDCG@10"])[0])
    return build_candidates(record_all(source, queries, tried), tried, scorer).grid.metric.astype(np.float64)


def best_of_looks(values, rng):
    """The candidates that a greedy agent names, of their means float64[C] on what it may look at."""
    seen, best = {}, int(rng.integers(len(values)))
    for _ in range(LOOKS):
        near = np.clip(best + rng.integers(-NEAR, NEAR + 1), 0, len(values) - 1)
        at = int(rng.integers(len(values)) if rng.random() < ANYWHERE else near)
        seen[at] = values[at]
        best = max(seen, key=seen.get)
    return sorted(seen, key=seen.get)[-SHORTLIST:]


def false_improvements(matrix, labels, refereed, seed=0):
    """How many of the agents get the answer better."""
    rng, count, half = np.random.default_rng(seed), 0, labels // 2
    for _ in range(AGENTS):
        gains = matrix - matrix[rng.integers(len(matrix))]
        sample = (gains - gains.mean(axis=1, keepdims=True))[:, rng.integers(matrix.shape[1], size=labels)]
        looked, tested = (sample[:, :half], sample[:, half:]) if refereed else (sample, sample)
        named = {str(at): tested[at] for at in best_of_looks(looked.mean(axis=1), rng)}
        tests = paired(named, np.zeros(tested.shape[1]), list(range(tested.shape[1])))
        count += any(test.verdict == "better" for test in tests.values())
    return count


if __name__ == "__main__":
    for name in sys.argv[1:]:
        matrix = matrix_of(Path(os.environ["STEELYARD_DATA"]) / name)
        for labels in (LABELS, 2 * LABELS):
            found = [false_improvements(matrix, labels, refereed) for refereed in (True, False)]
            print(f"| {name} | {labels} | {found[0]} of {AGENTS} | {found[1]} of {AGENTS} |", flush=True)
