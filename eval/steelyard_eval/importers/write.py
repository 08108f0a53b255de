"""What was imported as the files of a data set, and a folder brought up to date without losing labels.

The corpus is the store's: entries that left the store leave the folder. Queries, labels and feedback are also
the user's own: an imported query replaces the one of the same id and everything else stays. Labels whose entry
has left wait in `LOST` until it returns.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import ConfigError, DataError, shown
from steelyard.base.fields import format_time
from steelyard.base.files import MAX_NESTING, STRICT_JSON, canonical, draft, move_folder, sweep, write_bytes
from steelyard.memory.entry import Entry, read_entry
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets.labels import FAIR
from steelyard_eval.datasets.qrels import whole_number
from steelyard_eval.datasets.states import moved
from steelyard_eval.importers.base import BROKEN, Imported, Record, Scored
from steelyard_eval.importers.source import ForeignStore, decoded

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels.txt"
FEEDBACK, ABOUT = "feedback.jsonl", "dataset.json"
LOST = "qrels.lost.txt"
"""Labels of entries that are not in the corpus now."""
MANAGED = ("as_of", "source", "text_for_embedding")
"""Keys of dataset.json that each import writes anew; the others are the user's once they are there."""
NEEDED = frozenset(("id", "text"))
"""Fields without which an entry is none."""
GRADES = frozenset(range(-1, 5))
SHOWN = 3
"""How many faults of one kind are named."""

Labels = dict[tuple[str, str], int]


@dataclass
class FolderFiles:
    """The files of a data set by name: texts, and arrays of float16."""

    texts: dict[str, str]
    arrays: dict[str, NDArray[np.float16]]
    notes: list[str] = field(default_factory=list)


def files_of(imported: Imported, about: Mapping[str, object], old: ForeignStore | None = None) -> FolderFiles:
    """The files of a data set with what was imported, and with what the old folder holds of the user's own.

    `about` is the rest of dataset.json. Entries that break the rules of a corpus are left out, with a note.
    """
    kept, notes = _checked(imported.entries)
    entries = [entry for entry, _ in kept]
    labels = {(query, entry): grade for query, grades in imported.qrels.items() for entry, grade in grades.items()}
    queries, faults = _whole(imported.queries)
    labels, unusable = _usable(labels, queries)
    notes += faults + unusable
    feedback, manifest = imported.feedback, dict(about)
    if old is not None:
        before = _old_labels(old)
        new = len({query for query, _ in labels} - {query for query, _ in before})
        labels = before | labels
        queries = list(({q["id"]: q for q in _records(old, QUERIES)} | {q["id"]: q for q in queries}).values())
        feedback = _joined(_records(old, FEEDBACK), feedback)
        manifest |= {key: value for key, value in old.json(ABOUT).items() if key not in MANAGED}
        if new and manifest.get("sampled") in FAIR:  # nobody drew those of the store
            count = counted(new, "query has its first labels", "queries have their first labels")
            notes.append(f"{count} from the store, so {ABOUT} no longer says {manifest['sampled']!r} of all")
            manifest["sampled"] = "by hand"
    known = {entry.id for entry in entries}
    present = {pair: grade for pair, grade in labels.items() if pair[1] in known}
    lost = {pair: grade for pair, grade in labels.items() if pair[1] not in known}
    if lost:
        ids = ", ".join(shown(entry, 40) for entry in sorted({entry for _, entry in lost})[:SHOWN])
        notes.append(f"{counted(len(lost), 'label')} lost the entry and wait in {LOST}: {ids}")
    arrays, left_out = _arrays(imported, entries)
    texts = {
        CORPUS: "".join(f"{line}\n" for _, line in kept),
        QUERIES: _lines(queries),
        QRELS: _qrels(present),
        ABOUT: canonical(_manifest(imported, entries, manifest)),
        **({LOST: _qrels(lost)} if lost else {}),
        **({FEEDBACK: _lines(feedback)} if feedback else {}),
        **{f"runs/{name}.run": _run(name, lists) for name, lists in sorted(imported.runs.items())},
    }
    return FolderFiles(texts, arrays, [*imported.notes, *notes, *left_out])


