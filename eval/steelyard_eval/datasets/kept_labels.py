"""The labels that `judge --apply` replaced last, which it keeps beside those of today."""

from __future__ import annotations

from pathlib import Path

from steelyard.base.files import spare
from steelyard_eval.datasets.dataset import Dataset
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import qrels_file
from steelyard_eval.datasets.qrels import Qrels

FOLDER = "judgments"
"""Where judgments are kept, in the folder of the data set."""


def kept_labels(dataset: Dataset) -> tuple[Path, dict[str, dict[str, int]]] | None:
    """The copy with its labels, query -> entry -> grade; None without one that can be read."""
    if dataset.in_memory:
        return None
    copy = spare(dataset.path / qrels_file(FolderReader(dataset.path)))
    if not copy.is_file():
        return None
    reader = FolderReader(copy.parent)
    qrels = Qrels(reader, None, None)
    qrels.read(copy.name)
    return None if reader.faults else (copy, qrels.grades)
