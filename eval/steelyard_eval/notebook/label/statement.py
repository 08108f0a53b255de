"""What dataset.json should say of the labels that a session collects: how they were drawn, and what was judged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from steelyard_eval.choose.duel import PLACES
from steelyard_eval.datasets.labels import RANDOM_SAMPLES, Batch, JudgedPool, sampling, with_batch
from steelyard_eval.measures.judgments import UNJUDGED
from steelyard_eval.notebook.label.judgment_file import Pair
from steelyard_eval.notebook.label.pool import Pool, judged_entries
from steelyard_eval.notebook.label.session import Session


def state_of(session: Session) -> dict[str, object]:
    """What dataset.json should say of the labels; see `to_state`."""
    pool, dataset = session.pool, session.pool.dataset
    grades = session.grades()
    judged = judged_entries(pool, grades) if session.random else {}
    # Labelled queries of a known pool that were judged in full for other lists, too.
    lacking = {pool.queries[at].id for at in pool.query[grades == UNJUDGED].tolist()}
    how, labels = dataset.sampling_by_query, dict[tuple[str, JudgedPool | None], dict[str, tuple[str, ...]]]()
    for query, entry in (pool.pair(at) for at in np.flatnonzero(grades >= 0).tolist()):
        if query in dataset.qrels and query not in lacking:
            own = labels.setdefault((how[query], dataset.pool_of(query)), {})
            own[query] = (*own.get(query, ()), entry)
    batches = dataset.provenance
    for (sampled, before), own in labels.items():
        if before and sampled and not (before.complete or {*pool.labels} <= {*before.contenders}):
            every = tuple(dict.fromkeys((*before.contenders, *pool.labels)))
            known_lists = JudgedPool(every, min(before.depth or PLACES, PLACES))
            batches = with_batch(batches, Batch(sampled, own, known_lists, session.judge))
    more = _provenance(batches) if batches != dataset.provenance else {}
    if session.random and dataset.qrels and not judged:
        return more  # no query is new
    known = replace(pool, dataset=replace(dataset, provenance=batches))
    return more | to_state(known, session.random, session.given, judged, session.judge)


def to_state(
    pool: Pool,
    random: bool,
    given: Iterable[Pair] = (),
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
    collected, said = sampling(way.sampled, way.pool), sampling(dataset.sampled, dataset.pool)
    mixed = any(query not in dataset.qrels for query, _ in given)
    if dataset.qrels and not random:
        if not mixed or (dataset.sampled and dataset.sampled not in RANDOM_SAMPLES):
            return {}
        before = {query: tuple(row) for query, row in dataset.qrels.items() if query in dataset.random_queries}
        named = {query for batch in dataset.provenance for query in batch.labels}
        kept = Batch(dataset.sampled, {q: ids for q, ids in before.items() if q not in named}, dataset.pool)
        earlier = _provenance(with_batch(dataset.provenance, kept)) if kept.labels else {}
        return {"sampled": way.sampled, **earlier}
    if dataset.qrels and dataset.sampled not in RANDOM_SAMPLES:
        rows = {query: tuple(row) for query, row in dataset.qrels.items() if row}
        # Beside drawn labels those that nothing is said of would count as chosen by hand, and did not before.
        unknown = () if dataset.sampled else (Batch("unknown", rows, dataset.pool),)
        known = dataset.provenance or unknown
        return _provenance(with_batch(known, way)) if judged else {}
    first, unfair = mixed and not dataset.qrels, random and dataset.sampled not in RANDOM_SAMPLES
    untrue = {
        "sampled": unfair or (first and (dataset.complete or not random)),
        "pool": unfair or (first and dataset.complete),  # the lists of an earlier session stay
    }
    return {name: value for name, value in collected.items() if said[name] is None or untrue[name]}


def _provenance(batches: Sequence[Batch]) -> dict[str, object]:
    return {"provenance": [one.to_json() for one in batches]} if batches else {}