def moved_entries(old: ForeignStore | None, files: FolderFiles) -> str:
    """How many entries the new files add to a folder, remove and change; empty without any."""
    if old is None or not old.has(CORPUS):
        return ""
    try:
        was, now = {line for _, line in old.lines(CORPUS)}, set(files.texts[CORPUS].split("\n")[:-1])
        ids = [{STRICT_JSON.decode(line)["id"]: line for line in lines} for lines in (was - now, now - was)]
        return moved(*ids)
    except (DataError, *BROKEN):  # the old corpus, which the import makes whole again
        return ""


def write_folder(folder: Path, files: FolderFiles) -> bool:
    """Make the folder, or bring it up to date in one step; whether anything changed.

    Other files of the folder stay, but for recorded vectors whose rows no longer fit, with a note in `files`.
    """
    texts = {name: text.encode() for name, text in files.texts.items()}
    if folder.exists():
        stale = _stale(folder, texts, files)
        arrays = all(_same_array(folder / name, array) for name, array in files.arrays.items())
        if arrays and not stale and all(_same(folder / name, data) for name, data in texts.items()):
            sweep(folder)  # a process that was killed after the exchange left the folder that it replaced
            return False
    else:
        stale = []
    with draft(folder, folder=True) as made:
        if folder.exists():
            ours = {*texts, *(f"{name}.gz" for name in texts), *files.arrays, *stale, LOST}
            _link(folder, made, ours)
        for name, data in texts.items():
            (made / name).parent.mkdir(exist_ok=True)
            write_bytes(made / name, data)
        for name, array in files.arrays.items():
            with (made / name).open("wb") as stream:
                np.save(stream, array, allow_pickle=False)
        move_folder(made, folder)
    return True


def _checked(records: Iterable[Record]) -> tuple[list[tuple[Entry, str]], list[str]]:
    """The entries that a corpus can hold, with their lines, and a note on the others."""
    kept: dict[str, tuple[Entry, str]] = {}
    wrong: list[str] = []
    without: Counter[str] = Counter()
    for record in records:
        entry, faults = read_entry(record)
        spoilt = {fault.field: fault.rule for fault in faults} | _unheld(record)
        if spoilt and not spoilt.keys() & NEEDED:
            record = {name: value for name, value in record.items() if name not in spoilt}
            entry, faults = read_entry(record)
            without.update(f"{name}, which {rule}" for name, rule in spoilt.items())
        if entry is None:
            reason = "; ".join(f"{fault.field} {fault.rule}" for fault in faults)
            wrong.append(f"{shown(str(record.get('id', '')), 40)} ({reason})")
        elif entry.id in kept:
            wrong.append(f"{shown(entry.id, 40)} (its id is there twice)")
        else:
            kept[entry.id] = entry, _line(record)
    note = f"{counted(len(wrong), 'entry is', 'entries are')} left out: {', '.join(wrong[:SHOWN])}"
    notes = [f"{counted(count, 'entry is', 'entries are')} read without {what}" for what, count in without.items()]
    return list(kept.values()), [*notes, note] if wrong else notes


def _unheld(record: Record) -> dict[str, str]:
    """The values that strict JSON cannot hold, such as bytes, half a surrogate pair, deep nests."""
    try:
        line = _line(record)
        line.encode()
        if line.count("[") + line.count("{") > MAX_NESTING:
            STRICT_JSON.decode(line)
    except (TypeError, ValueError, RecursionError):
        if len(record) == 1:
            return dict.fromkeys(record, "JSON cannot hold")
        return dict(item for name, value in record.items() for item in _unheld({name: value}).items())
    return {}


def _manifest(imported: Imported, entries: list[Entry], manifest: Record) -> Record:
    """dataset.json; its clock is the latest date of the store, so that importing twice writes the same bytes."""
    times = [t for entry in entries for t in (entry.created_at, entry.updated_at) if t is not None]
    made = {"system": imported.system} if imported.system and "system" not in manifest else {}
    made |= {"text_for_embedding": imported.recipe} if imported.recipe else {}
    made |= {"as_of": format_time(max(times))} if times else {}
    return manifest | made


