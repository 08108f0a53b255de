"""SQLite files of other programs: copied as they are at one moment, then read under an authorizer.

The program that owns a file may be writing to it. So the file and its write-ahead log are copied, again when they
changed meanwhile, and SQLite opens the copy. A stranger may have written the file: views, triggers and functions
in its schema never run, virtual tables are not opened, and statements have a budget of steps.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, MachineError, quote
from steelyard.base.files import STRICT_JSON, open_regular
from steelyard_eval.common.formatting import counted

TRIES = 5  # How often a file that changes while it is copied is copied again
MAGIC = b"SQLite format 3\0"
STEPS_PER_CHECK = 10_000
STEPS_PER_BYTE, LEAST_STEPS = 50, 50_000_000
"""Steps of SQLite's machine that a statement may take, by the size of the file; a scan takes about one a byte."""
FORBIDDEN = frozenset(("load_extension", "fts3_tokenizer"))
"""Functions that reach out of the file. Others stand in defaults and checks, which no SELECT of ours computes."""
SETTINGS = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
}
_READING = {apsw.SQLITE_SELECT, apsw.SQLITE_READ}
Json = TypeVar("Json", list[Any], dict[str, Any])


class StoreRow(dict[str, Any]):
    """A row by column; a column that this age of the program's schema does not have is None."""

    def __missing__(self, column: str) -> None:
        """Not given."""


