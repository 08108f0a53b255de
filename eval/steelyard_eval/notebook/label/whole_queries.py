"""Draws whole queries at random: only such labels can ship, as they stand for the queries that nobody judged.

A drawn query is judged on everything that a contender ranks among the first ten. Its grades count once they all
are there; a query that is half judged would favour whoever was judged first. Queries stay in the order in which
they were drawn, so where judging stops says nothing about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from steelyard.base.arrays import Bools, Indices
from steelyard.base.files import canonical
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.labels import FAIR, Batch, JudgedPool, stated, with_batch
from steelyard_eval.datasets.manifest import FILE as MANIFEST
from steelyard_eval.measures.judgments import UNJUDGED
from steelyard_eval.notebook.label.pool import PLACES, Pool

STREAM = 3
"""Of the random numbers of a seed, those that draw queries; `Session` takes the second for a second judge."""
Grades = dict[str, dict[str, int]]


def drawn(pool: Pool) -> Indices:
    """int64[D]: the queries in the order in which they are drawn, by the seed.

    Those with labels are drawn too, unless they were drawn fairly themselves.
    """
    keys = np.random.default_rng([pool.seed, STREAM]).random(len(pool.queries))
    fair = pool.dataset.drawn
    order = np.argsort(keys, kind="stable").astype(np.int64)
    queries: Indices = order[~np.array([query.id in fair for query in pool.queries])[order]]
    return queries


def order(pool: Pool) -> Indices:
    """int64[n]: the open pairs of drawn queries, query by query, shuffled within each."""
    turn = np.full(len(pool.queries), -1)
    queries = drawn(pool)
    turn[queries] = np.arange(len(queries))
    open_ = np.flatnonzero(_asked(pool) & (pool.known < 0) & (turn[pool.query] >= 0))
    keys = np.random.default_rng([pool.seed, STREAM, 1]).random(len(pool))
    pairs: Indices = open_[np.lexsort((keys[open_], turn[pool.query[open_]]))]
    return pairs


def judged_whole(pool: Pool, grades: Indices) -> Indices:
    """int64[d]: the drawn queries up to the first that was not asked in full; for `grades` see Session."""
    queries = drawn(pool)
    lacking = np.isin(queries, pool.query[_asked(pool) & (grades == UNJUDGED)])
    whole: Indices = queries[: int(np.argmax(lacking)) if lacking.any() else len(queries)]
    return whole


def with_drawn(pool: Pool, given: Mapping[tuple[str, str], int], grades: Indices) -> Grades:
    """The labels that the data set has, with those that are given of queries that are drawn and judged in full."""
    fair = pool.dataset.drawn | {pool.queries[query].id for query in judged_whole(pool, grades).tolist()}
    labels = {query: dict(row) for query, row in pool.dataset.qrels.items()}
    for (query, entry), grade in given.items():
        if query in fair:
            labels.setdefault(query, {})[entry] = grade
    return labels


def judged_entries(pool: Pool, grades: Indices) -> dict[str, tuple[str, ...]]:
    """The entries with a grade of each query that is drawn and judged in full, without queries of none."""
    whole = set(judged_whole(pool, grades).tolist())
    entries: dict[str, tuple[str, ...]] = {}
    for pair in np.flatnonzero(_asked(pool) & (grades >= 0)).tolist():
        if int(pool.query[pair]) in whole:
            query, entry = pool.pair(pair)
            entries[query] = (*entries.get(query, ()), entry)
    return entries


def to_state(
    pool: Pool,
    random: bool,
    given: Iterable[tuple[str, str]] = (),
    judged: Mapping[str, tuple[str, ...]] | None = None,
    judge: str = "",
) -> dict[str, object]:
    """What dataset.json should say of the labels that are collected, where it says nothing.

    Labels that came about in another way keep what is said of them: beside them `provenance` says which queries
    were drawn (`judged`, at `random`, by whom), or which had been drawn before single pairs of others got labels.
    What a set without labels says of them is of none.
    """
    dataset = pool.dataset
    way = Batch("random" if random else "duel", judged or {}, JudgedPool(pool.labels, PLACES), judge)
    collected, said = stated(way.sampled, way.pool), stated(dataset.sampled, dataset.pool)
    mixed = any(query not in dataset.qrels for query, _ in given)
    if dataset.qrels and not random:
        if not mixed or (dataset.sampled and dataset.sampled not in FAIR):
            return {}
        before = {query: tuple(row) for query, row in dataset.qrels.items() if query in dataset.drawn}
        named = {query for batch in dataset.provenance for query in batch.labels}
        kept = Batch(dataset.sampled, {q: ids for q, ids in before.items() if q not in named}, dataset.pool)
        earlier = {"provenance": with_batch(dataset.provenance, kept)} if kept.labels else {}
        return {"sampled": way.sampled, **earlier}
    if dataset.qrels and dataset.sampled not in FAIR:
        return {"provenance": with_batch(dataset.provenance, way)} if judged else {}
    first, unfair = mixed and not dataset.qrels, random and dataset.sampled not in FAIR
    untrue = {
        "sampled": unfair or (first and (dataset.complete or not random)),
        "pool": unfair or (first and dataset.complete),  # the lists of an earlier session stay
    }
    return {name: value for name, value in collected.items() if said[name] is None or untrue[name]}


def statement(pool: Pool, random: bool) -> dict[Path, str]:
    """dataset.json with it, where there is one and these are the first labels of the set; else nothing."""
    dataset, said = pool.dataset, to_state(pool, random)
    if not said or dataset.qrels or dataset.in_memory:
        return {}
    record = FolderReader(dataset.path).json_object(MANIFEST)
    return {} if record is None else {dataset.path / MANIFEST: canonical({**record, **said})}


def _asked(pool: Pool) -> Bools:
    """bool[P]: what a contender ranks among the first; what other weights would bring there can wait."""
    asked: Bools = pool.gain.max(axis=0) > 0
    return asked
