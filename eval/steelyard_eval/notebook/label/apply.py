"""What judging writes into a data set: labels, what dataset.json has to say of them, and first queries.

Copying words from an entry misleads: such a query favours search by words, and strategies that are chosen by such
queries are worse than the default (docs/evidence/few-labels.md). So texts that repeat the entry are refused.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from steelyard.base.errors import PATH_WIDTH, ConfigError, quote, visible
from steelyard.base.extensions import extension
from steelyard.base.files import backup_path, canonical, read_bytes, read_text, write_text, write_texts
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.memory.text import terms
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import is_beir, qrels_file
from steelyard_eval.datasets.groups import normalised_text
from steelyard_eval.datasets.logs import decode, lines_of
from steelyard_eval.datasets.manifest import FILE as MANIFEST
from steelyard_eval.datasets.manifest import holds_hash, without_counts
from steelyard_eval.datasets.second_labels import SECOND as SECOND_LABELS
from steelyard_eval.notebook.label.judgment_file import Pair
from steelyard_eval.notebook.label.session import QRELS, Session, qrels_text
from steelyard_eval.notebook.label.statement import state_of
from steelyard_eval.recording.next_steps import queries_are_fixed, shell_word


@dataclass(frozen=True)
class Applied:
    """The files that were changed, and the pairs whose labels the data set did not have, or not so.

    `copies` are where the files that were changed had been kept, by file, None for one that was not there.
    """

    written: list[Path]
    added: list[Pair]
    changed: list[Pair]
    copies: dict[Path, Path | None]

    @property
    def undo(self) -> str:
        """The command that gives the data set every file again as it was; empty where none was changed."""
        words = [
            ["rm", shell_word(file)] if copy is None else ["cp", shell_word(copy), shell_word(file)]
            for file, copy in self.copies.items()
        ]
        return " && ".join(map(shlex.join, words))


def labels_file(folder: Path) -> Path | None:
    """The file of a data set that a judge's qrels replace; None for BEIR, which has a folder of them."""
    return None if is_beir(folder) else folder / qrels_file(FolderReader(folder))


def apply(session: Session) -> Applied:
    """Give the data set the labels of the judge beside those that it has now, and state them.

    Labels are added and changed, and none is taken out. All files are complete before the first is replaced. What
    was there stays beside it, as ``qrels.txt.bak`` and ``dataset.json.bak``. Raises ConfigError where there is
    nothing to copy, or no place.
    """
    dataset, source = session.pool.dataset, session.qrels
    file = labels_file(dataset.path)
    if file is None:
        raise ConfigError(f"{dataset.called} is in BEIR's form, with labels in a folder qrels; add yours there")
    if not (source.is_file() and session.file.is_file()):  # qrels without judgments may be of another data set
        others = {path.name.removesuffix(QRELS) for path in session.folder.glob(f"*{QRELS}")} - {session.judge}
        names = ", ".join(map(visible, sorted(others)[:3]))
        here = f"here are those of --judge {names}" if others else "judge first"
        raise ConfigError(f"{quote(str(source), PATH_WIDTH)} has no labels to apply; {here}")
    if session.first:
        second = {query: dict(row) for query, row in dataset.second.items()}
        given = session.held(session.given)
        for (query, entry), grade in given.items():
            second.setdefault(query, {})[entry] = grade
        return _written({dataset.path / SECOND_LABELS: qrels_text(second)}, [*given], [])
    held, now = dataset.qrels, session.labels
    added = [(query, id_) for query, row in now.items() for id_ in row if id_ not in held.get(query, {})]
    changed = [(query, id_) for query, row in held.items() for id_ in row if row[id_] != now[query][id_]]
    files: dict[Path, str | bytes] = {file: qrels_text(now).encode()} if added or changed else {}
    if files or session.counted()[1]:
        files |= _stated(session, file.name, qrels_text(now) if files else None)
    return _written(files, added, changed)


def _written(files: Mapping[Path, str | bytes], added: list[Pair], changed: list[Pair]) -> Applied:
    """Write the files, and the copies of what they replace first: wherever it is killed, no label is lost."""
    copies = {path: backup_path(path) if path.is_file() else None for path in files}
    kept: dict[Path, str | bytes] = {copy: read_bytes(path) for path, copy in copies.items() if copy}
    write_texts({**kept, **files})
    return Applied([*kept, *files], added, changed, copies)


def _stated(session: Session, name: str, labels: str | None) -> dict[Path, str | bytes]:
    """dataset.json with how the labels were chosen and, where there are other `labels`, the hash of their file."""
    folder = session.pool.dataset.path
    record = FolderReader(folder).json_object(MANIFEST) or {}
    now = record | state_of(session)
    if labels is not None:
        now = without_counts(now)
        if holds_hash(folder, name):
            now["files"] = {**record["files"], name: sha256(labels.encode()).hexdigest()}
    return {folder / MANIFEST: canonical(now)} if record and now != record else {}


