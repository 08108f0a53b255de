"""A small world whose truth is known: 240 queries of 25 candidates, relevant by vector more than by keywords."""

from functools import cache

import numpy as np
from simulator import CandidateLists

from steelyard import Query, SignalTable, find_system, parse_strategy
from steelyard.table.signal_table import NO_FACTS
from steelyard_eval.choose.differences import Scored, SecondMeasurement
from steelyard_eval.choose.rule import FROM_A_LOG, Expectation, apply_rule
from steelyard_eval.learn.counts import CODE, KINDS, PositionCounts
from steelyard_eval.learn.first_ten import PLACES
from steelyard_eval.learn.gains import FeedbackGains

QUERIES, CANDIDATES = 240, 25
LEANING = "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)"  # weights that are nearly the best


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
        entry_facts=NO_FACTS,
        query_facts=NO_FACTS,
    )
    config = find_system("plain").config(10).with_strategy(parse_strategy(strategy))
    queries = [Query(name, id=name) for name in table.queries]
    return CandidateLists.of(table, config, queries), relevant.astype(float)


def learned(lists, cells):
    """What cells say, and the gain of every candidate by them: float64[G, n] on the logged queries."""
    found = FeedbackGains.of(lists.pairs, cells)
    values = found.values(lists.top[:, cells.queries])
    return found, values - values[0]


def tried(lists, cells, apart=None):
    """The candidate that acts alone suggest; 0, what is used today, for none."""
    found, gains = learned(lists, cells)
    return found.suggested(gains, lambda one: lists.top[[0, one]], apart) or 0


def decided(lists, grades, cells, queries):
    """What the labels of some queries decide with the acts on all: (verdict, candidate)."""
    values = lists.pairs.values(lists.top, grades) / lists.pairs.ideal(grades).mean()
    labels = (values - values[0])[:, queries]
    _, gains = learned(lists, cells)
    rows = np.flatnonzero(np.isin(cells.queries, queries))
    at = np.searchsorted(queries, cells.queries[rows])
    second = SecondMeasurement.of(gains, at, rows, cells.queries)
    found = apply_rule(Expectation(Scored.of(labels, labels, second=second)), FROM_A_LOG)
    return found.verdict, found.candidate or 0


def truth(lists, grades):
    """float64[G]: the mean discounted gain of every candidate."""
    return lists.pairs.values(lists.top, grades).mean(axis=1)


def counted(lists, row, place, shown, acts_of="clicked", acts=0):
    """The counts of rows at places from 0; every act of one kind."""
    row, place, shown = (np.asarray(part, dtype=kind) for part, kind in ((row, int), (place, int), (shown, float)))
    of_kinds = np.zeros((row.size, len(KINDS)))
    of_kinds[:, CODE[acts_of]] = acts
    return PositionCounts.of(lists.pairs, row, place, shown, of_kinds)


def cells_of(sessions, lists, kind="clicked"):
    """The counts of sessions; every act of one kind."""
    row = sessions.row.ravel()
    place = np.tile(np.arange(PLACES), len(sessions))
    return counted(lists, row, place, np.ones(row.size), kind, sessions.acted.ravel())
