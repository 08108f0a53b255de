"""The file of a vault: opened, checked, and written in transactions, and what is kept in memory of it.

SQLite comes with apsw, because the `sqlite3` module of many Pythons cannot load extensions. Every
write is one transaction; the file is in WAL mode, so readers never wait, and writers wait their turn. Reading
changes no byte of the file.
"""

from __future__ import annotations

import json
import re
import threading
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import NoneType
from typing import Any, Self, TypeVar, cast

import apsw
import numpy as np

from steelyard.base.arrays import Indices
from steelyard.base.errors import VaultError
from steelyard.memory.query import Filters
from steelyard.stores.base import Space
from steelyard.stores.sqlite.check import check_books, check_schema
from steelyard.stores.sqlite.guard import (
    MEMORY,
    closed,
    connect,
    connect_memory,
    damaged,
    fold_log,
    machine_errors,
    memory_address,
)
from steelyard.stores.sqlite.schema import APPLICATION_ID, NOTE, TABLES, VERSION, where

ColumnTypes = frozenset[type]
TEXT: ColumnTypes = frozenset({str})
INTEGER: ColumnTypes = frozenset({int})
REAL: ColumnTypes = frozenset({float})
BLOB: ColumnTypes = frozenset({bytes})
NULL: ColumnTypes = frozenset({NoneType})
"""What comes from columns of strict tables."""
SCOPES = 64
"""How many scopes are kept in memory; queries with a clock have one each."""


K = TypeVar("K")


def table_of(space: int) -> str:
    """The name of the table of a vector space, made of an integer and of nothing else."""
    return f"vec_{space:d}"


class VaultFile:
    """What the parts of a vault share: connections, transactions, and what changed since a revision.

    Each thread that uses the vault has a connection of its own, opened when it first asks and closed when
    the thread ends or the vault is closed. Entries are known by their rowids here, int64, which are short and do
    not change.
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
        self._state: tuple[int, dict[Hashable, dict[Any, Any]]] = (-1, {})
        self._first = self._connect(create)  # kept for the vault's life: what is in memory lives as long as this
        try:
            self._settle()
        except BaseException:
            self.close()
            raise

    # Connections

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
        if version > VERSION or (tables and version < VERSION):
            other, remedy = ("a newer", "upgrade Steelyard, or ") if version > VERSION else ("an older", "")
            raise VaultError(
                f"{self.path} was written by {other} Steelyard (schema {version}, this one knows {VERSION}); "
                f"{remedy}index the data set into a new vault"
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

    # Transactions

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

    def _end(self, how: str) -> None:
        """End a transaction unless it has ended: a full disk does that, and closing, which an interrupt may let
        come first.
        """
        with suppress(apsw.ConnectionClosedError, VaultError):
            if self._db.in_transaction:
                self._db.execute(how)

    @property
    def _writing(self) -> bool:
        """Whether this thread has written what is not committed: nothing that it reads may be kept."""
        return self._db.txn_state("main") == apsw.SQLITE_TXN_WRITE

    # Reading

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

    def _spaces(self) -> list[tuple[str, Space, int]]:
        rows = self._db.execute("SELECT space, model, layer, recipe, dim FROM spaces ORDER BY space")
        return [(table_of(number), Space(model, layer, recipe), dim) for number, model, layer, recipe, dim in rows]

    def _sound(self, table: str, dim: int) -> str:
        """The table of a vector space, looked at before it is used for the first time."""
        if table not in self._checked:
            check_books(self._db, self.path, table, dim)
            self._checked.add(table)
        return table

    # What changed, and what is kept until something changes

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

    def _revise(self) -> None:
        self._thread.revision = None
        self._db.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")

    def _note(self, entries: str, values: tuple[str, ...] = ()) -> None:
        """List the rowids that a SELECT gives as changed at the revision that `_revise` makes next."""
        listed = f"SELECT n.rowid, value + 1 FROM meta, ({entries}) n WHERE key = 'revision'"
        self._db.execute(f"INSERT INTO changes {listed} {NOTE}", values)

    def _changed(self, since: int) -> Indices:
        """The entries that changed after a revision, those that are gone included; ascending."""
        sql = "SELECT entry FROM changes WHERE revision > ? ORDER BY +entry"  # by the index of revisions
        return self._numbers_of(sql, (since,))

    def _numbers_of(self, sql: str, values: tuple[str | float, ...]) -> Indices:
        rows: list[Any] = self._db.execute(sql, values).fetchall()
        return np.fromiter((number for (number,) in rows), dtype=np.int64, count=len(rows))

    def _seen(self, kind: Hashable) -> dict[Any, Any]:
        """What all threads have read of one kind at the revision that this one sees.

        Empty, and not kept, for a thread that has written.
        """
        now, (known, seen) = self.revision(), self._state
        if self._writing:
            return {}
        if known != now:
            seen = defaultdict(dict)
            self._state = now, seen
        return seen[kind]

    def _inside(self, filters: Filters) -> Indices:
        """The entries in scope, ascending."""
        scopes = self._seen("scopes")
        rowids: Indices | None = scopes.get(filters)
        if rowids is None:
            condition, values = where(filters)
            sql = f"SELECT e.rowid FROM entries e WHERE {condition} ORDER BY e.rowid"
            rowids = self._numbers_of(sql, values)
            if len(scopes) >= SCOPES:
                scopes.clear()
            scopes[filters] = rowids
        return rowids

    def _named(self, rowids: Indices) -> list[str]:
        """The ids of entries."""
        wanted, names = rowids.tolist(), self._seen("names")
        if unknown := [rowid for rowid in wanted if rowid not in names]:
            sql = "SELECT e.id, e.rowid FROM json_each(?) j JOIN entries e ON e.rowid = j.value"
            names.update((rowid, id_) for id_, rowid in self._rows(sql, (json.dumps(unknown),)))
        try:
            return [names[rowid] for rowid in wanted]
        except KeyError as error:
            raise damaged(self.path, f"an index names entry {error}, which is not there") from None

    def _kept(self, key: Hashable, load: Callable[[], K], update: Callable[[K, int], K]) -> K:
        """What is kept in memory under the key, of the vault as this thread sees it.

        `load` computes it anew, `update` brings that of an older revision up to date. It is not kept inside a
        transaction that has written, nor for a thread whose snapshot is older than what other threads keep.
        """
        now = self.revision()
        known = cast("tuple[int, K] | None", self._memory_of.get(key))  # the key says which kind it is
        if self._writing or (known is not None and known[0] > now):
            return load()
        if known is None or known[0] < now:
            known = now, load() if known is None else update(known[1], known[0])
            self._memory_of[key] = known
        return known[1]


def _closes(db: apsw.Connection) -> bool:
    """Whether the connection could be closed: not while another thread is reading."""
    try:
        db.close()
    except apsw.ThreadingViolationError:
        return False
    return True
