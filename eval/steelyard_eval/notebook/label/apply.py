"""What judging writes into a data set: labels, what dataset.json has to say of them, and first queries.

Copying words from an entry misleads: such a query favours search by words, and strategies that are chosen by such
queries are worse than the default (docs/start.md). So a text that repeats the entry is refused, and says why.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from steelyard.base.errors import PATH_WIDTH, ConfigError, shown
from steelyard.base.escape import visible
from steelyard.base.files import canonical, spare, write_text, write_texts
from steelyard.base.inputs import read_bytes, read_text
from steelyard.base.secret_texts import holds_secret
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.memory.text import terms
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import is_beir, qrels_file
from steelyard_eval.datasets.groups import wording
from steelyard_eval.datasets.logs import decode, lines_of
from steelyard_eval.datasets.manifest import FILE as MANIFEST
from steelyard_eval.datasets.manifest import holds_hash, without_counts
from steelyard_eval.notebook.label.judgments import Pair
from steelyard_eval.notebook.label.pool import Grades
from steelyard_eval.notebook.label.session import QRELS, Session, lines, qrels_text
from steelyard_eval.recording.steps import sealed, word


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
    now = record | session.state
    if labels is not None:
        now = without_counts(now)
        if holds_hash(folder, name):
            now["files"] = {**record["files"], name: sha256(labels.encode()).hexdigest()}
    return {folder / MANIFEST: canonical(now)} if record and now != record else {}


WANTED = 20
"""Queries from which on labels choose better than the default."""
DRAWN = 120
"""Queries of a log that are drawn, in order: judging ends where the verdict stands."""
MOST = 100_000
RUN = 4
"""Words in a row that are a copy."""
SHARE = 0.6
"""Of a query's words in the entry, from which on they are copied, where it has so many as a run."""
LONGEST = 2_000
QUERIES = "queries.jsonl"
SHORTEST = 3
"""Bytes: a key that was pressed is shorter, and a word in characters of its own is not."""
SHORT = "a query of one or two letters finds nothing; u takes the last query back, an empty line goes on, q ends"
COPIED = (
    "it has the entry's own words, and such a query favours search by words: ask as you would if you did not "
    "remember how it is written"
)


def logged_queries(
    dataset: Dataset, seed: int = 0, count: int = WANTED, log: str | Path | None = None
) -> list[str]:
    """Distinct queries of a log, the data set's own by default, drawn at random; empty without a log.

    A query that may hold a secret is left out, whoever wrote the log.
    """
    path = log or dataset.feedback
    if path is None:
        return []
    distinct: dict[str, str] = {}
    for _, line in lines_of(path):
        try:
            text = str(decode(line).user_query).strip()
        except ValueError:
            continue
        if text and len(text) <= LONGEST and not holds_secret(text):
            distinct.setdefault(wording(text), text)
    texts = list(distinct.values())
    return [texts[i] for i in np.random.default_rng(seed).permutation(len(texts))[:count].tolist()]


def draw_from_log(dataset: Dataset, seed: int = 0, log: str | Path | None = None) -> list[str]:
    """The ids of `drawn_from_log`, after the new ones are appended to the data set's queries.jsonl."""
    ids, new = drawn_from_log(dataset, seed, log)
    if new:
        file = dataset.path / QUERIES
        before = read_text(file).rstrip("\n") if file.is_file() else ""
        rows = [json.dumps({"id": query.id, "text": query.text}, ensure_ascii=False) for query in new]
        write_text(file, "".join(f"{row}\n" for row in [before, *rows] if row))
    return ids


def drawn_from_log(
    dataset: Dataset, seed: int = 0, log: str | Path | None = None
) -> tuple[list[str], list[Query]]:
    """Ids of up to `DRAWN` distinct queries of a log, each as likely as another however often it was asked.

    And those that the data set does not have; where its queries.jsonl is sealed by a hash, or has recorded vectors
    line by line, these are left out. Nothing is written. Raises ConfigError where no query is left.
    """
    texts = logged_queries(dataset, seed, MOST, log)
    known = {wording(query.text): query.id for query in reversed(dataset.queries)}
    if sealed(dataset):
        texts = [text for text in texts if wording(text) in known]
    if not texts:
        raise ConfigError(f"{dataset.called} has no log with queries that it can take; name one with --feedback")
    drawn = texts[:DRAWN]
    new = {wording(text): text for text in drawn if wording(text) not in known}
    named = {key: f"log-{sha256(key.encode()).hexdigest()[:12]}" for key in new}
    ids = [(known | named)[wording(text)] for text in drawn]
    return ids, [Query(id=named[key], text=text) for key, text in new.items()]


def log_has_more(dataset: Dataset, seed: int) -> bool:
    """Whether `draw_from_log` would add a query."""
    known = {wording(query.text) for query in dataset.queries}
    drawn = () if sealed(dataset) else logged_queries(dataset, seed, DRAWN)
    return any(wording(text) not in known for text in drawn)


def reminders(dataset: Dataset, seed: int = 0) -> list[Entry]:
    """The entries in a random order: what a query may be about."""
    order = np.random.default_rng([seed, 1]).permutation(len(dataset.entries)).tolist()
    return [dataset.entries[i] for i in order]


def copied(text: str, entry: Entry) -> bool:
    """Whether a query repeats an entry: four words in a row, or most of its words."""
    content = terms(" ".join((entry.title, entry.text)).lower())
    asked = terms(text.lower())
    runs = {tuple(content[i : i + RUN]) for i in range(len(content) - RUN + 1)}
    if any(tuple(asked[i : i + RUN]) in runs for i in range(len(asked) - RUN + 1)):
        return True
    words = set(asked)
    return len(words) >= RUN and len(words & set(content)) >= SHARE * len(words)


def refused(text: str, entry: Entry) -> str:
    """Why a text is no query to be asked beside an entry; empty where it is one."""
    return SHORT if len(text.encode()) < SHORTEST else COPIED if copied(text, entry) else ""


def save_queries(dataset: Dataset, texts: Sequence[str]) -> int:
    """Write the queries of a data set that has none; returns how many. ConfigError where it has some."""
    if dataset.queries:
        raise ConfigError(f"{dataset.called} has queries; add yours to {QUERIES}")
    if dataset.in_memory:
        raise ConfigError(f"{dataset.called} is in no folder; import it first (steelyard import)")
    distinct = list({wording(text): text for text in texts}.values())
    lines = [
        json.dumps({"id": f"own-{number:02d}", "text": text}, ensure_ascii=False)
        for number, text in enumerate(distinct, 1)
    ]
    write_text(dataset.path / QUERIES, "".join(f"{line}\n" for line in lines))
    return len(lines)
