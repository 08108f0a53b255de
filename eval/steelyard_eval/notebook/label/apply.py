"""Brings what a judge labelled into the data set: its qrels, and what dataset.json has to say of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from steelyard.base.errors import PATH_WIDTH, ConfigError, shown
from steelyard.base.escape import visible
from steelyard.base.files import canonical, spare, write_texts
from steelyard.base.inputs import read_bytes
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import is_beir, qrels_file
from steelyard_eval.datasets.manifest import FILE as MANIFEST
from steelyard_eval.datasets.manifest import holds_hash, recounted
from steelyard_eval.notebook.label.judgments import Pair
from steelyard_eval.notebook.label.pool import Grades
from steelyard_eval.notebook.label.session import QRELS, Session, lines, qrels_text
from steelyard_eval.recording.rankings.spelling import word


@dataclass(frozen=True)
class Applied:
    """The files that were changed, and the pairs whose labels the data set did not have so, or has no more.

    `copies` are where the files that were changed had been kept, by file, None for one that was not there; `again`
    are those of the added that had been added before.
    """

    written: list[Path]
    added: list[Pair]
    changed: list[Pair]
    removed: list[Pair]
    copies: dict[Path, Path | None]
    again: list[Pair]

    @property
    def moved(self) -> bool:
        """Whether any label is another one now."""
        return bool(self.added or self.changed or self.removed)

    @property
    def undo(self) -> str:
        """The command that gives the data set every file again as it was; empty where none was changed."""
        words = [
            ["rm", word(file)] if copy is None else ["cp", word(copy), word(file)]
            for file, copy in self.copies.items()
        ]
        return " && ".join(map(shlex.join, words))


def labels_file(folder: Path) -> Path | None:
    """The file of a data set that a judge's qrels replace; None for BEIR, which has a folder of them."""
    return None if is_beir(folder) else folder / qrels_file(FolderReader(folder))


def apply(session: Session, sure: Callable[[list[Pair]], bool] = lambda removed: False) -> Applied:
    """Give the data set the labels of the judge beside those that it has now, and state them.

    Labels are added and changed. Some are taken out only where the judge took their answers back since, and then
    `sure` is asked of these pairs first. All files are complete before the first is replaced. What was there stays
    beside it, as ``qrels.txt.bak`` and ``dataset.json.bak``. Raises ConfigError where there is nothing to copy,
    or no place, or `sure` is not.
    """
    dataset, source = session.pool.dataset, session.qrels
    file = labels_file(dataset.path)
    if file is None:
        raise ConfigError(f"{dataset.called} is in BEIR's form, with labels in a folder qrels; add yours there")
    judged = source.is_file() and session.file.is_file()  # qrels without judgments may be of another data set
    text = qrels_text(session.labels) if judged else ""
    if not text and session.random and session.given:  # no query is judged in full yet
        return Applied([], [], [], [], {}, [])
    if not text and (session.random or not judged):
        raise ConfigError(_nothing_to_apply(session))
    held, now = _graded(session.held), _graded(session.labels)
    added = [pair for pair in now if pair not in held]
    changed = [pair for pair in now if held.get(pair, now[pair]) != now[pair]]
    removed = [pair for pair in held if pair not in now]
    if removed and not sure(removed):
        raise ConfigError(
            f"--apply would take {counted(len(removed), 'label')} out of {file}, because their answers were taken "
            "back; nothing is written. --yes does it"
        )
    own = session.own(session.labels)
    files: dict[Path, str | bytes] = {file: text.encode()} if added or changed or removed else {}
    if files or any(one.grade is not None for one in own.values()):
        files |= _stated(session, file.name, text if files else None)
    again = [pair for pair in added if pair in session.merged]
    undo = {path: spare(path) if path.is_file() else None for path in files}
    # the copies first: wherever it is killed, no label is lost
    held_back: dict[Path, str | bytes] = {copy: read_bytes(path) for path, copy in undo.items() if copy}
    write_texts({**held_back, **files, source: text, session.applied: lines(own)})
    return Applied([*held_back, *files], added, changed, removed, undo, again)


def _nothing_to_apply(session: Session) -> str:
    others = {path.name.removesuffix(QRELS) for path in session.folder.glob(f"*{QRELS}")} - {session.judge}
    here = f"here are those of --judge {', '.join(map(visible, sorted(others)[:3]))}" if others else "judge first"
    return f"{shown(str(session.qrels), PATH_WIDTH)} has no labels to apply; {here}"


def _graded(labels: Grades) -> dict[Pair, int]:
    return {(query, entry): grade for query, grades in labels.items() for entry, grade in grades.items()}


def _stated(session: Session, name: str, labels: str | None) -> dict[Path, str | bytes]:
    """dataset.json with how the labels were chosen and, where there are other `labels`, the hash of their file."""
    folder = session.pool.dataset.path
    record = FolderReader(folder).json_object(MANIFEST) or {}
    said = session.state
    if labels is not None:
        said |= recounted(record, {name: labels.splitlines()})
        if holds_hash(folder, name):
            said["files"] = {**record["files"], name: sha256(labels.encode()).hexdigest()}
    return {folder / MANIFEST: canonical(now)} if record and (now := {**record, **said}) != record else {}
