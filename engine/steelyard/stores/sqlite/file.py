"""The file of a vault: opened, checked, and written in transactions.

SQLite comes with apsw, because the `sqlite3` module of many Pythons cannot load extensions. Every
write is one transaction; the file is in WAL mode, so readers never wait, and writers wait their turn. Reading
changes no byte of the file.
"""

import itertools
import json
import re
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Self

import apsw
import numpy as np

from steelyard.base.arrays import Indices
from steelyard.base.errors import VaultError
from steelyard.memory.query import Filters
from steelyard.stores.base import RevisionCache, Space
from steelyard.stores.sqlite import guard, schema

IDS_KEPT = 2**20
_numbers = itertools.count(1)
_COPYING = threading.Lock()


class Ends:
    """Ends with its thread or vault, and closes their connection: a tokenizer of it would hold it for ever."""


class VaultFile:
    """What the parts of a vault share: connections, transactions, and what changed since a revision.

    Each thread that uses the vault has a connection of its own, opened when it first asks and closed when
    the thread ends or the vault is closed. Entries are known by their rowids here, int64, which are short and do
    not change.
    """

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = self._file = str(path)
        """What names the vault, and what is opened: of a store that is copied into a file, two."""
        # A place in the memory of this process, which every connection to it shares while one is open.
        self._memory = f"file:/steelyard-{next(_numbers)}?vfs=memdb" if self.path == guard.MEMORY else ""
        self._told = create or bool(self._memory)
        """Whether it was opened to be written: only then may a search make what it lacks."""
        self._thread = threading.local()
        self._connections: weakref.WeakSet[guard.GuardedConnection] = weakref.WeakSet()
        self._opening = threading.Lock()
        self._closed = False
        self._checked: set[str] = set()
        self._searches: Counter[str] = Counter()
        self._views: weakref.WeakValueDictionary[Filters, Any] = weakref.WeakValueDictionary()
        self._last = 0, -1
        """The newest committed state that some thread has seen; see `Readable.at`."""
        self.cache = RevisionCache(self)
        self._connect(create)
        self._first = self._thread.ends  # kept for the vault's life: what is in memory lives as long as this
        try:
            self._settle()
        except BaseException:
            self.close()
            raise

    # Connections

    @property
    def _db(self) -> guard.GuardedConnection:
        """The connection of this thread, opened when it first asks: the file may be another one then."""
        if self._closed:
            raise guard.closed(self.path)
        db: guard.GuardedConnection | None = getattr(self._thread, "db", None)
        if db is None:
            db = self._connect(create=False)
            if not self._memory:
                with self.snapshot():
                    schema.check_schema(db.run, self._file)
        return db

    def _connect(self, create: bool) -> guard.GuardedConnection:
        with self._opening:
            if self._closed:
                raise guard.closed(self.path)
            db = guard.connect_memory(self._memory) if self._memory else guard.connect(self._file, create)
            self._thread.db, self._thread.ends = db, (ends := Ends())
            weakref.finalize(ends, db.close).atexit = False
            self._connections.add(db)
            return db

    def close(self) -> None:
        """Close the file for every thread; the write-ahead log is folded in.

        What another thread is doing with it ends in VaultError.
        """
        with self._opening:
            self._closed = True
        for db in list(self._connections):
            while True:
                try:
                    db.close()
                    break
                except apsw.ThreadingViolationError:  # another thread is reading
                    db.interrupt()
                    time.sleep(0.001)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _settle(self) -> None:
        """Make the tables of a new vault, where that was asked for; check those of another one."""
        if self._memory:  # no other process has it, and to copy its pages takes a tenth of the time
            with _COPYING, self._db.backup("main", schema.empty(), "main") as copy:
                copy.step()
            return
        # In one statement, so that the three belong together: another process may be making the tables just now.
        [(version, application, tables)] = self._db.run(
            "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema) "
            "FROM pragma_user_version, pragma_application_id"
        )
        if application != schema.APPLICATION_ID and (version or tables):
            raise VaultError(f"{self.path} is an SQLite file of another program; name a vault or a new file")
        if version < 0:
            raise schema.damaged(self.path, f"its schema version is {version}")
        if version != schema.VERSION and (tables or version > schema.VERSION):
            other, remedy = ("a newer", "upgrade Steelyard, or ") if version > schema.VERSION else ("an older", "")
            raise VaultError(
                f"{self.path} was written by {other} Steelyard (schema {version}, this one knows "
                f"{schema.VERSION}); {remedy}index the data set into a new vault"
            )
        if not (tables or self._told):
            raise VaultError(f"{self.path} is empty; make a vault with steelyard index DATASET {self.path}")
        if self._told and not self._db.readonly("main"):
            self._db.run("PRAGMA journal_mode = wal")
        if not tables:
            with self.transaction():
                if not self._one("SELECT count(*) FROM sqlite_schema"):  # no other process has made them meanwhile
                    for statement in schema.TABLES:
                        self._db.run(statement)
        with self.snapshot():  # another process may be changing indexes and spaces just now
            schema.check_schema(self._db.run, self.path)

    def in_file(self, path: str | Path) -> str:
        """The path of the vault; one in memory, and what a store was copied into, is copied to this one."""
        if self._file == self.path != guard.MEMORY:
            return self.path
        try:
            with closing(apsw.Connection(str(path))) as copy, copy.backup("main", self._db, "main") as backup:
                backup.step()
        except guard.FAILURES as error:
            raise guard.explained(error, str(path), on_disk=True) from None
        return str(path)

    def faults(self) -> list[str]:
        """What SQLite finds wrong with the pages of the file; none when it is whole."""
        messages = [str(message) for (message,) in self._db.each("PRAGMA quick_check")]
        return [] if messages == ["ok"] else messages

    # Transactions

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is kept or none of it; MachineError when the file cannot be written.

        One inside another is part of the outer one. It belongs to the thread that began it. Another thread reads
        what was committed before, and waits up to 30 seconds for its turn to write; with a vault in memory it
        waits to read, too.
        """
        if self._db.in_transaction:
            yield
            return
        self._begun()
        try:
            # At once: one that reads first could not write any more after another process has.
            self._db.run("BEGIN IMMEDIATE")
            guard.fold_log(self._db, True)
            yield
            self._db.run("COMMIT")
        finally:
            self._end("ROLLBACK")  # unless it was committed

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What this thread reads inside is one state of the file, whatever others write meanwhile.

        A vault in memory is not written meanwhile: writers wait until the snapshot ends.
        """
        self._db.run("BEGIN")
        self._begun()
        try:
            yield
        finally:
            self._end("COMMIT")

    def _begun(self) -> None:
        self._thread.state = {"last": self._last}

    def state(self) -> dict[Any, Any]:
        """What this thread keeps of the transaction or snapshot that it is in, until it writes or that ends."""
        return getattr(self._thread, "state", None) or {}

    def _steady(self) -> AbstractContextManager[None]:
        """One state of the file for several reads: that of the transaction this thread is in, else a snapshot."""
        return nullcontext() if self._db.in_transaction else self.snapshot()

    def _end(self, how: str) -> None:
        """End a transaction unless it has ended: a full disk does that, and closing, if an interrupt lets it."""
        self._thread.state = None
        with suppress(apsw.ConnectionClosedError, VaultError):
            if self._db.in_transaction:
                self._db.run(how)

    def uncommitted(self) -> bool:
        return self._db.txn_state("main") == apsw.SQLITE_TXN_WRITE

    # Reading

    def _one(self, sql: str, values: Sequence[guard.Value] = ()) -> Any:  # noqa: ANN401 -- whatever SQL returns
        return self._db.run(sql, values)[0][0]

    def _spaces(self) -> list[tuple[str, Space, int]]:
        rows = self._db.run("SELECT space, model, layer, recipe, dim FROM spaces ORDER BY space")
        return [(f"vec_{number:d}", Space(*names), dim) for number, *names, dim in rows]

    def _sound(self, table: str, dim: int) -> str:
        """The table of a vector space, looked at before it is used for the first time."""
        if table not in self._checked:
            schema.check_books(self._db.run, self.path, table, dim)
            self._checked.add(table)
        return table

    # What changed

    def at(self) -> tuple[int, int]:
        """See Readable.at; of one state it is read once.

        It went back where the revision is lower than one that was seen before this state began: a snapshot that
        is older than what others see by now has seen none.
        """
        state = self.state()
        known: tuple[int, int] | None = state.get("at")
        if known is None:
            falls, highest = state.get("last", self._last)
            rows = self._db.run("SELECT value FROM meta WHERE key = 'revision'")
            read = rows[0][0] if rows else None
            if not (isinstance(read, str) and re.fullmatch(r"[0-9]{1,18}", read)):
                raise schema.damaged(self.path, f"its revision is {read!r}")
            fell = int(read) < highest
            known = state["at"] = falls + fell, int(read)
            if fell or not self.uncommitted():
                self._last = max(self._last, known)
        return known

    def _revise(self) -> None:
        self._begun()
        self._db.run("UPDATE meta SET value = value + 1 WHERE key = 'revision'")

    def _note(self, entries: str, values: tuple[str, ...] = ()) -> None:
        """List the rowids that a SELECT gives as changed at the revision that `_revise` makes next."""
        listed = f"SELECT n.rowid, value + 1 FROM meta, ({entries}) n WHERE key = 'revision'"
        self._db.run(f"INSERT INTO changes {listed} {schema.NOTE}", values)

    def _changed(self, since: int) -> Indices:
        """The entries that changed after a revision, those that are gone included; ascending."""
        sql = "SELECT entry FROM changes WHERE revision > ? ORDER BY +entry"  # by the index of revisions
        return self._numbers_of(sql, (since,))

    def _numbers_of(self, sql: str, values: Sequence[guard.Value]) -> Indices:
        rows = self._db.run(sql, values)
        return np.fromiter((number for (number,) in rows), dtype=np.int64, count=len(rows))

    def _inside(self, filters: Filters) -> Indices:
        """The entries in scope, ascending."""

        def read() -> Indices:
            condition, values = schema.where(filters)
            return self._numbers_of(f"SELECT e.rowid FROM entries e WHERE {condition} ORDER BY e.rowid", values)

        return self.cache.get("rows in scope", filters, read)

    def _ids_of(self, rowids: Indices) -> list[str]:
        def read(unknown: list[int]) -> dict[int, str]:
            sql = "SELECT e.rowid, e.id FROM json_each(?) j JOIN entries e ON e.rowid = j.value"
            return dict(self._db.run(sql, (json.dumps(unknown),), (guard.INTEGER, guard.TEXT)))

        wanted = rowids.tolist()
        names = self.cache.many("ids", "rows", wanted, read, IDS_KEPT)
        try:
            return [names[rowid] for rowid in wanted]
        except KeyError as error:
            raise schema.damaged(self.path, f"an index names entry {error}, which is not there") from None
