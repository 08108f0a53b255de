"""What SQL a connection to a vault may run. A vault may come from anybody, so nothing in its schema is trusted.

The authorizer is asked while SQLite compiles a statement, those of triggers, views and virtual tables included.
It allows what our own statements need: reading and writing the tables of a vault, a list of functions, a list of
pragmas. No other database can be attached, no view is read, and a statement that takes far more steps or time than
its file has bytes for is broken off.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import addressof, c_int64
from itertools import islice, repeat
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import apsw
import sqlite_vec

from steelyard.base.errors import PATH_WIDTH, MachineError, VaultError, shown, visible
from steelyard.stores.sqlite.schema import TABLES

FIXED = frozenset(re.findall(r"CREATE (?:TABLE|INDEX|TRIGGER) (\w+)", "\n".join(TABLES)))
"""The names of what every vault holds."""
OWN = re.compile(r"(fts|vec|terms)_\w+|sqlite_(schema|master|sequence|autoindex_\w+)|sqlite_temp_(schema|master)")
"""Those of its keyword indexes and vectors, of SQLite, and of the temporary tables `terms_...` (see words.py)."""
TABLE_FUNCTIONS = frozenset({"json_each", "pragma_user_version", "pragma_application_id"})
PRAGMAS = frozenset(
    "user_version application_id journal_mode synchronous foreign_keys data_version quick_check mmap_size".split()  # noqa: SIM905 -- as below
)
FUNCTIONS = frozenset(
    """abs avg bm25 coalesce count group_concat ifnull iif instr json_array_length json_each json_extract length
    like lower match max min substr sum total typeof upper vec_distance_cosine vec_distance_l2 -> ->>""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
"""Functions of their arguments alone; those of FTS5 and sqlite-vec are called by these modules, too."""
ROWS = 256
"""Rows that are read ahead of whoever iterates over them."""
STEPS = 10_000
"""Steps of SQLite's machine between two looks at the budget."""
LEAST_BUDGET, BUDGET_PER_BYTE = 50_000_000, 50
"""A statement may take this many steps, and this many more a byte of the file; a scan takes about one."""
LEAST_SECONDS, SECONDS_PER_BYTE = 60.0, 1e-6
"""A statement may work this long, and this much longer a byte of the file: a step on a large value is slow."""
LIMITS = {
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_LENGTH: 256 * 2**20,
    apsw.SQLITE_LIMIT_SQL_LENGTH: 2**20,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 8,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}
SETTINGS = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_DQS_DDL: 0,
    apsw.SQLITE_DBCONFIG_DQS_DML: 0,
}


class CheckedCursor(apsw.Cursor):
    """A cursor that raises VaultError where the file is not what a vault is."""

    def execute(self, *args: Any, **options: Any) -> CheckedCursor:  # noqa: ANN401 -- as apsw has it
        """As apsw's, but one statement a call: what comes after a semicolon could only be somebody else's."""
        if ";" in args[0] and not args[0].startswith("CREATE TRIGGER"):
            raise ValueError("more than one statement")
        self._run(super().execute, *args, begin=True, **options)
        return self

    def executemany(self, *args: Any, **options: Any) -> CheckedCursor:  # noqa: ANN401 -- as apsw has it
        """As apsw's."""
        self._run(super().executemany, *args, begin=True, **options)
        return self

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # apsw's returns the cursor, which is one, too
        """The rows, read some at a time, which costs a tenth of looking at each."""
        rows = map(apsw.Cursor.__next__, repeat(self))
        while some := self._run(lambda: list(islice(rows, ROWS))):
            yield from some

    def __next__(self) -> Any:  # noqa: ANN401 -- a row of whatever was asked
        return self._run(super().__next__)

    def fetchone(self) -> Any:  # noqa: ANN401 -- a row of whatever was asked
        """As apsw's."""
        return self._run(super().fetchone)

    def fetchall(self) -> list[Any]:
        """As apsw's."""
        return self._run(super().fetchall)

    def _run(self, action: Callable[..., T], *args: Any, begin: bool = False, **options: Any) -> T:  # noqa: ANN401 -- as apsw
        """What the action gives; SQLite's clock starts here, so that a caller may take its time between rows."""

        def timed() -> T:
            db = self.connection
            if isinstance(db, GuardedConnection):
                db.since = monotonic()
                if begin:
                    db.spent, db.worked = 0, 0.0
            return action(*args, **options)

        return run_checked(self, timed)


