"""What was imported as the files of a data set, and a folder brought up to date without losing labels.

The corpus is the store's: entries that left the store leave the folder. Queries, labels and feedback are also
the user's own: an imported query replaces the one of the same id and everything else stays. Labels whose entry
has left wait in `LOST` until it returns.
"""

import io
import math
import shutil
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import ConfigError, DataError, quote
from steelyard.base.files import canonical, draft, remove_drafts, write_bytes
from steelyard_eval.datasets.labels import RANDOM_SAMPLES, read_integer
from steelyard_eval.extensions.importers.arrays import Labels, arrays_of, checked, clock, complete, line_of, usable
from steelyard_eval.extensions.importers.base import Imported, Record, Scored
from steelyard_eval.extensions.importers.source import ForeignStore, decoded
from steelyard_eval.recording.disk import move_folder

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels.txt"
FEEDBACK, ABOUT = "feedback.jsonl", "dataset.json"
LOST = "qrels.lost.txt"  # Labels of entries that are not in the corpus now
MANAGED = ("as_of", "source", "text_for_embedding")
"""Keys of dataset.json that each import writes anew; the others are the user's once they are there."""


@dataclass
class FolderFiles:
    """The files of a data set by name: texts, and arrays of float16; and how much of the store is in them."""

    texts: dict[str, str]
    arrays: dict[str, NDArray[np.float16]]
    notes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def files_of(
    imported: Imported, about: Mapping[str, object], old: ForeignStore | None = None, now: float = math.inf
) -> FolderFiles:
    """The files of a data set with what was imported, and with what the old folder holds of the user's own.

    `about` is the rest of dataset.json, `now` the time in seconds UTC. Entries that break the rules of a corpus
    are left out, with a note.
    """
    kept = checked(imported)
    entries = [entry for entry, _ in kept]
    queries = complete(imported)
    labels = usable(imported, queries)
    found: dict[str, Sized] = {"entries": entries, "queries": queries, "labels": labels}
    feedback, manifest = [record for record in imported.feedback if record["timestamp"]], dict(about)
    found |= {"runs": imported.runs, "impressions": feedback}
    imported.note(len(imported.feedback) - len(feedback), "list", "of feedback without a time left out")
    if old is not None:
        before = _old_labels(old)
        new = len({query for query, _ in labels} - {query for query, _ in before})
        labels = before | labels
        queries = list(({q["id"]: q for q in _records(old, QUERIES)} | {q["id"]: q for q in queries}).values())
        own_log = _records(old, FEEDBACK)
        known_lines = {*map(canonical, own_log)}
        feedback = own_log + [record for record in feedback if canonical(record) not in known_lines]
        manifest |= {key: value for key, value in old.json(ABOUT).items() if key not in MANAGED}
        if new and manifest.get("sampled") in RANDOM_SAMPLES:  # nobody drew those of the store
            rest = f"from the store, so {ABOUT} no longer says {manifest['sampled']!r} of all"
            imported.note(new, "query has its first labels", rest, "queries have their first labels")
            manifest["sampled"] = "by hand"
    known = {entry.id for entry in entries}
    lost = {pair: grade for pair, grade in labels.items() if pair[1] not in known}
    ids = quote(", ".join(sorted({entry for _, entry in lost})), 120)
    imported.note(len(lost), "label", f"lost the entry and wait in {LOST}: {ids}")
    as_of = clock(imported, entries, now)
    arrays = arrays_of(imported, entries)
    own = {"system": imported.system} if imported.system else {}  # the user's own choice stays
    managed = {"text_for_embedding": imported.recipe} if imported.recipe else {}
    texts = {
        CORPUS: "".join(f"{line}\n" for _, line in kept),
        QUERIES: _lines(queries),
        QRELS: _qrels({pair: grade for pair, grade in labels.items() if pair not in lost}),
        ABOUT: canonical(own | manifest | managed | as_of),
        **({LOST: _qrels(lost)} if lost else {}),
        **({FEEDBACK: _lines(feedback)} if feedback else {}),
        **{f"runs/{name}.run": _run(name, lists) for name, lists in sorted(imported.runs.items())},
    }
    counts = {name: len(some) for name, some in found.items() if some}
    return FolderFiles(texts, arrays, imported.notes, counts)


