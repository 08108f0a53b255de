"""What was measured on a data set, and when: a row for every compare, recommend, tune, learn and gate.

The SQLite file is ``.steelyard/runs.db`` beside the data set, or in the cache folder where that cannot be written
or is not ours. It holds ids, grades, hashes and numbers, never a text of an entry or a query. It takes part in no
result, and whatever keeps it from being written is no error. A baseline's history is another thing: who accepted
what, and why.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

import apsw
import msgspec

from steelyard.base.cache_folder import cache_folder
from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, shown
from steelyard.base.files import STRICT_JSON, compact
from steelyard_eval.common.markup import spans
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.kept_labels import kept_labels
from steelyard_eval.datasets.states import NAMED, State, hashed, moved, states
from steelyard_eval.recording.revision import revision

Labels = Mapping[str, Mapping[str, int]]
Written = Mapping[str, Any]
"""The document of whichever job; what is not in it is not kept."""
FOLDER, FILE = ".steelyard", "runs.db"
SWITCH = "STEELYARD_RUNS"
"""Set to `off`, nothing is kept."""
LARGEST = 256 * 2**20
"""Bytes of a file that is read."""
PATIENCE = 10_000
"""Milliseconds that another writer is waited for."""
MOST = 20_000
"""Entries or queries whose changes are told one by one; of more only whether anything changed."""
TABLES = (
    "CREATE TABLE runs(id INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, facts TEXT NOT NULL) STRICT",
    "CREATE TABLE states(digest TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT, WITHOUT ROWID",
)
INSERT = "INSERT INTO runs SELECT max(coalesce(max(id), 0), ?) + 1, ?, ?, ? FROM runs"
"""No number is given twice: the file's user_version, the first value, is that of the last run that was deleted."""
PARTS = {
    "entries": "entries",
    "queries": "queries",
    "labels": "labels",
    "provenance": "provenance",
    "ranked": "result lists",
}
"""What is kept by its hash, once for all runs that share it."""
CONTENTS = {"labels": dict[str, dict[str, int]], "ranked": dict[str, dict[str, tuple[float | None, str]]]}
"""What the content of a part may be, where it is not a hash by id."""
_ROWS = 40
LISTED = 8
"""Contenders whose values by query are kept."""
CURRENT = ".current.json"
"""How the file ends that has what is run while another one is tried."""


class KeptRow(TypedDict):
    """What was measured for a contender."""

    label: str
    mean: float
    strategy: NotRequired[str | None]
    system: NotRequired[str | None]
    profile: NotRequired[str | None]
    settings: NotRequired[str]
    low: NotRequired[float | None]
    high: NotRequired[float | None]


class KeptFacts(TypedDict, total=False):
    """What is read of a run: the file may be anybody's."""

    tool: str
    code: str
    metric: str
    model: str
    limit: int
    restriction: str
    verdict: str
    baseline: str
    chosen: str
    split: str
    labels_needed: int
    promise: dict[str, object]
    weights: dict[str, dict[str, object] | None]
    rows: list[KeptRow]
    states: dict[str, str]


@dataclass(frozen=True)
class KeptRun:
    """One run: its number, time (UTC), job, and what it found; `states` are the hashes of `PARTS`."""

    id: int
    at: str
    kind: str
    facts: KeptFacts

    @property
    def states(self) -> Mapping[str, str]:
        """The hash of each part."""
        return self.facts.get("states") or {}

    def row(self, label: str) -> KeptRow | None:
        """What was measured for a contender."""
        return next((row for row in self.facts.get("rows", ()) if row["label"] == label), None)

    @property
    def today(self) -> KeptRow | None:
        """What was used then, or what the others were tested against."""
        return self.row(str(self.facts.get("baseline")))

    @property
    def chosen(self) -> dict[str, object] | None:
        """The weights of what it chose, under try what to try; of compare and gate those of the only file."""
        weights = self.facts.get("weights") or {}
        return weights.get("attempt") or weights.get("config") or None

    def file(self, path: Path) -> dict[str, object] | None:
        """Its weights for a file: for `*.current.json` what stayed in use, for others what it chose."""
        weights = self.facts.get("weights") or {}
        stayed = weights.get("attempt") or self.facts.get("verdict") == "keep"
        used = weights.get("config") if stayed else None
        return used if path.name.endswith(CURRENT) else self.chosen

    @property
    def best(self) -> KeptRow | None:
        """The contender with the highest mean."""
        return max(self.facts.get("rows", ()), key=lambda row: row["mean"], default=None)


