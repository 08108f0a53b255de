"""Data sets: a corpus, queries and graded judgments in a folder, checked completely before anything runs."""

from steelyard_eval.datasets.folder import as_dataset, check, load
from steelyard_eval.datasets.model import CLASSIFIED, GIVEN, LOGGED, Dataset, Report, tuning_queries

__all__ = [
    "CLASSIFIED",
    "GIVEN",
    "LOGGED",
    "Dataset",
    "Report",
    "as_dataset",
    "check",
    "load",
    "tuning_queries",
]