WANTED = 20  # queries from which on labels choose better than the default
DRAWN = 120  # queries of a log that are drawn, in order: judging ends where the verdict stands
MAX_LOGGED_QUERIES = 100_000
COPIED_RUN_WORDS = 4
SHARE = 0.6  # of a query's words in the entry, from which on they are copied, where it has so many as a run
MAX_QUERY_CHARS = 2_000
QUERIES = "queries.jsonl"
SHORTEST = 3  # bytes: a key that was pressed is shorter, and a word in characters of its own is not
TOO_SHORT = (
    "a query of one or two letters finds nothing; u takes the last query back, an empty line goes on, q ends"
)
REPEATS_ENTRY = (
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
        if text and len(text) <= MAX_QUERY_CHARS and not extension("secrets").holds_secret(text):
            distinct.setdefault(normalised_text(text), text)
    texts = list(distinct.values())
    return [texts[i] for i in np.random.default_rng(seed).permutation(len(texts))[:count].tolist()]


def drawn_from_log(
    dataset: Dataset, seed: int = 0, log: str | Path | None = None, *, write: bool = True
) -> tuple[Dataset, list[str]]:
    """The data set with queries drawn from a log, each as likely as another however often it was asked; their ids.

    Up to `DRAWN` distinct ones are drawn; those that are new are appended to queries.jsonl where that is to be
    written. Where it is sealed by a hash, or has recorded vectors line by line, new ones are left out. Raises
    ConfigError where no query is left.
    """
    texts = logged_queries(dataset, seed, MAX_LOGGED_QUERIES, log)
    known = {normalised_text(query.text): query.id for query in reversed(dataset.queries)}
    if queries_are_fixed(dataset):
        texts = [text for text in texts if normalised_text(text) in known]
    if not texts:
        raise ConfigError(f"{dataset.called} has no log with usable queries; name one with --feedback")
    drawn = {normalised_text(text): text for text in texts[:DRAWN]}
    new = [
        Query(id=f"log-{sha256(key.encode()).hexdigest()[:12]}", text=text)
        for key, text in drawn.items()
        if key not in known
    ]
    known |= {normalised_text(query.text): query.id for query in new}
    if new and write:
        file = dataset.path / QUERIES
        before = read_text(file).rstrip("\n") if file.is_file() else ""
        write_text(file, (before and f"{before}\n") + _lines(new))
    return replace(dataset, queries=(*dataset.queries, *new)), [known[key] for key in drawn]


def _lines(queries: Sequence[Query]) -> str:
    rows = (json.dumps({"id": query.id, "text": query.text}, ensure_ascii=False) for query in queries)
    return "".join(f"{row}\n" for row in rows)


def log_has_more(dataset: Dataset, seed: int) -> bool:
    """Whether `draw_from_log` would add a query."""
    known = {normalised_text(query.text) for query in dataset.queries}
    drawn = () if queries_are_fixed(dataset) else logged_queries(dataset, seed, DRAWN)
    return any(normalised_text(text) not in known for text in drawn)


def reminders(dataset: Dataset, seed: int = 0) -> list[Entry]:
    """The entries in a random order: what a query may be about."""
    order = np.random.default_rng([seed, 1]).permutation(len(dataset.entries)).tolist()
    return [dataset.entries[i] for i in order]


def copied(text: str, entry: Entry) -> bool:
    """Whether a query repeats an entry: four words in a row, or most of its words."""
    content = terms(" ".join((entry.title, entry.text)).lower())
    asked = terms(text.lower())
    runs = {tuple(content[i : i + COPIED_RUN_WORDS]) for i in range(len(content) - COPIED_RUN_WORDS + 1)}
    if any(tuple(asked[i : i + COPIED_RUN_WORDS]) in runs for i in range(len(asked) - COPIED_RUN_WORDS + 1)):
        return True
    words = set(asked)
    return len(words) >= COPIED_RUN_WORDS and len(words & set(content)) >= SHARE * len(words)


def refused(text: str, entry: Entry) -> str:
    """Why a text is no query to be asked beside an entry; empty where it is one."""
    return TOO_SHORT if len(text.encode()) < SHORTEST else REPEATS_ENTRY if copied(text, entry) else ""


def save_queries(dataset: Dataset, texts: Sequence[str]) -> int:
    """Write the queries of a data set that has none; returns how many."""
    distinct = {normalised_text(text): text for text in texts}.values()
    write_text(
        dataset.path / QUERIES,
        _lines([Query(id=f"own-{at:02d}", text=text) for at, text in enumerate(distinct, 1)]),
    )
    return len(distinct)
