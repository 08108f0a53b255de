"""A small world whose truth is known: 240 queries of 25 candidates, relevant by vector more than by keywords."""

from functools import cache

import numpy as np

from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard.table.signal_table import NO_FACTS, SignalTable
from steelyard_eval.learn.first_ten import lists_of

QUERIES, CANDIDATES = 240, 25


@cache
def made(strategy="weighted_sum(0.9*bm25, 0.1*vector, normalize=minmax)", seed=0):
    """The lists of a strategy, and the grade of every row: one relevant entry in ten."""
    rng = np.random.default_rng(seed)
    size = QUERIES * CANDIDATES
    relevant = rng.random(size) < 0.1
    columns = {"bm25": rng.random(size) + 0.3 * relevant, "vector": rng.random(size) + 1.2 * relevant}
    table = SignalTable(
        queries=tuple(f"q{at:03}" for at in range(QUERIES)),
        entries=tuple(f"e{at:02}" for at in range(CANDIDATES)),
        offsets=np.arange(QUERIES + 1) * CANDIDATES,
        entry=np.tile(np.arange(CANDIDATES, dtype=np.int32), QUERIES),
        columns=columns,
        positions={name: np.ones(size, dtype=np.int32) for name in columns},
        about=NO_FACTS,
        asked=NO_FACTS,
    )
    config = find_system("plain").config(10).with_strategy(parse_strategy(strategy))
    return lists_of(table, config), relevant.astype(float)


def truth(lists, grades):
    """float64[G]: the mean discounted gain of every candidate."""
    return lists.values(grades, np.arange(len(lists.queries))).mean(axis=1)
