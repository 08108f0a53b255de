"""Data sets: a corpus, queries and graded judgments in a folder, checked completely before anything runs."""

from steelyard_eval.datasets.dataset import CLASSIFIED, GIVEN, LOGGED, UNNAMED, Dataset, Report
from steelyard_eval.datasets.folder import as_dataset, check, load, open_dataset
from steelyard_eval.datasets.groups import tuning_queries

__all__ = [
    "CLASSIFIED",
    "GIVEN",
    "LOGGED",
    "UNNAMED",
    "Dataset",
    "Report",
    "as_dataset",
    "check",
    "load",
    "open_dataset",
    "tuning_queries",
]