def write_folder(folder: Path, files: FolderFiles) -> bool:
    """Make the folder, or bring it up to date in one step; whether anything changed.

    Other files of the folder stay, but for recorded vectors whose rows no longer fit, with a note in `files`.
    """
    texts = {name: text.encode() for name, text in files.texts.items()}
    for name, array in files.arrays.items():
        np.save(written := io.BytesIO(), array, allow_pickle=False)
        texts[name] = written.getvalue()
    stale = _stale(folder, texts, files)
    if not stale and all(_same(folder / name, data) for name, data in texts.items()):
        remove_drafts(folder)  # a process that was killed after the exchange left the folder that it replaced
        return False
    ours = {*texts, *(f"{name}.gz" for name in texts), *stale, LOST}

    def skipped(place: str, names: list[str]) -> list[str]:
        return [name for name in names if (Path(place) / name).relative_to(folder).as_posix() in ours]

    with draft(folder, folder=True) as made:
        if folder.exists():
            shutil.copytree(folder, made, ignore=skipped, symlinks=True, dirs_exist_ok=True)
        for name, data in texts.items():
            (made / name).parent.mkdir(exist_ok=True)
            write_bytes(made / name, data)
        move_folder(made, folder)
    return True


def _old_labels(old: ForeignStore) -> Labels:
    labels: Labels = {}
    for name in (QRELS, LOST):
        for number, line in old.lines(name) if old.has(name) else ():
            words = line.split()
            grade = read_integer(words[-1])
            if len(words) != 4 or grade is None:
                raise DataError(f"{old}: {name}:{number} is not a judgment; correct it before importing again")
            labels[words[0], words[2]] = grade
    return labels


def _records(old: ForeignStore, name: str) -> list[Record]:
    lines = old.lines(name) if old.has(name) else ()
    return [decoded(line, f"{old}: {name}:{number}") for number, line in lines]


def _lines(records: Iterable[Record]) -> str:
    return "".join(f"{line_of(record)}\n" for record in records)


def _qrels(labels: Labels) -> str:
    return "".join(f"{query} 0 {entry} {grade}\n" for (query, entry), grade in labels.items())


def _run(name: str, lists: Mapping[str, list[Scored]]) -> str:
    """A TREC run in the order of the lists; without scores that fall, the score is the place from the end."""
    lines = []
    for query, ranked in lists.items():
        scores = [score for _, score in ranked]
        falling = None not in scores and scores == sorted(scores, key=lambda score: -(score or 0.0))
        for place, (entry, score) in enumerate(ranked, 1):
            value = score if falling else len(ranked) - place + 1
            lines.append(f"{query} Q0 {entry} {place} {value} {name}\n")
    return "".join(lines)


def _stale(folder: Path, texts: Mapping[str, bytes], files: FolderFiles) -> list[str]:
    """Names of recorded vectors that the user added, and whose rows are not those of the new files."""
    stale = []
    for kind, table in (("corpus", CORPUS), ("queries", QUERIES)):
        if not _same(folder / table, texts[table]):
            stale += [path.name for path in folder.glob(f"{kind}.*.npy") if path.name not in files.arrays]
    if stale:
        files.notes.append(
            f"vectors whose rows no longer fit are removed, record them again: {', '.join(sorted(stale))}"
        )
    return stale


def _same(path: Path, data: bytes) -> bool:
    return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data


def check_target(folder: Path) -> ForeignStore | None:
    """The folder to bring up to date, None for a new one; ConfigError for one that no import made."""
    if not folder.exists():
        return None
    old = ForeignStore(folder)
    if folder.is_dir() and old.has(ABOUT):
        about = old.json(ABOUT)
        if isinstance(about, dict) and "source" in about:
            return old
    raise ConfigError(f"{quote(str(folder))} exists and was not made by import; name a new folder")
