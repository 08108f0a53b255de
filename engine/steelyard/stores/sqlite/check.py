"""Whether a file holds the tables of a vault and nothing else.

Every object of the file has to be one that our own statements make: its SQL is compared with that of an empty
vault of the same version, and with what we would write for the keyword indexes and vector spaces that it names.
Foreign tables, views, triggers and columns are refused before any of them is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import apsw

from steelyard.errors import PATH_WIDTH, ConfigError, VaultError, shown
from steelyard.stores.base import KeywordIndex
from steelyard.stores.sqlite.schema import COLUMNS, MIGRATIONS, index_statements, space_statement

MOST_OBJECTS = 10_000
"""Rows of sqlite_schema; a vault with a hundred vector spaces has less than a thousand."""
LARGEST_DIMENSION = 100_000


class _Thing(NamedTuple):
    """A row of sqlite_schema; `sql` without white space, because it means nothing there."""

    type: str
    name: str
    table: str
    sql: str | None


def check_schema(db: apsw.Connection, path: str, version: int) -> None:
    """VaultError, with the remedy, unless the file holds what a vault of this version holds and no more."""
    place = shown(path, PATH_WIDTH)
    try:
        foreign = _foreign(db, version)
    except (TypeError, ValueError, ConfigError) as error:
        foreign = shown(str(error), 200)
    if foreign:
        raise VaultError(
            f"{place} is not a vault as Steelyard writes it ({foreign}); restore a copy of it, or index the data "
            "set into a new vault"
        )


def _foreign(db: apsw.Connection, version: int) -> str:
    """What does not belong, or is missing; empty when all is well. ValueError for bookkeeping that is none."""
    rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT ?", (MOST_OBJECTS,)).fetchall()
    things = [_thing(*row) for row in rows]
    if len(things) == MOST_OBJECTS or len({(thing.type, thing.name) for thing in things}) < len(things):
        return "it has too many objects, or two of one name"
    left = set(things)
    for wanted in fixed(version):
        if wanted not in left:
            return f"its {wanted.type} {shown(wanted.name)} is missing or another one"
        left.discard(wanted)
    made = [*_indexes(db), *_spaces(db)] if version else []
    for wanted in made:
        if wanted not in left:
            return f"its {wanted.type} {shown(wanted.name)} is missing or another one"
        left.discard(wanted)
    virtual = [thing.name for thing in made if thing.type == "table"]
    other = next((thing for thing in sorted(left, key=str) if not _shadow(thing, virtual)), None)
    return f"{other.type} {shown(other.name)} does not belong there" if other else ""


def _thing(type_: object, name: object, table: object, sql: object) -> _Thing:
    if not all(isinstance(part, str) for part in (type_, name, table)) or not isinstance(sql, str | None):
        raise TypeError("its schema is damaged")
    return _Thing(str(type_), str(name), str(table), None if sql is None else _plain(str(sql)))


def _plain(sql: str) -> str:
    return "".join(sql.split())


@lru_cache
def fixed(version: int) -> tuple[_Thing, ...]:
    """The objects of an empty vault of a version."""
    db = apsw.Connection(":memory:")
    for step in range(version):
        for statement in MIGRATIONS[step]:
            db.execute(statement)
    return tuple(_thing(*row) for row in db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))


def _indexes(db: apsw.Connection) -> Iterator[_Thing]:
    rows: list[Any] = db.execute("SELECT name, fields, tokenizer FROM keyword_indexes").fetchall()
    for name, fields, tokenizer in rows:
        columns = json.loads(fields)
        if not isinstance(columns, list) or not columns or any(column not in COLUMNS for column in columns):
            raise ValueError(f"keyword index {shown(name)} covers no fields of entries")
        table, *triggers = index_statements(KeywordIndex(name, tuple(columns), tokenizer))
        yield _Thing("table", f"fts_{name}", f"fts_{name}", _plain(table))
        for event, sql in zip(_EVENTS, triggers, strict=True):
            yield _Thing("trigger", f"fts_{name}_{event}", "entries", _plain(sql))


_EVENTS = ("insert", "delete", "update")


def _spaces(db: apsw.Connection) -> Iterator[_Thing]:
    for number, dim, *texts in db.execute("SELECT space, dim, model, layer, recipe FROM spaces").fetchall():
        if type(number) is not int or type(dim) is not int or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"vector space {shown(number)} is none")
        if number < 1 or not 1 <= dim <= LARGEST_DIMENSION:
            raise ValueError(f"vector space {shown(number)} of dimension {shown(dim)} is none")
        yield _Thing("table", f"vec_{number}", f"vec_{number}", _plain(space_statement(number, dim)))


_SHADOW = re.compile(r"(?P<table>(fts|vec)_\w+?)_(data|idx|docsize|config|info|chunks|rowids|vector_chunks\d\d)")
_COLUMNS = re.compile(r"CREATETABLE[\"']?\w+[\"']?\((?P<columns>[\w,]+(PRIMARYKEY\([\w,]+\))?)\)(WITHOUTROWID)?")
_EXPRESSIONS = re.compile(r"CHECK|GENERATED|DEFAULT|COLLATE|REFERENCES|FOREIGN|CONSTRAINT", re.IGNORECASE)


def _shadow(thing: _Thing, virtual: list[str]) -> bool:
    """Whether this is a table that FTS5 or sqlite-vec keep for one of ours, with plain columns: no expression is
    evaluated in it. Their versions differ in its columns, so its SQL is not compared.
    """
    if thing.name == "sqlite_sequence":
        return thing.sql == "CREATETABLEsqlite_sequence(name,seq)"
    found = _SHADOW.fullmatch(thing.table)
    if found is None or found["table"] not in virtual:
        return False
    if thing.type == "index":
        return thing.sql is None and thing.name.startswith("sqlite_autoindex_")
    columns = _COLUMNS.fullmatch(thing.sql or "")
    return thing.type == "table" and columns is not None and not _EXPRESSIONS.search(columns["columns"])
