"""The file of a vault: opened, checked, and written in transactions. Reading changes no byte of it.

SQLite comes with apsw, because the `sqlite3` module of many Pythons cannot load extensions. Every
write is one transaction; the file is in WAL mode, so readers never wait, and writers wait their turn.
"""

from __future__ import annotations

import re
import threading
import time
import weakref
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import NoneType
from typing import Any, Self, cast

import apsw

from steelyard.base.arrays import Indices
from steelyard.base.errors import VaultError
from steelyard.memory.entry import Entry
from steelyard.memory.filters import Filters
from steelyard.stores.base import Space
from steelyard.stores.sqlite.check import check_books, check_schema
from steelyard.stores.sqlite.connect import (
    MEMORY,
    connect,
    connect_memory,
    fold_log,
    machine_errors,
    map_file,
    memory_address,
)
from steelyard.stores.sqlite.damage import closed, damaged
from steelyard.stores.sqlite.schema import APPLICATION_ID, TABLES, VERSION

ColumnTypes = frozenset[type]
TEXT: ColumnTypes = frozenset({str})
INTEGER: ColumnTypes = frozenset({int})
REAL: ColumnTypes = frozenset({float})
BLOB: ColumnTypes = frozenset({bytes})
NULL: ColumnTypes = frozenset({NoneType})
"""What comes from columns of strict tables."""


def table_of(space: int) -> str:
    """The name of the table of a vector space, made of an integer and of nothing else."""
    return f"vec_{space:d}"


