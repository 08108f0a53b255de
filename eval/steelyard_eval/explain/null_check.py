"""The null check: whether the best of the usual contenders still leads where labels are shuffled.

Two queries of a scope exchange at random what only one of them has as relevant, again and again (curveball:
Strona et al., Nature Communications 5, 2014). So each query keeps its grades, and each entry the number of queries
that it is relevant to. A lead that is left is of entries that suit any query.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from steelyard_eval.compare.contenders import read, usual
from steelyard_eval.compare.lists_and_latency import Runner
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import judged
from steelyard_eval.measures.metrics import Measure, evaluate_lists
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Fact, Message

METRIC = Measure("nDCG", 10)
DRAWS, FIRST = 200, 5
"""Shuffles, and rounds of exchanges before the first of them; between two there is one."""
ALPHA = 0.05
Qrels = Mapping[str, Mapping[str, int]]


def null_check(dataset: Dataset, current: str | None = None, embedder: str = "auto", seed: int = 0) -> Message:
    """What shuffled labels leave of the lead of the best contender over what is used today, or the next best."""
    used = read(current or dataset.today)
    named = [used, *(one for one in map(read, usual(None)) if one.label != used.label)]
    scopes = defaultdict(list)
    for query in judged(dataset, dataset.split("all")) if dataset.qrels else ():
        scopes[str(query.filters)].append(query)
    queries = [query for own in scopes.values() if len(own) > 1 for query in own]
    if not queries:
        return Message("null_without")
    arena = Runner(Source.needed_by(named, dataset, lambda: Workspace.open(dataset, embedder)), 10)
    lists = {one.label: one.ranked for one in arena.run(named, queries, timed=False)}

    def mean(label: str, qrels: Qrels) -> float:
        return float(evaluate_lists(lists[label], qrels, [METRIC])[METRIC].mean())

    best, *others = sorted(lists, key=lambda label: (-mean(label, dataset.qrels), label))
    other = used.label if used.label in others else others[0]
    alike = [[query.id for query in own] for own in scopes.values()]
    each = [dataset.qrels, *shuffled(dataset.qrels, alike, seed)]
    lead, *left = (mean(best, qrels) - mean(other, qrels) for qrels in each)
    often = sum(one >= lead for one in left)
    gone = lead > 0 and (often + 1) / (DRAWS + 1) < ALPHA
    facts: dict[str, Fact] = {"best": best, "other": other, "metric": str(METRIC), "lead": lead, "draws": DRAWS}
    facts |= {"left": float(np.mean(left)), "most": max(left), "gone": gone, "often": None if gone else often}
    return Message("null_check", facts)


def shuffled(qrels: Qrels, alike: Sequence[Sequence[str]], seed: int) -> Iterator[Qrels]:
    """`DRAWS` shuffles of the labels of queries, which exchange entries with those that are `alike`."""
    rng = np.random.default_rng(seed)
    grades = {id_: [grade for grade in qrels[id_].values() if grade > 0] for ids in alike for id_ in ids}
    held = {id_: {entry for entry, grade in qrels[id_].items() if grade > 0} for id_ in grades}
    for draw in range(FIRST + DRAWS - 1):
        for ids in alike:
            for _ in ids if len(ids) > 1 else ():
                one, two = (ids[at] for at in rng.choice(len(ids), 2, replace=False))
                both, apart = held[one] & held[two], sorted(held[one] ^ held[two])
                taken = {apart[at] for at in rng.permutation(len(apart))[: len(held[one]) - len(both)].tolist()}
                held[one], held[two] = both | taken, both | (set(apart) - taken)
        if draw >= FIRST - 1:
            orders = {id_: rng.permutation(sorted(own)).tolist() for id_, own in held.items()}
            yield {id_: dict(zip(order, grades[id_], strict=True)) for id_, order in orders.items()}