def _arrays(imported: Imported, entries: list[Entry]) -> tuple[dict[str, NDArray[np.float16]], list[str]]:
    """The vectors of every model that has one for each entry, and a note on other models."""
    arrays: dict[str, NDArray[np.float16]] = {}
    notes = []
    for model, vectors in sorted(imported.vectors.items()):
        missing = sum(entry.id not in vectors for entry in entries)
        if missing:
            have = counted(missing, "entry has none", "entries have none")
            notes.append(f"the vectors of {shown(model)} are left out, because {have}; texts are embedded anew")
            continue
        if odd := _odd([vectors[entry.id] for entry in entries]):
            notes.append(f"the vectors of {shown(model)} are left out: {odd}; texts are embedded anew")
        elif entries:
            arrays[f"corpus.{model}.f16.npy"] = np.array([vectors[e.id] for e in entries], dtype=np.float16)
    return arrays, notes


def _odd(vectors: Sequence[NDArray[np.float32]]) -> str:
    """Why these cannot be the vectors of a corpus in half precision; empty where they can."""
    if len({vector.shape for vector in vectors}) > 1:
        return "they differ in length"
    if any(vector.ndim != 1 for vector in vectors):
        return "they are no lists of numbers"
    with np.errstate(over="ignore"):
        halves = (vector.astype(np.float16) for vector in vectors)
        bad = sum(not half.any() or not np.isfinite(half).all() for half in halves)
    have = counted(bad, "entry has one that is", "entries have some that are")
    return f"{have} all zeros, infinite or no number" if bad else ""


def _whole(queries: list[Record]) -> tuple[list[Record], list[str]]:
    """The queries that have an id and a text, and a note on the others."""
    whole = [query for query in queries if query.get("id") and isinstance(query.get("text"), str)]
    lacking = len(queries) - len(whole)
    return whole, [f"{counted(lacking, 'query', 'queries')} without an id or a text left out"] if lacking else []


def _usable(labels: Labels, queries: list[Record]) -> tuple[Labels, list[str]]:
    """The labels of queries that are there, with grades that are some, and notes on the others."""
    asked = {query["id"] for query in queries}
    strays = {pair for pair in labels if pair[0] not in asked}
    odd = {pair for pair, grade in labels.items() if grade not in GRADES} - strays
    notes = [f"{counted(len(strays), 'label')} left out, whose query is not there"] if strays else []
    notes += [f"{counted(len(odd), 'label')} left out, whose grade is not one of -1 to 4"] if odd else []
    return {pair: grade for pair, grade in labels.items() if pair not in strays | odd}, notes


def _old_labels(old: ForeignStore) -> Labels:
    labels: Labels = {}
    for name in (QRELS, LOST):
        for number, line in old.lines(name) if old.has(name) else ():
            words = line.split()
            grade = whole_number(words[-1])
            if len(words) != 4 or grade is None:
                raise DataError(f"{old}: {name}:{number} is no judgment; correct it before importing again")
            labels[words[0], words[2]] = grade
    return labels


def _records(old: ForeignStore, name: str) -> list[Record]:
    """The lines of a JSON Lines file of the folder; none where it is absent."""
    lines = old.lines(name) if old.has(name) else ()
    return [decoded(line, f"{old}: {name}:{number}") for number, line in lines]


def _joined(old: list[Record], new: list[Record]) -> list[Record]:
    """The old lines, then the new ones that are not among them."""
    known = {_line(record) for record in old}
    return old + [record for record in new if _line(record) not in known]


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False)


def _lines(records: Iterable[Record]) -> str:
    return "".join(f"{_line(record)}\n" for record in records)


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


def _same_array(path: Path, array: NDArray[np.float16]) -> bool:
    try:
        return path.is_file() and np.array_equal(np.load(path, mmap_mode="r", allow_pickle=False), array)
    except (ValueError, OSError):
        return False


def _link(folder: Path, made: Path, ours: set[str]) -> None:
    """Put all files of a folder that are not `ours` into another one, by links where the file system has them."""

    def skipped(place: str, names: list[str]) -> list[str]:
        return [name for name in names if (Path(place) / name).relative_to(folder).as_posix() in ours]

    def linked(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)

    shutil.copytree(folder, made, copy_function=linked, ignore=skipped, symlinks=True, dirs_exist_ok=True)


def check_target(folder: Path) -> ForeignStore | None:
    """The folder to bring up to date, None for a new one; ConfigError for one that no import made."""
    if not folder.exists():
        return None
    old = ForeignStore(folder)
    if folder.is_dir() and old.has(ABOUT):
        about = old.json(ABOUT)
        if isinstance(about, dict) and "source" in about:
            return old
    raise ConfigError(f"{shown(str(folder))} exists and was not made by import; name a new folder")
