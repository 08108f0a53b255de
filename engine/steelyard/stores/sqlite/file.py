"""The file of a vault: opened, brought to this version, and written in transactions.

SQLite comes with apsw, because the `sqlite3` module of many Pythons cannot load extensions. Every
write is one transaction; the file is in WAL mode, so readers never wait, and writers wait their turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import apsw

from steelyard.errors import VaultError
from steelyard.stores.base import Space
from steelyard.stores.sqlite.check import check_schema
from steelyard.stores.sqlite.connect import connect, machine_errors
from steelyard.stores.sqlite.damage import damaged
from steelyard.stores.sqlite.schema import APPLICATION_ID, MIGRATIONS, VERSION


def table_of(space: int) -> str:
    """The name of the table of a vector space, made of an integer and of nothing else."""
    return f"vec_{space:d}"


class VaultFile:
    """What the parts of a vault share: the connection, transactions, and the revision of what is stored."""

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = str(path)
        self._db = connect(self.path, create)
        try:
            self._migrate()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the file; the write-ahead log is folded in."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See Store.transaction; MachineError when the file cannot be written."""
        with machine_errors(self.path):
            if self._db.in_transaction:
                yield
                return
            try:
                # At once: one that reads first could not write any more after another process has.
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._end("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside is one state of the file, whatever other processes write meanwhile."""
        with machine_errors(self.path):
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._end("COMMIT")

    def _end(self, how: str) -> None:
        """End a transaction unless it has ended: a full disk does that, and closing, which an interrupt may let
        come first.
        """
        with suppress(apsw.ConnectionClosedError):
            if self._db.in_transaction:
                self._db.execute(how)

    def revision(self) -> int:
        """See Store.revision."""
        row = self._db.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()
        if row is None or not (isinstance(row[0], str) and re.fullmatch(r"[0-9]{1,18}", row[0])):
            raise damaged(self.path, f"its revision is {row and row[0]!r}")
        return int(row[0])

    def _one(self, sql: str, values: Sequence[str | float] = ()) -> Any:  # noqa: ANN401 -- whatever SQL returns
        return next(self._db.execute(sql, tuple(values)))[0]

    def _revise(self) -> None:
        self._db.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")

    def _spaces(self) -> list[tuple[str, Space, int]]:
        rows = self._db.execute("SELECT space, model, layer, recipe, dim FROM spaces ORDER BY space")
        return [(table_of(number), Space(model, layer, recipe), dim) for number, model, layer, recipe, dim in rows]

    def _migrate(self) -> None:
        # One statement, one state: another process may be making the tables just now.
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
        if not self._db.readonly("main"):
            with machine_errors(self.path):
                self._db.execute("PRAGMA journal_mode = wal")
        self._db.execute("PRAGMA synchronous = normal")
        self._db.execute("PRAGMA foreign_keys = on")
        if version < VERSION:
            self._upgrade()
        else:
            with self.snapshot():  # another process may be changing indexes and spaces just now
                check_schema(self._db, self.path, VERSION)

    def _upgrade(self) -> None:
        with self.transaction():
            version = int(self._one("PRAGMA user_version"))
            check_schema(self._db, self.path, version)
            for step in range(version, VERSION):
                for statement in MIGRATIONS[step]:
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {step + 1}")
                self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
