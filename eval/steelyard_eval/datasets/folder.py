"""Loading a data set from its folder, and checking one: every fault at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard.errors import DataError, Fault
from steelyard_eval.datasets.beir import is_beir, read_beir
from steelyard_eval.datasets.files import FolderReader
from steelyard_eval.datasets.manifest import check_report_split, read_manifest
from steelyard_eval.datasets.model import Dataset, Report
from steelyard_eval.datasets.parts import Parts, assemble
from steelyard_eval.datasets.qrels import TREC, Qrels
from steelyard_eval.datasets.tables import read_entries, read_queries

_FAULTS_SHOWN = 50


def load(path: str | Path) -> Dataset:
    """Load a folder of Steelyard's own format or of BEIR's.

    Raises DataError with all faults: a line that counts them, then one line each, at most 50.
    """
    report = check(path)
    if report.dataset is None:
        raise DataError(fault_message(str(path), report.faults))
    return report.dataset


def as_dataset(source: Dataset | str | Path) -> Dataset:
    """The data set itself, or the one in this folder; see `load`."""
    return source if isinstance(source, Dataset) else load(source)


def check(path: str | Path) -> Report:
    """Check every file of a data set, and return the faults, the notices and, if sound, the set.

    Raises MachineError when a file may not be read.
    """
    folder = Path(path)
    if not folder.is_dir():
        rule = "is not a folder" if folder.exists() else "does not exist"
        fault = Fault(str(folder), 0, "", "", rule, "Name the folder that holds dataset.json")
        return Report((fault,), (), None)
    reader = FolderReader(folder)
    return assemble(reader, read_beir(reader) if is_beir(folder) else read_folder(reader))


def read_folder(reader: FolderReader) -> Parts:
    """The parts of a folder of Steelyard's own format."""
    manifest = read_manifest(reader)
    entries, queries = read_entries(reader), read_queries(reader)
    if queries is not None:
        check_report_split(reader, manifest, {q.split for q in queries.items if q.split})
    qrels = Qrels(reader, queries, entries)
    qrels.read("qrels.txt", TREC)
    return Parts(manifest, entries, queries, qrels.grades, [])


def fault_message(source: str, faults: Sequence[Fault]) -> str:
    """A line that counts the faults, then a line each, at most 50."""
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    more = [f"... and {len(faults) - _FAULTS_SHOWN} more"] if len(faults) > _FAULTS_SHOWN else []
    return "\n".join([f"{source}: {count}", *map(str, faults[:_FAULTS_SHOWN]), *more])
