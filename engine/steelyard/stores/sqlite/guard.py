"""What SQL a connection to a vault may run. A vault may come from anybody, so nothing in its schema is trusted.

The authorizer is asked while SQLite compiles a statement, those of triggers, views and virtual tables included.
It allows what our own statements need: reading and writing the tables of a vault, a list of functions, a list of
pragmas. No other database can be attached, no view is read, and a statement that takes far more steps or time than
its file has bytes for is broken off.
"""

import os
import re
import shlex
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import addressof, c_int64
from itertools import islice
from pathlib import Path
from time import monotonic
from types import NoneType
from typing import Any

import apsw
import sqlite_vec

from steelyard.base.errors import PATH_WIDTH, MachineError, VaultError, quote, visible
from steelyard.base.files import data
from steelyard.stores.sqlite.schema import TABLES, damaged, tokenizing

FIXED = frozenset(re.findall(r"CREATE (?:TABLE|INDEX|TRIGGER) (\w+)", "\n".join(TABLES)))
"""The names of what every vault holds."""
OWN = re.compile(r"(fts|vec|terms)_\w+|sqlite_(schema|master|sequence|autoindex_\w+)|sqlite_temp_(schema|master)")
"""Those of its keyword indexes and vectors, of SQLite, and of the temporary tables `terms_...` (see words.py)."""
RULES = data(__package__, "guard.json")
"""What the lists below hold, as SQLite calls it."""
READABLE = frozenset({*RULES["readable"].split(), ""})
"""What else is read: functions, sub-queries under an empty name, and one that has a name."""
PRAGMAS = frozenset(RULES["pragmas"].split())
FUNCTIONS = frozenset(RULES["functions"].split())
"""Functions of their arguments alone; those of FTS5 and sqlite-vec are called by these modules, too."""
ColumnTypes = frozenset[type]
TEXT: ColumnTypes = frozenset({str})
INTEGER: ColumnTypes = frozenset({int})
REAL: ColumnTypes = frozenset({float})
BLOB: ColumnTypes = frozenset({bytes})
NULL: ColumnTypes = frozenset({NoneType})
"""What comes from columns of strict tables."""
Value = str | float | bytes | None
ROWS = 256  # read ahead of whoever iterates over them
STEPS_PER_CHECK = 10_000  # of SQLite's machine between two looks at the budget
LEAST_BUDGET, BUDGET_PER_BYTE = 50_000_000, 50
"""A statement may take this many steps, and this many more a byte of the file; a scan takes about one."""
LEAST_SECONDS, SECONDS_PER_BYTE = 60.0, 1e-6
"""A statement may work this long, and this much longer a byte of the file: a step on a large value is slow."""


