"""Proposes groups where queries share scopes or ask nearly the same, with what all queries are worth."""

from __future__ import annotations

from steelyard_eval.compare.comparison import compare
from steelyard_eval.compare.warnings import dependent
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.alike import alike
from steelyard_eval.datasets.groups import lack_groups
from steelyard_eval.recording.workspace import judged

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
    return dependent(queries, near, {label: metrics[METRIC] for label, metrics in result.values.items()}, "bm25")