class VaultFile:
    """What the parts of a vault share: connections, transactions, and the revision of what is stored.

    Each thread that uses the vault has a connection of its own, opened when it first asks and closed when
    the thread ends or the vault is closed.
    """

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = self._file = str(path)
        """What names the vault, and what is opened: of a store that is copied into a file, two."""
        self._memory = memory_address() if self.path == MEMORY else ""
        self._told = create or bool(self._memory)
        """Whether it was opened to be written: only then may a search make what it lacks."""
        self._thread = threading.local()
        self._connections: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()
        self._opening = threading.Lock()
        self._closed = False
        self._checked: set[str] = set()
        self._searches: Counter[str] = Counter()
        self._memory_of: dict[Hashable, object] = {}
        self._scopes: dict[Filters, tuple[int, Indices]] = {}
        self._names: tuple[int, dict[int, str]] = (-1, {})
        self._shown: dict[Sequence[str], tuple[int, dict[str, Entry]]] = {}
        self._first = self._connect(create)  # kept for the vault's life: what is in memory lives as long as this
        try:
            self._settle()
        except BaseException:
            self.close()
            raise

    @property
    def _db(self) -> apsw.Connection:
        """The connection of this thread."""
        known: apsw.Connection | None = getattr(self._thread, "db", None)
        if self._closed:
            raise closed(self.path)
        return known or self._another()

    def _another(self) -> apsw.Connection:
        """A connection for one more thread; the file at the path may be another one by now."""
        db = self._connect(create=False)
        if not self._memory:
            with self.snapshot():
                check_schema(db, self._file)
        return db

    def _connect(self, create: bool) -> apsw.Connection:
        with self._opening:
            if self._closed:
                raise closed(self.path)
            self._thread.db = connect_memory(self._memory) if self._memory else connect(self._file, create)
            self._connections.add(self._thread.db)
            return cast(apsw.Connection, self._thread.db)

    def close(self) -> None:
        """Close the file for every thread; the write-ahead log is folded in.

        What another thread is doing with it ends in VaultError.
        """
        with self._opening:
            self._closed = True
        for db in list(self._connections):
            while not _closes(db):
                db.interrupt()
                time.sleep(0.001)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See Store.transaction; MachineError when the file cannot be written.

        It belongs to the thread that began it. Another thread reads what was committed before, and waits up
        to 30 seconds for its turn to write; with a vault in memory it waits to read, too.
        """
        with machine_errors(self._file):
            if self._db.in_transaction:
                yield
                return
            try:
                # At once: one that reads first could not write any more after another process has.
                self._db.execute("BEGIN IMMEDIATE")
                fold_log(self._db, True)
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._end("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What this thread reads inside is one state of the file, whatever others write meanwhile.

        A vault in memory is not written meanwhile: writers wait until the snapshot ends.
        """
        with machine_errors(self._file):
            self._db.execute("BEGIN")
            self._thread.steady = True
            try:
                yield
            finally:
                self._thread.steady, self._thread.revision = False, None
                self._end("COMMIT")

    def _steady(self) -> AbstractContextManager[None]:
        """One state of the file for several reads: that of the transaction this thread is in, else a snapshot."""
        return nullcontext() if self._db.in_transaction else self.snapshot()

    def _map(self) -> None:
        """See `map_file`, for this thread."""
        if not getattr(self._thread, "mapped", False):
            map_file(self._db)
            self._thread.mapped = True

    def _end(self, how: str) -> None:
        """End a transaction unless it has ended: a full disk does that, and closing, which an interrupt may let
        come first.
        """
        with suppress(apsw.ConnectionClosedError, VaultError):
            if self._db.in_transaction:
                self._db.execute(how)

    def in_file(self, path: str | Path) -> str:
        """The path of the vault; one in memory, and what a store was copied into, is copied to this one."""
        if self._file == self.path != MEMORY:
            return self.path
        with machine_errors(str(path)):
            copy = apsw.Connection(str(path))
            try:
                with copy.backup("main", self._db, "main") as backup:
                    backup.step()
            finally:
                copy.close()
        return str(path)

    def faults(self) -> list[str]:
        """What SQLite finds wrong with the pages of the file; none when it is whole."""
        messages = [str(row[0]) for row in self._db.execute("PRAGMA quick_check")]
        return [] if messages == ["ok"] else messages

    def revision(self) -> int:
        """See Store.revision; of one state it is read once."""
        known: int | None = getattr(self._thread, "revision", None)
        if known is not None:
            return known
        row = self._db.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()
        if row is None or not (isinstance(row[0], str) and re.fullmatch(r"[0-9]{1,18}", row[0])):
            raise damaged(self.path, f"its revision is {row and row[0]!r}")
        if getattr(self._thread, "steady", False):
            self._thread.revision = int(row[0])
        return int(row[0])

    def _one(self, sql: str, values: Sequence[str | float] = ()) -> Any:  # noqa: ANN401 -- whatever SQL returns
        return next(self._db.execute(sql, tuple(values)))[0]

    def _rows(
        self, sql: str, values: Sequence[str | float | bytes] = (), columns: Sequence[ColumnTypes] = (TEXT,)
    ) -> list[Any]:
        """The rows of a statement whose first columns (an id, as a rule) are of strict tables and have such types.

        VaultError where they have others, because somebody changed the file without its tables' rules.
        """
        rows: list[Any] = self._db.execute(sql, tuple(values)).fetchall()
        for column, kind in enumerate(columns):
            if odd := {type(row[column]) for row in rows} - kind:
                wrong, right = (" or ".join(sorted(type_.__name__ for type_ in types)) for types in (odd, kind))
                raise damaged(self.path, f"it holds {wrong} where {right} belongs")
        return rows

    def _revise(self) -> None:
        self._thread.revision = None
        self._db.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")

    def _spaces(self) -> list[tuple[str, Space, int]]:
        rows = self._db.execute("SELECT space, model, layer, recipe, dim FROM spaces ORDER BY space")
        return [(table_of(number), Space(model, layer, recipe), dim) for number, model, layer, recipe, dim in rows]

    def _sound(self, table: str, dim: int) -> str:
        """The table of a vector space, looked at before it is used for the first time."""
        if table not in self._checked:
            check_books(self._db, self.path, table, dim)
            self._checked.add(table)
        return table

    def _settle(self) -> None:
        """Make the tables of a new vault, where that was asked for; check those of another one."""
        # In one statement, so that the three belong together: another process may be making the tables just now.
        version, application, tables = next(
            self._db.execute(
                "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema) "
                "FROM pragma_user_version, pragma_application_id"
            )
        )
        if application != APPLICATION_ID and (version or tables):
            raise VaultError(f"{self.path} is an SQLite file of another program; name a vault or a new file")
        if version < 0:
            raise damaged(self.path, f"its schema version is {version}")
        if version > VERSION:
            raise VaultError(
                f"{self.path} was written by a newer Steelyard (schema {version}, this one knows {VERSION}); "
                "upgrade Steelyard, or index the data set into a new vault"
            )
        if tables and version < VERSION:
            raise VaultError(
                f"{self.path} was written by an older Steelyard (schema {version}, this one knows {VERSION}); "
                "index the data set into a new vault"
            )
        if not (tables or self._told):
            raise VaultError(f"{self.path} is empty; make a vault with steelyard index DATASET {self.path}")
        if self._told and not self._db.readonly("main"):
            with machine_errors(self._file):
                self._db.execute("PRAGMA journal_mode = wal")
        if not tables:
            self._make()
        with self.snapshot():  # another process may be changing indexes and spaces just now
            check_schema(self._db, self.path)

    def _make(self) -> None:
        with self.transaction():
            if self._one("SELECT count(*) FROM sqlite_schema"):
                return  # another process has made them meanwhile
            for statement in TABLES:
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {VERSION}")
            self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _closes(db: apsw.Connection) -> bool:
    """Whether the connection could be closed: not while another thread is reading."""
    try:
        db.close()
    except apsw.ThreadingViolationError:
        return False
    return True