class GuardedConnection(apsw.Connection):
    """A connection that cannot do more than a vault needs; `guard` closes the gate once extensions are loaded.

    `run`, `each` and `many` take one statement a call: what comes after a semicolon could only be somebody else's.
    They raise VaultError where the file is not what a vault is, MachineError where it cannot be used.
    """

    path = ""
    """What errors call the vault."""
    spent = 0
    """Steps since the last statement began."""
    worked, since = 0.0, 0.0
    """Seconds that it worked, and when the last of them began; the time between two rows is the caller's."""
    exhausted = False
    """Whether a statement took more steps or time than its file is worth; no other one is begun then."""
    _file = ""
    """The whole path, empty of a vault in memory."""

    def guard(self, path: str) -> None:
        """From now on only statements of ours run."""
        for setting, value in RULES["settings"].items():
            self.config(getattr(apsw, f"SQLITE_DBCONFIG_{setting}"), value)
        for limit, most in RULES["limits"].items():
            self.limit(getattr(apsw, f"SQLITE_LIMIT_{limit}"), most)
        self.authorizer, self.path, self._file = _authorize, path, self.filename
        reference = weakref.ref(self)  # a handler that held the connection would keep it open for ever
        self.set_progress_handler(lambda: (db := reference()) is not None and db._look(), STEPS_PER_CHECK)

    def run(self, sql: str, values: Sequence[Value] = (), columns: Sequence[ColumnTypes] = ()) -> list[Any]:
        """All rows. The first `columns` are of strict tables and have such types.

        VaultError where they have others, because somebody changed the file without its tables' rules.
        """
        self._begin(sql)
        try:
            rows: list[Any] = self.execute(sql, tuple(values)).fetchall()
        except FAILURES as error:
            raise explained(error, self.path, bool(self._file), self.exhausted) from None
        for column, kind in enumerate(columns):
            if odd := {type(row[column]) for row in rows} - kind:
                wrong, right = (" or ".join(sorted(type_.__name__ for type_ in types)) for types in (odd, kind))
                raise damaged(self.path, f"it holds {wrong} where {right} belongs")
        return rows

    def each(self, sql: str, values: Sequence[Value] = (), ahead: int = ROWS) -> Iterator[Any]:
        """The rows, read some at a time, which costs a tenth of looking at each."""
        self._begin(sql)
        try:
            rows = self.execute(sql, tuple(values))
            while some := list(islice(rows, ahead)):
                yield from some
                self.since = monotonic()
        except FAILURES as error:
            raise explained(error, self.path, bool(self._file), self.exhausted) from None

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Run the statement with the values of each row."""
        self._begin(sql)
        try:
            self.executemany(sql, rows)
        except FAILURES as error:
            raise explained(error, self.path, bool(self._file), self.exhausted) from None

    def _begin(self, sql: str) -> None:
        if ";" in sql and not sql.startswith("CREATE TRIGGER"):
            raise ValueError("more than one statement")
        self.spent, self.worked, self.since = 0, 0.0, monotonic()

    def _look(self) -> bool:
        """Whether the statement is to be broken off."""
        now = monotonic()
        self.spent, self.worked, self.since = self.spent + STEPS_PER_CHECK, self.worked + now - self.since, now
        if self.spent > LEAST_BUDGET or self.worked > LEAST_SECONDS:
            size = self._size()
            many = self.spent > LEAST_BUDGET + BUDGET_PER_BYTE * size
            self.exhausted = many or self.worked > LEAST_SECONDS + SECONDS_PER_BYTE * size
        return self.exhausted

    def _size(self) -> int:
        files = [Path(self._file + end) for end in ("", "-wal")]
        return sum(file.stat().st_size for file in files if file.exists()) if self._file else 2**40


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    allowed = _ALLOWED.get(action)
    return apsw.SQLITE_OK if allowed is not None and allowed(str(first), str(second)) else apsw.SQLITE_DENY


def _table(name: str, _: str = "") -> bool:
    return name in FIXED or bool(OWN.fullmatch(name))


_ALLOWED: dict[int, Callable[[str, str], bool]] = {
    apsw.SQLITE_SELECT: lambda *_: True,
    apsw.SQLITE_TRANSACTION: lambda *_: True,
    apsw.SQLITE_READ: lambda name, _: _table(name) or name in READABLE,
    apsw.SQLITE_FUNCTION: lambda _, name: name.lower() in FUNCTIONS,
    apsw.SQLITE_PRAGMA: lambda name, _: name.lower() in PRAGMAS,
    apsw.SQLITE_CREATE_VTABLE: lambda name, module: _table(name) and module in ("fts5", "fts5vocab", "vec0"),
    apsw.SQLITE_DROP_VTABLE: lambda name, module: _table(name) and module in ("fts5", "vec0"),
    **{getattr(apsw, f"SQLITE_{action}"): _table for action in RULES["on_objects"].split()},
}
"""What each action may name; what is not here (ATTACH, views, ANALYZE, temporary tables that are not virtual, ...)
is denied."""

DAMAGE = (*(getattr(apsw, name) for name in RULES["damage"]), UnicodeDecodeError)
"""What SQLite raises for a file that is not what a vault is."""
FAILURES = (apsw.Error, UnicodeDecodeError)


def closed(path: str) -> VaultError:
    """The error for a vault that was closed, perhaps by another thread."""
    return VaultError(f"{quote(path, PATH_WIDTH)} is closed; keep the vault open until all searches are done")


def explained(error: Exception, path: str, on_disk: bool, exhausted: bool = False) -> Exception:
    """What is raised for an error of SQLite's; `exhausted` where a statement took more than its file is worth."""
    full = isinstance(error, apsw.FullError) or "Could not insert" in str(error)  # as sqlite-vec says it
    if full and not on_disk:
        return MachineError(
            "a vault in memory holds 2 GiB at most, and this is more; index the data set into a vault file, "
            "or narrow the scope"
        )
    if full or isinstance(error, (apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError)):
        return MachineError(f"cannot write {path}: {error}; free space or check permissions")
    if isinstance(error, apsw.BusyError):
        other = "process" if on_disk else "thread"
        return MachineError(f"another {other} is writing {path}; try again when it is done")
    if isinstance(error, DAMAGE) or (isinstance(error, apsw.InterruptError) and exhausted):  # it never ends
        return damaged(path, error)
    if isinstance(error, (apsw.InterruptError, apsw.ConnectionClosedError, apsw.CursorClosedError)):
        return closed("the vault")
    return MemoryError(str(error)) if isinstance(error, apsw.NoMemError) else error