class GuardedConnection(apsw.Connection):
    """A connection that cannot do more than a vault needs; `guard` closes the gate once extensions are loaded."""

    spent = 0
    """Steps since the last statement began."""
    worked, since = 0.0, 0.0
    """Seconds that it worked, and when the last of them began to count."""
    exhausted = False
    """Whether a statement took more steps or time than its file is worth; no other one is begun then."""
    _path = ""

    def guard(self, path: str) -> None:
        """From now on only statements of ours run; `path` is the file whose size bounds them."""
        for setting, value in SETTINGS.items():
            self.config(setting, value)
        for limit, most in LIMITS.items():
            self.limit(limit, most)
        self.cursor_factory = CheckedCursor
        self.authorizer = _authorize
        self._path = path
        reference = weakref.ref(self)  # a handler that held the connection would keep it open for ever
        self.set_progress_handler(lambda: (db := reference()) is not None and db._look(), STEPS)

    def _look(self) -> bool:
        """Whether the statement is to be broken off."""
        now = monotonic()
        self.spent, self.worked, self.since = self.spent + STEPS, self.worked + now - self.since, now
        if self.spent > LEAST_BUDGET or self.worked > LEAST_SECONDS:
            size = self._size()
            many = self.spent > LEAST_BUDGET + BUDGET_PER_BYTE * size
            self.exhausted = many or self.worked > LEAST_SECONDS + SECONDS_PER_BYTE * size
        return self.exhausted

    def _size(self) -> int:
        if self._path == ":memory:":
            return 2**40
        return sum(file.stat().st_size for end in ("", "-wal") if (file := Path(self._path + end)).exists())


def _authorize(
    action: int, first: str | None, second: str | None, database: str | None, inside: str | None
) -> int:
    allowed = _ALLOWED.get(action)
    return apsw.SQLITE_OK if allowed is not None and allowed(first, second) else apsw.SQLITE_DENY


def _table(name: str | None, _: str | None = None) -> bool:
    return name is not None and (name in FIXED or bool(OWN.fullmatch(name)))


def _readable(name: str | None, _: str | None) -> bool:
    # A sub-query is read under an empty name.
    return _table(name) or name in TABLE_FUNCTIONS or name == "" or name in ("near", "best")


def _anything(*_: Any) -> bool:  # noqa: ANN401 -- whatever the action names
    return True


_ALLOWED: dict[int, Callable[[str | None, str | None], bool]] = {
    apsw.SQLITE_SELECT: _anything,
    apsw.SQLITE_TRANSACTION: _anything,
    apsw.SQLITE_READ: _readable,
    apsw.SQLITE_FUNCTION: lambda _, name: name is not None and name.lower() in FUNCTIONS,
    apsw.SQLITE_PRAGMA: lambda name, _: name is not None and name.lower() in PRAGMAS,
    apsw.SQLITE_CREATE_VTABLE: lambda name, module: _table(name) and module in ("fts5", "fts5vocab", "vec0"),
    apsw.SQLITE_DROP_VTABLE: lambda name, module: _table(name) and module in ("fts5", "vec0"),
    **dict.fromkeys(
        (
            apsw.SQLITE_INSERT,
            apsw.SQLITE_UPDATE,
            apsw.SQLITE_DELETE,
            apsw.SQLITE_CREATE_TABLE,
            apsw.SQLITE_CREATE_INDEX,
            apsw.SQLITE_CREATE_TRIGGER,
            apsw.SQLITE_DROP_TABLE,
            apsw.SQLITE_DROP_INDEX,
            apsw.SQLITE_DROP_TRIGGER,
            apsw.SQLITE_REINDEX,
        ),
        _table,
    ),
}
"""What each action may name; what is not here (ATTACH, views, ANALYZE, temporary tables that are not virtual, ...)
is denied."""