def keep(
    dataset: Dataset,
    kind: str,
    document: Mapping[str, object],
    weights: Mapping[str, Mapping[str, object] | None] | None = None,
    now: Callable[[], datetime] | None = None,
) -> None:
    """Keep what a job found; nothing of a set in memory, under STEELYARD_RUNS=off, or without a place.

    `weights` are the records of the files that it would write: `config`, what to run, and `attempt`, what to try.
    """
    if os.environ.get(SWITCH) == "off" or dataset.in_memory:
        return
    contents = _states(dataset, document)
    facts = {
        **_facts(document),
        **({"weights": dict(weights)} if weights else {}),
        "code": revision(Path.cwd()),
        "states": {name: state[0] for name, state in contents.items()},
    }
    when = (now() if now else datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for path in _places(dataset):
        try:
            with closing(_opened(path, write=True)) as db, _transaction(db):
                db.execute(INSERT, (db.pragma("user_version"), when, kind, compact(facts)))
                db.executemany("INSERT OR IGNORE INTO states VALUES(?, ?)", list(contents.values()))
        except (apsw.Error, OSError, DataError):
            continue
        return


def kept(dataset: Dataset) -> list[KeptRun]:
    """All runs of a data set, oldest first; DataError for a file that is damaged or not of this program."""
    path = _file(dataset)
    if path is None:
        return []
    with _reading(path) as db:
        rows = db.execute("SELECT id, at, kind, facts FROM runs ORDER BY id").fetchall()
    return [
        KeptRun(int(str(id_)), str(at), str(kind), cast(KeptFacts, _decoded(facts, path, KeptFacts)))
        for id_, at, kind, facts in rows
    ]


def forget(dataset: Dataset, id_: int) -> KeptRun:
    """Delete a run with what is kept for it alone, and return it; errors as of `kept` and `find_run`."""
    run, path = find_run(kept(dataset), id_), _file(dataset)
    if path is not None:
        with _reading(path, write=True) as db, _transaction(db):
            db.execute("DELETE FROM runs WHERE id = ?", (id_,))
            db.pragma("user_version", max(id_, db.pragma("user_version")))
            used = "SELECT value FROM runs, json_each(facts, '$.states')"
            db.execute(f"DELETE FROM states WHERE digest NOT IN ({used})")  # noqa: S608 -- no text of others
    return run


def states_of(dataset: Dataset, run: KeptRun) -> dict[str, Any]:
    """What the entries, queries, labels and lists of a run were, by part; without those that were too many."""
    path = _file(dataset)
    if path is None:
        return {}
    with _reading(path) as db:
        sql = "SELECT content FROM states WHERE digest = ?"
        rows = {name: db.execute(sql, (digest,)).fetchone() for name, digest in run.states.items()}
    known = {name: row[0] for name, row in rows.items() if row is not None}
    return {name: _decoded(text, path, CONTENTS.get(name, dict[str, str])) for name, text in known.items()}


def moved_since_last(dataset: Dataset) -> list[str]:
    """What is no longer as the last kept run measured it, a line a part; nothing where that cannot be told.

    Where all is said to be judged, also what relevant labels that came or went say of that, unless the labels are
    those that `judge --apply` had replaced.
    """
    with suppress(DataError):
        for run in [run for run in kept(dataset) if run.facts.get("verdict") != "mismatch"][-1:]:
            before, now = states_of(dataset, run), _parts(dataset)
            if "provenance" not in before:  # an earlier version kept none
                del now["provenance"]
            told = {name: moved(before.get(name) or part, part, named=NAMED) for name, part in now.items() if part}
            lines = [f"{name} since run {run.id}: {change}" for name, change in told.items() if change]
            replaced = kept_labels(dataset)
            doubtful = dataset.complete and not (replaced and replaced[1] == dataset.qrels)
            return [*lines, *(_incomplete(before.get("labels", {}), dataset.qrels) if doubtful else ())]
    return []


def decided_on(dataset: Dataset) -> KeptRun | None:
    """The last kept recommend on these very entries, queries and labels; None where none can be read."""
    with suppress(DataError):
        now = {name: state[0] for name, state in _states(dataset, {}).items()}
        for run in reversed(kept(dataset)):
            if run.kind == "recommend" and all(run.states.get(name) == digest for name, digest in now.items()):
                return run
    return None


def _incomplete(before: Labels, now: Labels) -> Iterator[str]:
    """What is doubtful where an entry without a label is said not to be relevant."""
    counts = {"gone": _relevant_alone(before, now), "new": _relevant_alone(now, before)}
    if before and any(counts.values()):
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        yield (
            f"labels of relevant entries: {told}. dataset.json says that all is judged (pool: complete), so what "
            'has no label counts as not relevant; if that is wrong, take "pool" out of it'
        )


def _relevant_alone(these: Labels, those: Labels) -> int:
    """How many entries these labels call relevant, and those do not name."""
    return sum(
        grade > 0 and entry not in those.get(query, {})
        for query, own in these.items()
        for entry, grade in own.items()
    )


def find_run(runs: list[KeptRun], id_: int) -> KeptRun:
    """A run by its number; ConfigError with the known ones."""
    for run in runs:
        if run.id == id_:
            return run
    known = ", ".join(spans([run.id for run in runs])) or "none"
    raise ConfigError(f"there is no run {id_}; kept are {known}")


# Inside


def _places(dataset: Dataset) -> Iterator[Path]:
    """Beside a data set of our own form, then in the cache folder by the set's path."""
    folder = Path(os.path.realpath(dataset.path))
    ours = any((folder / name).is_file() for name in ("dataset.json", "corpus.jsonl", "corpus.jsonl.gz"))
    within = folder / FOLDER
    if ours and not within.is_symlink() and not (within / FILE).is_symlink():
        yield within / FILE
    yield cache_folder(os.environ) / "runs" / f"{sha256(os.fsencode(folder)).hexdigest()[:32]}.db"


def _file(dataset: Dataset) -> Path | None:
    """The file that holds runs; None where nothing was kept."""
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
        db.set_busy_timeout(PATIENCE)
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        with _transaction(db) if write else db:
            tables = {sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
            if write and not tables:
                for table in TABLES:
                    db.execute(table.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
            elif tables != {*TABLES}:
                raise DataError(f"{_named(path)} is no file of kept runs; move it away")
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


@contextmanager
def _reading(path: Path, *, write: bool = False) -> Iterator[apsw.Connection]:
    try:
        with closing(_opened(path, write=write)) as db:
            yield db
    except apsw.BusyError:
        raise DataError(f"{_named(path)} is locked by another program; try again when that has ended") from None
    except (apsw.Error, OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {_named(path)}: {error}; delete it to begin anew") from None


def _decoded(text: object, path: Path, kind: object) -> dict[str, Any]:
    try:
        record: dict[str, Any] = STRICT_JSON.decode(str(text))
        msgspec.convert(record, kind)
    except (ValueError, RecursionError, msgspec.ValidationError):
        raise DataError(f"{_named(path)} is damaged; delete it to begin anew") from None
    return record


def _named(path: Path) -> str:
    return shown(str(path), PATH_WIDTH)


def _states(dataset: Dataset, document: Written) -> dict[str, tuple[str, str]]:
    """The hash and the content of each part; of what is too large the hash alone tells of a change."""
    few = len(dataset.entries) <= MOST and len(dataset.queries) <= MOST
    parts = _parts(dataset)
    parts |= {"entries": parts["entries"] or {"": dataset.sha256}, "ranked": _ranked(document) if few else {}}
    many = {} if parts["labels"] or not dataset.qrels else {"labels": (hashed(dataset.qrels), "{}")}
    return {name: (hashed(part), compact(part)) for name, part in parts.items() if part} | many


def _parts(dataset: Dataset) -> dict[str, State]:
    """The state of each part, with how each labelled query was drawn."""
    parts = states(dataset, MOST)
    return {**parts, "provenance": dict(dataset.how_drawn) if parts["labels"] else {}}


def _ranked(document: Written) -> dict[str, Any]:
    """The value of every query and the hash of its list, of weights files and of the first in the document."""
    lists = {row["label"]: row["queries"] for row in (document.get("rankings") or {}).get("lists", ())}
    rows = document.get("per_query") or ()
    labels = dict.fromkeys([*lists, *(rows[0]["values"] if rows else ())])
    first = sorted(labels, key=lambda label: not label.endswith(".json"))[:LISTED]
    return {
        label: {
            query["id"]: [
                query["values"].get(label),
                hashed(lists.get(label, {}).get(query["id"], {}).get("entries"))[:8],
            ]
            for query in rows
        }
        for label in first
    }


def _facts(document: Written) -> dict[str, Any]:
    """The numbers of a document: what was decided, and the means of its contenders."""
    chosen, base, today = (document.get(name) or {} for name in ("chosen", "baseline", "current"))
    strategy = chosen.get("strategy") or document.get("tuned")
    facts = {
        "tool": document.get("tool"),
        "metric": document.get("primary") or document.get("objective") or "nDCG@10",
        "verdict": document.get("verdict"),
        "baseline": base
        if isinstance(base, str)
        else today.get("label")
        if isinstance(today, Mapping)
        else "current",
        "chosen": strategy and (document.get("formula") or strategy),
        "split": document.get("split"),
        "labels_needed": document.get("labels_needed"),
        "limit": document.get("limit"),
        "model": document.get("model"),
        "restriction": _options(document.get("restriction") or {}),
        "promise": _estimate(document.get("promise") or document.get("gain")),
        "rows": _rows(document),
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _options(restriction: Written) -> str:
    """What restricted the choice, as a command writes it; empty where nothing did."""
    named = {"--for": "target", "--latency": "latency_ms", "--embedding-calls": "embedding_calls_of_100"}
    given = {option: restriction.get(name) for option, name in named.items()}
    return " ".join(
        f"{option} {value if isinstance(value, str) else f'{value:g}'}"
        for option, value in given.items()
        if value not in (None, "")
    )


def _rows(document: Written) -> list[dict[str, Any]]:
    known = {row["label"]: row for row in document.get("configurations") or ()}
    rows = [
        {**_system(row), **_system(known.get(row["label"], {})), "label": row["label"], **_ends(row)}
        for row in document.get("results") or ()
        if row["metric"] == document["primary"]
    ]
    rows += [
        {"label": row["label"], **_system(row), "mean": row["metrics"][0]["now"]}
        for row in document.get("contenders") or ()
        if row.get("metrics")
    ]
    if isinstance(document.get("tuned"), str) and document.get("in_sample"):
        for label, key in (("current", "baseline"), ("tuned", "in_sample")):
            part = document.get(key) or {}
            rows.append(
                {"label": label, "strategy": document.get(label), **_ends({**part, "mean": part.get("value")})}
            )
    found = [row for row in rows if row["mean"] is not None]
    return sorted(found, key=lambda row: (-row["mean"], row["label"]))[:_ROWS]


def _system(row: Written) -> dict[str, Any]:
    return {name: row[name] for name in ("strategy", "system", "profile", "settings") if row.get(name)}


def _ends(row: Written) -> dict[str, Any]:
    return {name: row.get(name) for name in ("mean", "low", "high")}


def _estimate(part: object) -> dict[str, object] | None:
    known = part if isinstance(part, Mapping) else {}
    return {name: known[name] for name in ("value", "low", "high") if name in known} or None
