"""What SQL a connection to a vault may run. A vault may come from anybody, so nothing in its schema is trusted.

The authorizer is asked while SQLite compiles a statement, those of triggers, views and virtual tables included.
It allows what our own statements need: reading and writing the tables of a vault, a list of functions, a list of
pragmas. No other database can be attached, no view is read, and a statement that takes far more steps or time than
its file has bytes for is broken off.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from itertools import islice, repeat
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import apsw

from steelyard.stores.sqlite.damage import run_checked

T = TypeVar("T")
FIXED_TABLES = frozenset(
    """meta entries edges keyword_indexes spaces models model_arrays
    changes word_indexes postings""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
"""The tables of a vault beside those of its keyword indexes and vectors."""
OWN = re.compile(
    r"(fts|vec)_\w+|sqlite_(schema|master|sequence|autoindex_\w+)|sqlite_temp_(schema|master)|terms_\w+"
    r"|entries_(created|project|kind|valid_from|valid_until)|edges_(source|target|insert|delete|update)"
    r"|changes_(revision|insert|delete|update)"
)
"""The names of everything else that lies in a vault, and of the temporary tables `terms_...` (see terms.py)."""
TABLE_FUNCTIONS = frozenset({"json_each", "pragma_user_version", "pragma_application_id"})
PRAGMAS = frozenset(
    """user_version application_id journal_mode synchronous foreign_keys data_version quick_check
    mmap_size""".split()  # noqa: SIM905 -- as below
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
        self._begin()
        self._run(super().execute, *args, **options)
        return self

    def executemany(self, *args: Any, **options: Any) -> CheckedCursor:  # noqa: ANN401 -- as apsw has it
        """As apsw's."""
        self._begin()
        self._run(super().executemany, *args, **options)
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

    def _begin(self) -> None:
        db = run_checked(self, lambda: self.connection)
        if isinstance(db, GuardedConnection):
            db.spent, db.worked = 0, 0.0

    def _run(self, action: Callable[..., T], *args: Any, **options: Any) -> T:  # noqa: ANN401 -- as apsw has it
        """What the action gives; SQLite's clock starts here, so that a caller may take its time between rows."""

        def timed() -> T:
            db = self.connection
            if isinstance(db, GuardedConnection):
                db.since = monotonic()
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
    return name is not None and (name in FIXED_TABLES or bool(OWN.fullmatch(name)))


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