T = TypeVar("T")
DAMAGE = (
    apsw.CorruptError,
    apsw.SQLError,  # a schema that says something else: every statement is our own, every value is bound
    apsw.EmptyError,  # sqlite-vec, for a row that its own tables lack
    apsw.InternalError,
    apsw.FormatError,
    apsw.TooBigError,
    apsw.MismatchError,
    apsw.ConstraintError,
    apsw.AuthError,  # a table that reaches for what no statement of ours needs
    UnicodeDecodeError,
)
"""What SQLite raises for such a file."""


def damaged(path: str, reason: object) -> VaultError:
    """The error for a vault that does not hold what a vault holds."""
    return VaultError(
        f"{shown(path, PATH_WIDTH)} is damaged ({shown(str(reason), 200)}); restore a copy of it, or index the "
        "data set into a new vault"
    )


def closed(path: str) -> VaultError:
    """The error for a vault that was closed, perhaps by another thread."""
    return VaultError(f"{shown(path, PATH_WIDTH)} is closed; keep the vault open until all searches are done")


def run_checked(cursor: apsw.Cursor, action: Callable[[], T]) -> T:
    """What the action returns; VaultError where the file is not what a vault is, or was closed meanwhile."""
    try:
        return action()
    except (apsw.FullError, *DAMAGE) as error:
        full = isinstance(error, apsw.FullError) or "Could not insert" in str(error)  # as sqlite-vec says it
        if full and not cursor.connection.filename:
            raise MachineError(
                "a vault in memory holds 2 GiB at most, and this is more; index the data set into a vault file, "
                "or narrow the scope"
            ) from None
        if full:
            raise apsw.FullError(str(error)) from None
        raise damaged(cursor.connection.filename, error) from None
    except apsw.InterruptError as error:
        if getattr(cursor.connection, "exhausted", False):  # a table that never ends
            raise damaged(cursor.connection.filename, error) from None
        raise closed("the vault") from None
    except (apsw.ConnectionClosedError, apsw.CursorClosedError):
        raise closed("the vault") from None
    except apsw.NoMemError as error:
        raise MemoryError(str(error)) from None


MEMORY = ":memory:"
"""The path of a vault without a file."""
PATIENCE = 30_000
"""Milliseconds to wait for another process that is writing."""

LARGEST_MEMORY = 2**31 - 2**16
"""Bytes of a vault in memory at most: SQLite keeps it in one piece, and allocates none of 2 GiB."""
LARGEST_MAP = 2**40
"""Bytes of a file that are mapped at most."""

_numbers = itertools.count(1)


def memory_address() -> str:
    """A new place in the memory of this process, which every connection to it shares while one is open."""
    return f"file:/steelyard-{next(_numbers)}?vfs=memdb"


def connect_memory(address: str) -> apsw.Connection:
    """Open such a place."""
    db = _connection(MEMORY, address, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI)
    most = c_int64(LARGEST_MEMORY)  # its own limit is 1 GiB
    db.file_control("main", apsw.SQLITE_FCNTL_SIZE_LIMIT, addressof(most))
    return db


