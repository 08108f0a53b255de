"""Proposes groups for a data set whose queries share scopes, with what its queries are worth."""

from __future__ import annotations

from steelyard_eval.compare.comparison import compare
from steelyard_eval.compare.warnings import lack_groups, shared_scopes
from steelyard_eval.datasets import Dataset
from steelyard_eval.recording.workspace import judged

METRIC = "nDCG@10"


def propose_groups(dataset: Dataset) -> list[str]:
    """One sentence where judged queries share scopes and have no group, by a comparison of two baselines.

    These are bm25 and vector where vectors are recorded, else bm25 and fts, so that nothing has to be embedded.
    """
    queries = judged(dataset, dataset.split("all"))
    if not lack_groups(queries):
        return []
    other, embedder = ("vector", "recorded") if dataset.query_vectors else ("fts", "none")
    found = compare(dataset, ["bm25", other], metrics=METRIC, split="all", embedder=embedder, timed=False)
    return shared_scopes(queries, {label: own[METRIC] for label, own in found.values.items()}, "bm25")
