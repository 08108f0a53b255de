"""Proposes groups where queries share scopes or ask nearly the same, with what all queries are worth."""

from __future__ import annotations

from steelyard_eval.compare.compare import compare
from steelyard_eval.compare.notices import dependent
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import alike, lack_groups
from steelyard_eval.recording.workspace import judged
from steelyard_eval.result.sentences import say

METRIC = "nDCG@10"


def propose_groups(dataset: Dataset) -> list[str]:
    """A sentence each where judged queries share scopes and have no group, and where some ask nearly the same.

    What they are worth comes from a comparison of two baselines: bm25 and vector where vectors are recorded, else
    bm25 and fts, so that nothing has to be embedded.
    """
    queries = judged(dataset, dataset.split("all"))
    near = alike(dataset, queries)
    if not near and not lack_groups(queries):
        return []
    other, embedder = ("vector", "recorded") if dataset.query_vectors else ("fts", "none")
    result = compare(dataset, ["bm25", other], metrics=METRIC, split="all", embedder=embedder, timed=False)
    values = {label: metrics[METRIC] for label, metrics in result.values.items()}
    return [say(one) for one in dependent(queries, near, values, "bm25")]
