"""Rows of PostgreSQL: of a running database as they are at one moment, and of a plain dump, as COPY writes them.

Of a dump only the COPY blocks are read; no statement in it is looked at, and nothing is run. Of a database the
password comes from PGPASSWORD or from .pgpass, as libpq looks for it, and is in no address. One transaction of
repeatable read reads everything and can write nothing. Only ordinary tables are read, as the text that a plain
dump has, so that one parser reads both. Nothing that the database holds is run with the rights of who reads it: no
view, no policy of a table, no cast or operator of a type of its own, no table of another server that inherits.

>>> array_of('{a,"needs, review",NULL,"NULL"}')
['a', 'needs, review', None, 'NULL']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from steelyard.base.errors import DataError, MachineError, shown
from steelyard.base.inputs import largest
from steelyard.extensions.postgres.address import SECONDS, check_address

if TYPE_CHECKING:
    import psycopg

Row = dict[str, str | None]

_BEGIN = re.compile(r'COPY (?:"?\w+"?\.)?"?(\w+)"? \(([^()]*)\) FROM stdin;')
_END = "\\."
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9A-Fa-f]{1,2}|.)", re.DOTALL)
_NAMED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ITEM = re.compile(r'"((?:[^"\\]|\\.)*+)"?|([^,"{}]+)')
"""A quote that is never closed ends with the text: what stands in it is not read again from each of its places."""
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


def copied_rows(lines: Iterable[str], tables: Iterable[str]) -> Iterator[tuple[str, Row]]:
    """Each row of these tables with the table's name; ValueError for a row with another number of columns."""
    wanted = frozenset(tables)
    table, columns = "", list[str]()
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\n")
        if not columns:
            begin = _BEGIN.fullmatch(line)
            if begin:
                table, columns = begin[1], [name.strip().strip('"') for name in begin[2].split(",")]
        elif line == _END:
            columns = []
        elif table in wanted:
            values = line.split("\t")
            if len(values) != len(columns):
                raise ValueError(f"line {number} has {len(values)} values for {len(columns)} columns of {table}")
            yield table, dict(zip(columns, map(_value, values), strict=True))


def _value(text: str) -> str | None:
    return None if text == r"\N" else _ESCAPE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "01234567":
        return chr(int(code, 8))
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return _NAMED.get(code, code)


def array_of(text: str | None) -> list[str | None]:
    """A one-dimensional array of texts; ValueError for text that is none."""
    if not text:
        return []
    inner = text.removeprefix("{").removesuffix("}")
    if len(inner) != len(text) - 2:
        raise ValueError(f"{text:.40} is no array")
    return [
        re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else None if match[2] == "NULL" else match[2]
        for match in _ITEM.finditer(inner)
    ]


class LiveDatabase:
    """The tables of one moment: `columns` by table, and the rows of a table as texts."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], path: Sequence[str]) -> None:
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

    def holds(self, needed: Mapping[str, Iterable[str]]) -> bool:
        """Whether it has these tables with these columns."""
        return all(table in self.columns and {*own} <= {*self.columns[table]} for table, own in needed.items())

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
