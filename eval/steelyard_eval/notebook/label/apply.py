"""Brings what a judge labelled into the data set: its qrels, and what dataset.json has to say of them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from steelyard.base.errors import PATH_WIDTH, ConfigError, shown
from steelyard.base.files import canonical, write_texts
from steelyard.base.inputs import read_bytes
from steelyard_eval.datasets.beir import is_beir
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import qrels_file
from steelyard_eval.datasets.manifest import FILE as MANIFEST
from steelyard_eval.datasets.manifest import holds_hash
from steelyard_eval.notebook.label import whole_queries
from steelyard_eval.notebook.label.session import Session


def labels_file(folder: Path) -> Path | None:
    """The file of a data set that a judge's qrels replace; None for BEIR, which has a folder of them."""
    return None if is_beir(folder) else folder / qrels_file(FolderReader(folder))


def apply(session: Session) -> list[Path]:
    """Replace the labels of the data set by the judge's qrels, and state them; returns what was written.

    All files are complete before the first is replaced. What was there stays in ``<judge>.replaced.qrels.txt``
    beside the judgments where any of it is lost. Raises ConfigError where there is nothing to copy, or no place.
    """
    dataset, source = session.pool.dataset, session.qrels
    file = labels_file(dataset.path)
    if file is None:
        raise ConfigError(f"{dataset.name} is in BEIR's form, with labels in a folder qrels; add yours there")
    judged = source.is_file() and session.file.is_file()  # qrels without judgments may be of another data set
    labels = read_bytes(source) if judged else b""
    if not labels and (session.random or not judged):
        raise ConfigError(f"{shown(str(source), PATH_WIDTH)} has no labels to apply; judge first")
    written: dict[Path, str | bytes] = {file: labels, **_stated(session, file.name, labels)}
    if file.is_file() and _lines(before := read_bytes(file)) - _lines(labels):
        written[session.folder / f"{session.judge}.replaced.qrels.txt"] = before
    write_texts(written)
    return list(written)


def _stated(session: Session, name: str, labels: bytes) -> dict[Path, str]:
    """dataset.json with how the labels were chosen and the hash of their file, where it lacks either."""
    folder = session.pool.dataset.path
    said = whole_queries.to_state(session.pool, session.random, session.given)
    record = FolderReader(folder).json_object(MANIFEST) or {}
    if holds_hash(folder, name):
        said["files"] = {**record["files"], name: sha256(labels).hexdigest()}
    return {folder / MANIFEST: canonical({**record, **said})} if said and record else {}


def _lines(qrels: bytes) -> set[tuple[bytes, ...]]:
    """The labels of a file, of three columns or four."""
    return {(row[0], *row[-2:]) for line in qrels.splitlines() if (row := line.split())}
