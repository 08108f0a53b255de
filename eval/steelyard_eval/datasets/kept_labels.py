"""The copies of a data set's labels that `judge --apply` keeps beside the judgments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from steelyard.base.files import spared
from steelyard_eval.datasets.dataset import Dataset
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import qrels_file
from steelyard_eval.datasets.qrels import Qrels

FOLDER = "judgments"
"""Where judgments are kept, in the folder of the data set."""


def kept_labels(dataset: Dataset) -> Iterator[tuple[Path, dict[str, dict[str, int]]]]:
    """Each copy that can be read, the last first, with its labels: query -> entry -> grade."""
    if dataset.in_memory:
        return
    for copy in spared(dataset.path / FOLDER / qrels_file(FolderReader(dataset.path))):
        reader = FolderReader(copy.parent)
        qrels = Qrels(reader, None, None)
        qrels.read(copy.name)
        if not reader.faults:
            yield copy, qrels.grades
