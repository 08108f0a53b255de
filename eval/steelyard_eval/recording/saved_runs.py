"""What was measured on a data set, and when: a row for every compare, recommend, tune, learn and gate.

The SQLite file is ``.steelyard/runs.db`` beside the data set, or in the cache folder where that cannot be written
or is not ours. It holds ids, grades, hashes and numbers, never a text of an entry or a query. It takes part in no
result, and whatever keeps it from being written is no error.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec
from msgspec import Struct

from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, quote
from steelyard.base.files import cache_folder, compact
from steelyard_eval.common.formatting import spans
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.dataset import hashed, states
from steelyard_eval.result.structs import Result, replace

FOLDER, FILE = ".steelyard", "runs.db"
SWITCH = "STEELYARD_RUNS"  # set to `off`, nothing is kept
LARGEST = 256 * 2**20  # bytes of a file that is read
BUSY_TIMEOUT_MS = 10_000  # milliseconds that another writer is waited for
MAX_TRACKED_ITEMS = 20_000  # entries or queries that are compared one by one; of more only the hash
LISTED = 8  # contenders whose values by query are kept
TABLES = (
    "CREATE TABLE runs(id INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, facts TEXT NOT NULL) STRICT",
    "CREATE TABLE states(digest TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT, WITHOUT ROWID",
)
"""A part of the data, and the values by query, are kept by their hash, once for all runs that share them."""
PART_TYPES = {"labels": dict[str, dict[str, int]], "values": dict[str, dict[str, float | None]]}
T = TypeVar("T")


class SavedRow(Struct, frozen=True):
    """What was measured for a contender."""

    label: str
    mean: float
    strategy: str | None = None
    settings: str | None = None
    low: float | None = None
    high: float | None = None


class RunFacts(Struct, frozen=True):
    """What is kept of a result; `states` has the hash of each part of the data, and of the values by query."""

    tool: str = ""
    metric: str = ""
    split: str = ""
    verdict: str = ""
    baseline: str = ""
    chosen: str = ""
    labels_needed: int | None = None
    restricted: bool = False  # to what a target can run, or to a cost
    rows: list[SavedRow] = []
    states: dict[str, str] = {}

    @property
    def own(self) -> SavedRow | None:
        """What it is about: what it chose or kept, else its only weights file, else the best."""
        kept = [row for row in self.rows if self.verdict == "keep" and row.label == self.baseline]
        files = [row for row in self.rows if row.label.endswith(".json")]
        chosen = [row for row in [*files, *self.rows] if row.strategy and row.strategy == self.chosen]
        best = sorted(self.rows, key=lambda row: -row.mean)
        return next(iter([*kept, *chosen, *(files if len(files) == 1 else best)]), None)


@dataclass(frozen=True)
class SavedRun:
    """One run: its number, time (UTC), job, and what it found."""

    id: int
    at: str
    kind: str
    facts: RunFacts


def keep(dataset: Dataset, result: Result, now: Callable[[], datetime] | None = None) -> None:
    """Keep what a job found; nothing of a set in memory, under STEELYARD_RUNS=off, or without a place."""
    if os.environ.get(SWITCH) == "off" or dataset.in_memory:
        return
    contents = _hashed({**parts_of(dataset), "values": _values(result)})
    facts = replace(_facts(result), states={name: state[0] for name, state in contents.items()})
    when = (now() if now else datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    job = "tune" if result.provenance.command[1:2] == ["tune"] else result.kind
    insert = "INSERT INTO runs(at, kind, facts) VALUES(?, ?, ?)"
    for path in _places(dataset):
        with suppress(apsw.Error, OSError, DataError):
            with closing(_opened(path, write=True)) as db, _transaction(db):
                db.execute(insert, (when, job, msgspec.json.encode(facts).decode()))
                db.executemany("INSERT OR IGNORE INTO states VALUES(?, ?)", list(contents.values()))
            return


def load_runs(dataset: Dataset) -> list[SavedRun]:
    """All runs of a data set, oldest first; DataError for a file that is damaged or not of this program."""
    found = _read(dataset, [("SELECT id, at, kind, facts FROM runs ORDER BY id", ())])
    rows = [row for rows in found for row in rows]
    return [SavedRun(id_, at, kind, _decoded(dataset, facts, RunFacts)) for id_, at, kind, facts in rows]


def states_of(dataset: Dataset, run: SavedRun) -> dict[str, Any]:
    """What the entries, queries, labels and lists of a run were, by part; without those that were too many."""
    asked = [("SELECT content FROM states WHERE digest = ?", (digest,)) for digest in run.facts.states.values()]
    known = zip(run.facts.states, _read(dataset, asked), strict=False)
    return {
        name: _decoded(dataset, rows[0][0], PART_TYPES.get(name, dict[str, str])) for name, rows in known if rows
    }


def decided_on(dataset: Dataset) -> SavedRun | None:
    """The last kept recommend, without a restriction, on these entries and labels; None without one."""
    with suppress(DataError):
        parts = {name: part for name, part in parts_of(dataset).items() if name != "queries"}  # new ones may wait
        now = {name: state[0] for name, state in _hashed(parts).items()}
        for run in reversed(load_runs(dataset)):
            free = run.kind == "recommend" and not run.facts.restricted
            if free and run.facts.states.items() >= now.items():
                return run
    return None


def find_run(runs: list[SavedRun], id_: int) -> SavedRun:
    """A run by its number; ConfigError with the known ones."""
    for run in runs:
        if run.id == id_:
            return run
    known = ", ".join(spans([run.id for run in runs])) or "none"
    raise ConfigError(f"there is no run {id_}; valid: {known}")


def _places(dataset: Dataset) -> Iterator[Path]:
    """Beside a data set of our own form, then in the cache folder by the set's path."""
    folder = Path(os.path.realpath(dataset.path))
    ours = any((folder / name).is_file() for name in ("dataset.json", "corpus.jsonl", "corpus.jsonl.gz"))
    within = folder / FOLDER
    if ours and not within.is_symlink() and not (within / FILE).is_symlink():
        yield within / FILE
    yield cache_folder(os.environ) / "runs" / f"{sha256(os.fsencode(folder)).hexdigest()[:32]}.db"


