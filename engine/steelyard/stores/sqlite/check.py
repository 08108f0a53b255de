"""Whether a file holds the tables of a vault and nothing else.

Every object of the file has to be one that our own statements make: its SQL is compared with that of an empty
vault, and with what we would write for the keyword indexes and vector spaces that it names.
Foreign tables, views, triggers and columns are refused before any of them is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import apsw
import sqlite_vec

from steelyard.base.errors import PATH_WIDTH, ConfigError, VaultError, shown
from steelyard.base.files import STRICT_JSON
from steelyard.stores.base import KeywordIndex
from steelyard.stores.sqlite.guard import damaged
from steelyard.stores.sqlite.schema import COLUMNS, TABLES, index_statements, space_statement

MOST_OBJECTS = 10_000
"""Rows of sqlite_schema; a vault with a hundred vector spaces has less than a thousand."""
LARGEST_DIMENSION = 100_000
CHUNK = 1024
"""Vectors that sqlite-vec keeps in one row of its own."""


class _Thing(NamedTuple):
    """A row of sqlite_schema; `sql` without white space, because it means nothing there."""

    type: str
    name: str
    table: str
    sql: str | None

    def numbered(self, number: int) -> _Thing:
        """Return the same thing as vector space `number` has it; the statements at hand are those of space 1."""
        renamed = partial(_SPACE.sub, f"vec_{number:d}")
        return _Thing(self.type, renamed(self.name), renamed(self.table), self.sql and renamed(self.sql))


_SPACE = re.compile(r"vec_1(?![0-9])")


def check_schema(db: apsw.Connection, path: str) -> None:
    """VaultError, with the remedy, unless the file holds what a vault holds and no more."""
    place = shown(path, PATH_WIDTH)
    try:
        foreign = _foreign(db)
    # RecursionError: JSON nested without end. SQLError: a tokenizer that does not exist.
    except (TypeError, ValueError, RecursionError, ConfigError, apsw.SQLError) as error:
        foreign = shown(str(error), 200)
    if foreign:
        raise VaultError(
            f"{place} is not a vault as Steelyard writes it ({foreign}); restore a copy of it, or index the data "
            "set into a new vault"
        )


def check_books(db: apsw.Connection, path: str, table: str, dim: int) -> None:
    """VaultError unless the tables that sqlite-vec keeps for one of ours agree: it trusts them, and crashes."""
    odd = (
        f"SELECT 1 FROM {table}_chunks WHERE size IS NOT {CHUNK} OR typeof(validity) <> 'blob' "
        f"OR length(validity) <> {CHUNK // 8} OR typeof(rowids) <> 'blob' OR length(rowids) <> {CHUNK * 8} "
        f"OR chunk_id NOT IN (SELECT rowid FROM {table}_vector_chunks00)",
        f"SELECT 1 FROM {table}_vector_chunks00 WHERE typeof(vectors) <> 'blob' "
        f"OR length(vectors) <> {CHUNK * dim * 4} OR typeof(rowid) <> 'integer' "
        f"OR rowid NOT IN (SELECT chunk_id FROM {table}_chunks)",
        f"SELECT 1 FROM {table}_rowids WHERE typeof(chunk_offset) <> 'integer' "
        f"OR chunk_offset NOT BETWEEN 0 AND {CHUNK - 1} "
        f"OR chunk_id IS NULL OR chunk_id NOT IN (SELECT chunk_id FROM {table}_chunks)",
    )
    if any(db.execute(f"{sql} LIMIT 1").fetchone() for sql in odd):
        raise damaged(path, f"what sqlite-vec keeps of {table} does not agree")


def _foreign(db: apsw.Connection) -> str:
    """What does not belong, or is missing; empty when all is well. ValueError for odd rows in it."""
    rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT ?", (MOST_OBJECTS,)).fetchall()
    things = [_thing(*row) for row in rows]
    if len(things) == MOST_OBJECTS or len({(thing.type, thing.name) for thing in things}) < len(things):
        return "it has too many objects, or two of one name"
    left = set(things) - {_SEQUENCE}
    # The tables that name indexes and spaces are only read once they are known to be ours.
    for part in (lambda: _made(*TABLES), lambda: _indexes(db), lambda: _spaces(db)):
        wanted = set(part())
        if missing := wanted - left:
            thing = max(missing, key=lambda thing: (thing.type, thing.name))  # a table rather than its index
            return f"its {thing.type} {shown(thing.name)} is missing or another one"
        left -= wanted
    if other := min(left, key=str, default=None):
        return f"{other.type} {shown(other.name)} does not belong there"
    # Where a table lies on another's pages, its values have types that STRICT promises to refuse.
    shared = "SELECT 1 FROM sqlite_schema WHERE rootpage IS NOT 0 GROUP BY rootpage HAVING count(*) > 1"
    first = "SELECT id, title FROM entries LIMIT 1"
    odd = f"SELECT 1 FROM ({first}) WHERE typeof(id) <> 'text' OR typeof(title) <> 'text'"
    swapped = db.execute(shared).fetchone() or db.execute(odd).fetchone()
    return "the pages of one table are those of another" if swapped else ""


def _thing(type_: object, name: object, table: object, sql: object) -> _Thing:
    if not all(isinstance(part, str) for part in (type_, name, table)) or not isinstance(sql, str | None):
        raise TypeError("its schema is damaged")
    return _Thing(str(type_), str(name), str(table), None if sql is None else "".join(sql.split()))


_SEQUENCE = _Thing("table", "sqlite_sequence", "sqlite_sequence", "CREATETABLEsqlite_sequence(name,seq)")
"""SQLite's own table for AUTOINCREMENT, which stays when the tables are gone that needed it."""


@lru_cache
def _made(*statements: str) -> frozenset[_Thing]:
    """The objects that statements make, those of FTS5 and sqlite-vec for themselves included."""
    db = apsw.Connection(":memory:")
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    for statement in statements:
        db.execute(statement)
    rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    return frozenset(_thing(*row) for row in rows) - {_SEQUENCE}


def _indexes(db: apsw.Connection) -> Iterator[_Thing]:
    rows: list[Any] = db.execute("SELECT name, fields, tokenizer FROM keyword_indexes").fetchall()
    for name, fields, tokenizer in rows:
        columns = STRICT_JSON.decode(fields)
        if not isinstance(columns, list) or not columns or any(column not in COLUMNS for column in columns):
            raise ValueError(f"keyword index {shown(name)} covers no fields of entries")
        index = index_statements(KeywordIndex(name, tuple(columns), tokenizer))
        yield from _made(*TABLES, *index) - _made(*TABLES)


def _spaces(db: apsw.Connection) -> Iterator[_Thing]:
    for number, dim, *texts in db.execute("SELECT space, dim, model, layer, recipe FROM spaces").fetchall():
        if type(number) is not int or type(dim) is not int or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"vector space {shown(number)} cannot exist")
        if number < 1 or not 1 <= dim <= LARGEST_DIMENSION:
            raise ValueError(f"vector space {shown(number)} of dimension {shown(dim)} cannot exist")
        yield from (thing.numbered(number) for thing in _made(space_statement(1, dim)))