MEMORY = ":memory:"  # the path of a vault without a file
BUSY_TIMEOUT_MS = 30_000  # to wait for another process that is writing

LARGEST_MEMORY = 2**31 - 2**16
"""Bytes of a vault in memory at most: SQLite keeps it in one piece, and allocates none of 2 GiB."""
LARGEST_MAP = 2**40  # bytes of a file that are mapped at most


def connect_memory(address: str) -> GuardedConnection:
    """Open a place in the memory of this process."""
    db = _connection(MEMORY, address, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI)
    most = c_int64(LARGEST_MEMORY)  # its own limit is 1 GiB
    db.file_control("main", apsw.SQLITE_FCNTL_SIZE_LIMIT, addressof(most))
    return db


def connect(path: str, create: bool) -> GuardedConnection:
    """Open the file; one that cannot be written is opened for reading.

    Raises VaultError when there is none or it is no SQLite file, MachineError when the machine refuses.
    """
    place, log = quote(path, PATH_WIDTH), Path(f"{path}-wal")
    if Path(path).is_dir():
        raise VaultError(
            f"{place} is a folder, and a vault is one file; make one from a data set: "
            f"steelyard index {shlex.quote(visible(path))} {shlex.quote(visible(path.rstrip('/')))}-vault.db"
        )
    if not create and not Path(path).is_file():
        make = f"steelyard index DATASET {place}; with --weights FILE it gets the vectors that these search"
        raise VaultError(f"there is no vault at {place}; make one with {make}")
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    try:
        if create:
            _private(path)
        try:
            db = _connection(path, path, flags)
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError) as error:
            if create:
                raise
            return _unchanging(path, log, error)
        fold_log(db, create or not log.exists() or log.stat().st_size == 0)  # who only reads leaves it
        return db
    except apsw.NotADBError:
        raise VaultError(f"{place} is not an SQLite file; name a vault") from None
    except DAMAGE as error:
        raise damaged(path, error) from None
    except (OSError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.FullError) as error:
        raise MachineError(
            f"cannot open {place}: {error}; check the folder's permissions and the disk's space"
        ) from None


def _private(path: str) -> None:
    """Make the file of a new vault for its owner's eyes; SQLite gives its mode to the files beside it."""
    place, remedy = quote(path, PATH_WIDTH), ""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if not Path(path).is_file():
            remedy = "it is not a regular file; check the folder's permissions or name another file"
    except FileNotFoundError:
        remedy = f"there is no folder {quote(str(Path(path).parent), PATH_WIDTH)}; make it"
    if remedy:
        raise MachineError(f"cannot open {place}: {remedy}")


def fold_log(db: apsw.Connection, wanted: bool) -> None:
    """Whether closing the last connection moves what others left in the write-ahead log to the file itself."""
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, not wanted)


def _unchanging(path: str, log: Path, reason: Exception) -> GuardedConnection:
    """Open a file whose folder cannot be written, as a file that never changes.

    A file in WAL mode is read through two more, ``-wal`` with the newest commits and ``-shm``, an index
    of it that even readers write. SQLite makes do with those that are there. Where there are none and
    none can be made, it reads only what is called immutable. That takes no locks and looks at no WAL,
    so it is right when the WAL is empty or gone, as a writer leaves it that closed the vault, and as
    long as nobody who may write the folder does so meanwhile. A WAL that holds something is therefore
    an error: the file alone would be an older vault, or a torn one.
    """
    if log.exists() and log.stat().st_size:
        raise MachineError(
            f"{quote(path, PATH_WIDTH)} has changes in {quote(log.name)} that cannot be read in a read-only "
            "folder; copy both to a folder that can be written"
        )
    try:
        address = f"{Path(path).absolute().as_uri()}?immutable=1"
        return _connection(path, address, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
        raise reason from None


def _connection(path: str, name: str, flags: int) -> GuardedConnection:
    db = GuardedConnection(name, flags=flags)
    try:
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        db.enable_load_extension(False)
        db.guard(path)
        db.execute("SELECT count(*) FROM sqlite_schema")  # reads the header, and changes nothing
        tokenizing(db)
        db.execute("PRAGMA synchronous = normal")
        db.execute("PRAGMA foreign_keys = on")
    except BaseException:
        db.close()
        raise
    return db