def connect(path: str, create: bool) -> apsw.Connection:
    """Open the file; one that cannot be written is opened for reading.

    Raises VaultError when there is none or it is no SQLite file, MachineError when the machine refuses.
    """
    place = shown(path, PATH_WIDTH)
    if Path(path).is_dir():
        raise VaultError(
            f"{place} is a folder, and a vault is one file; make one from a data set: "
            f"steelyard index {shlex.quote(visible(path))} {shlex.quote(visible(path.rstrip('/')))}.db"
        )
    if not create and not Path(path).is_file():
        make = f"steelyard index DATASET {place}; with --weights FILE it gets the vectors that these search"
        raise VaultError(f"there is no vault at {place}; make one with {make}")
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    try:
        if create:
            _private(path)
        db = _connection(path, path, flags)
        log = Path(f"{path}-wal")
        fold_log(db, create or not log.exists() or log.stat().st_size == 0)  # who only reads leaves it
        return db
    except apsw.NotADBError:
        raise VaultError(f"{place} is not an SQLite file; name a vault") from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError) as error:
        if not create:
            return _unchanging(path, error)
        raise _cannot_open(path, error) from None
    except apsw.FullError as error:
        raise _cannot_open(path, error) from None


def _private(path: str) -> None:
    """Make the file of a new vault for its owner's eyes; SQLite gives its mode to the files beside it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if not Path(path).is_file():
            raise MachineError(
                f"cannot open {shown(path, PATH_WIDTH)}: it is not a regular file; check the folder's permissions "
                "or name another file"
            ) from None
    except FileNotFoundError:
        folder = shown(str(Path(path).parent), PATH_WIDTH)
        raise MachineError(
            f"cannot open {shown(path, PATH_WIDTH)}: there is no folder {folder}; make it"
        ) from None
    except OSError as error:
        raise _cannot_open(path, error) from None


def fold_log(db: apsw.Connection, wanted: bool) -> None:
    """Whether closing the last connection moves what others left in the write-ahead log to the file itself."""
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, not wanted)


def map_file(db: apsw.Connection) -> None:
    """Read the file where the system keeps it in memory, and copy nothing: a large value is a chain of pages."""
    db.execute(f"PRAGMA mmap_size = {LARGEST_MAP}")


@contextmanager
def machine_errors(path: str) -> Iterator[None]:
    """What keeps SQLite from writing, as MachineError."""
    try:
        yield
    except apsw.BusyError:
        other = "thread" if path == MEMORY else "process"
        raise MachineError(f"another {other} is writing {path}; try again when it is done") from None
    except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise MachineError(f"cannot write {path}: {error}; free space or check permissions") from None


def _unchanging(path: str, reason: Exception) -> apsw.Connection:
    """Open a file whose folder cannot be written, as a file that never changes.

    A file in WAL mode is read through two more, ``-wal`` with the newest commits and ``-shm``, an index
    of it that even readers write. SQLite makes do with those that are there. Where there are none and
    none can be made, it reads only what is called immutable. That takes no locks and looks at no WAL,
    so it is right when the WAL is empty or gone, as a writer leaves it that closed the vault, and as
    long as nobody who may write the folder does so meanwhile. A WAL that holds something is therefore
    an error: the file alone would be an older vault, or a torn one.
    """
    place, log = shown(path, PATH_WIDTH), Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        raise MachineError(
            f"{place} has changes in {shown(log.name)} that cannot be read where nothing can be written; "
            "copy both to a folder that can be written"
        )
    try:
        address = f"{Path(path).absolute().as_uri()}?immutable=1"
        return _connection(path, address, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.NotADBError:
        raise VaultError(f"{place} is not an SQLite file; name a vault") from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
        raise _cannot_open(path, reason) from None


def _cannot_open(path: str, error: Exception) -> MachineError:
    place = shown(path, PATH_WIDTH)
    return MachineError(f"cannot open {place}: {error}; check the folder's permissions and the disk's space")


def _connection(path: str, name: str, flags: int) -> apsw.Connection:
    db = GuardedConnection(name, flags=flags)
    try:
        db.set_busy_timeout(PATIENCE)
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        db.enable_load_extension(False)
        db.guard(path)
        db.execute("SELECT count(*) FROM sqlite_schema")  # reads the header, and changes nothing
        db.execute("PRAGMA synchronous = normal")
        db.execute("PRAGMA foreign_keys = on")
    except BaseException:
        db.close()
        raise
    return db