def _kept_file(dataset: Dataset) -> Path | None:
    return next(filter(Path.is_file, _places(dataset)), None)


def _opened(path: Path, *, write: bool = False) -> apsw.Connection:
    """The file, made where it is to be written and is not there; DataError for somebody else's."""
    if write and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.parent.name == FOLDER:
            # Made, so that it is written through no link.
            with suppress(FileExistsError), (path.parent / ".gitignore").open("x") as stream:
                stream.write("*\n")
    if path.exists() and path.stat().st_size > LARGEST:
        raise DataError(f"{_named(path)} is larger than {LARGEST >> 20} MB; delete it to begin anew")
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if write else apsw.SQLITE_OPEN_READONLY
    db = apsw.Connection(str(path), flags=flags)
    try:
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        with _transaction(db) if write else db:
            tables = {sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
            if write and not tables:
                for table in TABLES:
                    db.execute(table.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
            elif tables != {*TABLES}:
                raise DataError(f"{_named(path)} is not a file of runs; move it away")
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def _transaction(db: apsw.Connection) -> Iterator[None]:
    """One that waits for other writers as it begins: a reader that wants to write later would not."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _read(dataset: Dataset, asked: Sequence[tuple[str, tuple[str, ...]]]) -> list[list[tuple[Any, ...]]]:
    if (path := _kept_file(dataset)) is None:
        return []
    try:
        with closing(_opened(path)) as db:
            return [db.execute(sql, values).fetchall() for sql, values in asked]
    except apsw.BusyError:
        raise DataError(f"{_named(path)} is locked by another program; try again when that has ended") from None
    except (apsw.Error, OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {_named(path)}: {error}; delete it to begin anew") from None


def _decoded(dataset: Dataset, text: object, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(str(text), type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise DataError(f"{_named(_kept_file(dataset))} is damaged; delete it to begin anew") from None


def _named(path: Path | None) -> str:
    return quote(str(path), PATH_WIDTH)


def parts_of(dataset: Dataset) -> dict[str, Mapping[str, Any]]:
    """The state of each part, with how each labelled query was drawn; of what is too large its hash alone."""
    parts: dict[str, Mapping[str, Any]] = {**states(dataset, MAX_TRACKED_ITEMS)}
    parts["entries"] = parts["entries"] or {"": dataset.sha256}
    if dataset.qrels and not parts["labels"]:
        parts["labels"] = {"all": {"labels": int(hashed(dataset.qrels)[:8], 16)}}
    return {**parts, "provenance": dict(dataset.sampling_by_query)}


def _hashed(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    return {name: (hashed(part), compact(part)) for name, part in parts.items() if part}


def _values(result: Result) -> dict[str, dict[str, float | None]]:
    """The value of every query: of weights files, and of the first in the result."""
    if not 0 < len(result.queries) <= MAX_TRACKED_ITEMS:
        return {}
    labels = sorted(result.queries[0].values, key=lambda label: not label.endswith(".json"))[:LISTED]
    return {label: {query.id: query.values.get(label) for query in result.queries} for label in labels}


def _facts(result: Result) -> RunFacts:
    decision, choice = result.decision, result.choice
    rows = [
        SavedRow(row.label, mean.mean, row.strategy, row.settings, mean.low, mean.high)
        for row in result.rows
        if (mean := row.means.get(result.metric))
        and (result.kind != "gate" or row.gain)  # not those of the baseline
    ]
    return RunFacts(
        tool=result.provenance.tool,
        metric=result.metric,
        split=result.provenance.split,
        verdict=result.verdict,
        baseline=result.provenance.baseline,
        chosen=choice.strategy if decision and choice else "",
        labels_needed=decision.more if decision else None,
        restricted=any(one.key.startswith("restricted") for one in result.answer.because),
        rows=sorted(rows, key=lambda row: (-row.mean, row.label)),
    )
