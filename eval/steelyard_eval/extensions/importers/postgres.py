"""Stores that lie in a PostgreSQL database: its tables as they are at one moment, as COPY writes them.

The password comes from PGPASSWORD or from .pgpass, as libpq looks for it, and is in no address. One transaction
of repeatable read reads everything and can write nothing. Only ordinary tables are read, as the text that a plain
dump has, so that one parser reads both. Nothing that the database holds is run with the rights of who reads it: no
view, no policy of a table, no cast or operator of a type of its own, no table of another server that inherits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from steelyard.base.errors import DataError, MachineError, shown
from steelyard.base.inputs import largest
from steelyard.extensions.postgres.address import SECONDS, check_address
from steelyard_eval.extensions.importers.copied import Row, copied_rows

if TYPE_CHECKING:
    import psycopg

SETTINGS = (
    "search_path = ''",
    "row_security = off",
    "timezone = 'UTC'",
    "datestyle = 'ISO, YMD'",
    "statement_timeout = '10min'",
    "lock_timeout = '10s'",
)
"""Without a search path names are PostgreSQL's own; row security that is off is an error where a policy is."""
PATH = "SELECT pg_catalog.current_schemas(false)"
TABLES = """
    SELECT n.nspname, c.relname, a.attname
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relkind = 'r'
    ORDER BY c.relname, a.attnum
"""


class LiveDatabase:
    """The tables of one moment: `columns` by table, and the rows of a table as texts."""

    def __init__(self, connection: psycopg.Connection[object], path: Sequence[str]) -> None:
        self._connection = connection
        self._left = largest()
        self._schemas: dict[str, str] = {}
        self.columns: dict[str, list[str]] = {}
        tables: dict[tuple[str, str], list[str]] = {}
        for schema, table, column in connection.execute(TABLES):
            tables.setdefault((schema, table), []).append(column)
        self.ours = ("steelyard", "entries") in tables
        """Whether it holds a store of Steelyard's own."""
        for (schema, table), columns in tables.items():
            if schema in path and (
                table not in self.columns or path.index(schema) < path.index(self._schemas[table])
            ):
                self._schemas[table], self.columns[table] = schema, columns

    def rows(self, table: str, order: Sequence[str]) -> list[Row]:
        """Every row of a table, in the byte order of columns; none where there is no such table."""
        from psycopg import sql

        names = self.columns.get(table)
        if names is None:
            return []
        text = sql.SQL("COPY (SELECT {} FROM ONLY {}) TO STDOUT").format(
            sql.SQL(", ").join(map(sql.Identifier, names)), sql.Identifier(self._schemas[table], table)
        )
        with self._connection.cursor().copy(text) as copy:
            rows = [row for _, row in copied_rows(self._lines(table, names, map(bytes, copy)), (table,))]
        return sorted(rows, key=lambda row: [(row[name] is None, (row[name] or "").encode()) for name in order])

    def _lines(self, table: str, names: Sequence[str], blocks: Iterator[bytes]) -> Iterator[str]:
        """The rows as the block of a dump; DataError for more than may be read."""
        yield f"COPY {table} ({', '.join(names)}) FROM stdin;"
        for row in blocks:
            self._left -= len(row)
            if self._left < 0:
                raise DataError(
                    f"the tables have more than {largest() // 2**20} MB; dump and import a part of them"
                )
            yield row.decode()


@contextmanager
def connected(address: str) -> Iterator[LiveDatabase]:
    """The database at an address.

    Raises ConfigError for an address that cannot be read or holds a password, MachineError where the database
    cannot be reached, breaks off, or does not let the tables be read.
    """
    check_address(address)
    import psycopg

    try:
        with psycopg.connect(address, connect_timeout=SECONDS, autocommit=False) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            [[path]] = connection.execute(PATH).fetchall()
            for setting in SETTINGS:
                connection.execute(f"SET LOCAL {setting}".encode())
            yield LiveDatabase(connection, path)
            connection.rollback()
    except psycopg.Error as error:
        reason = shown(" ".join(str(error).split()), 300)
        raise MachineError(
            f"{shown(address)} cannot be read ({reason}); see that the server is up, that PGPASSWORD or ~/.pgpass "
            "has the password, and that its user may read the tables"
        ) from None