class Database:
    """Tables of a copy of an SQLite file.

    A value that its program would not have written is read as none and counted; `notes` says which were.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.connection = apsw.Connection(str(path))
        for setting, value in SETTINGS.items():
            self.connection.config(setting, value)
        self.connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
        self.connection.limit(apsw.SQLITE_LIMIT_LENGTH, 256 * 2**20)
        self.connection.authorizer = _authorize
        self._steps, self._spent = LEAST_STEPS + STEPS_PER_BYTE * path.stat().st_size, 0
        self.connection.set_progress_handler(self._looked, STEPS_PER_CHECK)
        self.columns = self._columns()
        self._unread: Counter[str] = Counter()

    def rows(self, table: str, order: str = "rowid") -> Iterator[StoreRow]:
        """Every row of a table by column, ordered by a column; none where there is no such table."""
        known = self.columns.get(table)
        if known is None:
            return
        by = f" ORDER BY {_quoted(order)}" if order == "rowid" or order in known else ""
        for row in self._run(f"SELECT {', '.join(map(_quoted, known))} FROM {_quoted(table)}{by}"):  # noqa: S608 -- quoted names
            yield StoreRow(zip(known, row, strict=True))

    def query(self, statement: str) -> Iterator[dict[str, object]]:
        """The rows of a SELECT that the user wrote; ConfigError when SQLite does not take it."""
        try:
            cursor = self.connection.execute(statement)
            names = [name for name, *_ in cursor.description]
            for row in cursor:
                yield dict(zip(names, row, strict=True))
        except apsw.NoMemError as error:
            raise MemoryError(str(error)) from None
        except (apsw.Error, UnicodeDecodeError) as error:
            raise ConfigError(
                f"--sql: {self.name} does not answer it ({quote(str(error), 200)}); correct it"
            ) from None

    def vectors(self, table: str) -> dict[int, NDArray[np.float32]]:
        """The vectors of a vec0 table by rowid, from the plain tables in which sqlite-vec 0.1 keeps them."""
        sizes = {row["chunk_id"]: row["size"] for row in self.rows(f"{table}_chunks")}
        chunks = {row["rowid"]: row["vectors"] for row in self.rows(f"{table}_vector_chunks00")}
        vectors: dict[int, NDArray[np.float32]] = {}
        for row in self.rows(f"{table}_rowids"):
            blob, size = chunks.get(row["chunk_id"]), sizes.get(row["chunk_id"])
            if not isinstance(blob, bytes) or not isinstance(size, int) or size < 1 or len(blob) % (4 * size):
                raise self.damaged(f"vectors of {table} are cut short")
            place = row["chunk_offset"]
            if not isinstance(place, int) or not 0 <= place < size:
                raise self.damaged(f"a vector of {table} lies outside its block")
            vectors[row["rowid"]] = np.frombuffer(blob, "<f4").reshape(size, -1)[place]
        return vectors

    def picked(self, row: StoreRow, form: Mapping[str, str]) -> dict[str, object]:
        """The fields of a form as `base.picked` has them; the value of ``[COLUMN]`` or ``{COLUMN}`` is JSON."""
        record: dict[str, object] = {}
        for name, column in form.items():
            if column[:1] == "[":
                record[name] = self.json(row, column[1:-1], list)
            elif column[:1] == "{":
                value = self.json(row, column[1:-1], dict)
                record[name] = {key: one for key, one in value.items() if one not in (None, "", [])} or None
            else:
                record[name] = row[column]
        return record

    def json(self, row: StoreRow, column: str, kind: type[Json]) -> Json:
        """A list or an object that a column holds as JSON; empty where none is given, and for what is none."""
        value = row[column]
        with suppress(ValueError, RecursionError):
            value = STRICT_JSON.decode(value) if isinstance(value, str) and value else value or None
        if isinstance(value, kind):
            return value
        if value is not None:
            self._unread[f"{column} that are no JSON {'list' if kind is list else 'object'}"] += 1
        return kind()

    def floats(self, value: object) -> NDArray[np.float32] | None:
        """A vector that a column holds as float32; None for anything else."""
        if not isinstance(value, bytes) or not value or len(value) % 4:
            self._unread["a vector that is cut short"] += 1
            return None
        return np.frombuffer(value, "<f4")

    def notes(self) -> list[str]:
        """What was read as none so far, a sentence each."""
        rows = {what: counted(count, "row has", "rows have") for what, count in self._unread.items()}
        return [f"{some} {what}; read without" for what, some in rows.items()]

    def damaged(self, reason: object) -> DataError:
        """The error for a file that does not hold what its program writes."""
        return DataError(f"{self.name} is damaged ({quote(str(reason), 200)}); restore a copy of it")

    def _columns(self) -> dict[str, list[str]]:
        tables = list(self._run("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
        columns = "SELECT name FROM pragma_table_info(?)"
        return {
            name: [column for (column,) in self._run(columns, (name,))]
            for name, sql in tables
            if isinstance(name, str) and isinstance(sql, str)
            if not sql.lstrip().upper().startswith("CREATE VIRTUAL")
        }

    def _run(self, statement: str, values: tuple[object, ...] = ()) -> Iterator[Any]:
        self._spent = 0
        try:
            yield from self.connection.execute(statement, values)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self.damaged(error) from None

    def _looked(self) -> bool:
        self._spent += STEPS_PER_CHECK
        return self._spent > self._steps


@contextmanager
def snapshot(path: Path) -> Iterator[Database]:
    """A copy of an SQLite file and its write-ahead log, as both were at one moment.

    Raises DataError when it is no SQLite file or does not stay as it is for long enough, MachineError when there
    is no room for the copy.
    """
    name = quote(str(path), PATH_WIDTH)
    with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        copy = Path(folder) / "copy.db"
        for _ in range(TRIES):
            before = _state(path)
            _copied(path, copy, name)
            if _state(path) == before:
                break
        else:
            raise DataError(f"{name} changes all the time; stop the program that writes it, or import a copy")
        try:
            database = Database(copy, name)
        except apsw.Error as error:
            raise DataError(f"{name} is damaged ({quote(str(error), 200)}); restore a copy of it") from None
        try:
            yield database
        finally:
            database.connection.close()


def _copied(path: Path, copy: Path, name: str) -> None:
    for end in ("", "-wal"):
        source, target = Path(f"{path}{end}"), Path(f"{copy}{end}")
        target.unlink(missing_ok=True)
        if end and not source.exists():
            continue
        try:
            with open_regular(source) as stream, target.open("wb") as out:
                if not end and stream.read(len(MAGIC)) != MAGIC:
                    raise DataError(f"{name} is not an SQLite file; name the program's own file")
                stream.seek(0)
                shutil.copyfileobj(stream, out, 2**20)
        except OSError as error:
            if Path(error.filename or "") == target:
                raise MachineError(f"no room for a copy of {name} ({error.strerror}); free space") from None
            raise DataError(f"{name} cannot be read ({error.strerror}); make it readable") from None


def _state(path: Path) -> list[tuple[int, int, int]]:
    """What changes when the file or its log is written: inode, size and time of each."""
    there = (file.stat() for end in ("", "-wal") if (file := Path(f"{path}{end}")).exists())
    return [(status.st_ino, status.st_size, status.st_mtime_ns) for status in there]


def _authorize(action: int, first: str | None, second: str | None, _: str | None, inside: str | None) -> int:
    reads = action in _READING and inside is None
    plain = action == apsw.SQLITE_FUNCTION and (second or "").lower() not in FORBIDDEN
    allowed = reads or plain or (action == apsw.SQLITE_PRAGMA and first == "table_info")
    return apsw.SQLITE_OK if allowed else apsw.SQLITE_DENY


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
