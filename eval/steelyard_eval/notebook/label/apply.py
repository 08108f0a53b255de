"""Brings what a judge labelled into the data set: its qrels, and what dataset.json has to say of them."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from steelyard.base.errors import PATH_WIDTH, ConfigError, shown
from steelyard.base.escape import visible
from steelyard.base.files import canonical, spare, write_texts
from steelyard.base.inputs import read_bytes
from steelyard_eval.datasets.beir import is_beir
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import qrels_file
from steelyard_eval.datasets.manifest import FILE as MANIFEST
from steelyard_eval.datasets.manifest import holds_hash, recounted
from steelyard_eval.notebook.label import whole_queries
from steelyard_eval.notebook.label.judgments import Pair
from steelyard_eval.notebook.label.session import QRELS, Session, lines, qrels_text


@dataclass(frozen=True)
class Applied:
    """The files that were changed, and the pairs whose labels the data set did not have so, or has no more.

    `before` is where its file of labels was kept, None where no label differs; `again` are those of the added that
    had been added before.
    """

    written: list[Path]
    added: list[Pair]
    changed: list[Pair]
    removed: list[Pair]
    before: Path | None
    again: list[Pair]


def labels_file(folder: Path) -> Path | None:
    """The file of a data set that a judge's qrels replace; None for BEIR, which has a folder of them."""
    return None if is_beir(folder) else folder / qrels_file(FolderReader(folder))


def apply(session: Session) -> Applied:
    """Give the data set the labels of the judge beside those that it has now, and state them.

    All files are complete before the first is replaced. What was there stays beside the judgments, as
    ``qrels.before-1.txt`` or the next number. Raises ConfigError where there is nothing to copy, or no place.
    """
    dataset, source = session.pool.dataset, session.qrels
    file = labels_file(dataset.path)
    if file is None:
        raise ConfigError(f"{dataset.called} is in BEIR's form, with labels in a folder qrels; add yours there")
    judged = source.is_file() and session.file.is_file()  # qrels without judgments may be of another data set
    text = qrels_text(session.labels) if judged else ""
    if not text and session.random and session.given:  # no query is judged in full yet
        return Applied([], [], [], [], None, [])
    if not text and (session.random or not judged):
        others = {path.name.removesuffix(QRELS) for path in session.folder.glob(f"*{QRELS}")} - {session.judge}
        remedy = (
            f"here are those of --judge {', '.join(map(visible, sorted(others)[:3]))}" if others else "judge first"
        )
        raise ConfigError(f"{shown(str(source), PATH_WIDTH)} has no labels to apply; {remedy}")
    held, now = _graded(session.held), _graded(session.labels)
    added = [pair for pair in now if pair not in held]
    changed = [pair for pair in now if held.get(pair, now[pair]) != now[pair]]
    removed = [pair for pair in held if pair not in now]
    again = [pair for pair in added if pair in session.merged]
    old = read_bytes(file) if file.is_file() else b""
    new = text.encode() if added or changed or removed else old
    before = None if new == old else spare(session.folder / file.name, old)
    # the copy first: wherever it is killed, no label is lost
    files: dict[Path, str | bytes] = {before: old, file: new} if before else {}
    own = session.own(session.labels)
    if before or any(one.grade is not None for one in own.values()):
        files |= _stated(session, file.name, text, sha256(new).hexdigest())
    write_texts({**files, source: text, session.applied: lines(own)})
    return Applied([*files], added, changed, removed, before, again)


def _graded(labels: whole_queries.Grades) -> dict[Pair, int]:
    return {(query, entry): grade for query, grades in labels.items() for entry, grade in grades.items()}


def _stated(session: Session, name: str, labels: str, digest: str) -> dict[Path, str]:
    """dataset.json with how the labels were chosen and the hash of their file, where it lacks either."""
    folder = session.pool.dataset.path
    said = whole_queries.to_state(session.pool, session.random, session.given)
    record = FolderReader(folder).json_object(MANIFEST) or {}
    said |= recounted(record, {name: labels.splitlines()})
    if holds_hash(folder, name):
        said["files"] = {**record["files"], name: digest}
    return {folder / MANIFEST: canonical(now)} if record and (now := {**record, **said}) != record else {}
