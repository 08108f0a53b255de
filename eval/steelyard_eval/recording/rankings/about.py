"""What a document records of the data set it was made on."""

from __future__ import annotations

from steelyard.base.fields import format_time
from steelyard_eval.common.documents.results import DatasetRecord
from steelyard_eval.datasets import Dataset


def described(dataset: Dataset) -> DatasetRecord:
    """Name, licence, hash, sizes and clock; `path` is None for a data set that is in memory alone."""
    return {
        "name": dataset.name,
        "path": None if dataset.in_memory else str(dataset.path),
        "description": dataset.description,
        "licence": dataset.licence,
        "sha256": dataset.sha256,
        "entries": len(dataset.entries),
        "set_apart": dataset.set_apart,
        "as_of": format_time(dataset.as_of),
    }
