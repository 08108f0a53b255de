"""The tables of a vault file and the statements that read and write entries."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from itertools import repeat
from types import NoneType
from typing import Any

from steelyard.base.errors import VaultError, shown
from steelyard.base.fields import (
    END_OF_TIME,
    FIRST_TIME,
    LIST_FIELDS,
    NUMBER_FIELDS,
    TEXT_FIELDS,
    TIME_FIELDS,
    read_number,
    read_texts,
)
from steelyard.base.files import STRICT_JSON
from steelyard.memory.entry import EVERY_FIELD, Entry, Relation, check_entry
from steelyard.memory.query import EVERYTHING, SUPERSEDED, Filters, Rule
from steelyard.stores.base import KeywordIndex

APPLICATION_ID = 0x53544C59  # "STLY", so that another program's SQLite file is recognised
VERSION = 5
"""A file of another version is refused: no version has been released, so there is nothing that has to be kept."""

COLUMNS = EVERY_FIELD
NOTE = "ON CONFLICT(entry) DO UPDATE SET revision = excluded.revision"
"""How the journal takes an entry that it lists already."""
_LEARN = """INSERT INTO edges SELECT new.id, r.value ->> 1, r.value ->> 0, r.value ->> 2
FROM json_each(new.relations) r WHERE r.value ->> 3 IN ('', 'accepted');"""
_FORGET = "DELETE FROM edges WHERE source = old.id;"

TABLES = (
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    "CREATE TABLE entries(rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, "
    + ", ".join(f'"{name}" {"REAL" if name in NUMBER_FIELDS else "TEXT"}' for name in COLUMNS if name != "id")
    + ") STRICT",
    "CREATE INDEX entries_created ON entries(created_at)",
    "CREATE INDEX entries_project ON entries(project)",
    # Fields that few entries have: an entry outside a scope is found without reading all entries.
    "CREATE INDEX entries_kind ON entries(kind)",
    "CREATE INDEX entries_valid_from ON entries(valid_from) WHERE valid_from IS NOT NULL",
    "CREATE INDEX entries_valid_until ON entries(valid_until) WHERE valid_until IS NOT NULL",
    "CREATE TABLE keyword_indexes(name TEXT PRIMARY KEY, fields TEXT NOT NULL, tokenizer TEXT NOT NULL) STRICT",
    "CREATE TABLE spaces(space INTEGER PRIMARY KEY, model TEXT NOT NULL, layer TEXT NOT NULL, "
    "recipe TEXT NOT NULL, dim INTEGER NOT NULL, UNIQUE(model, layer, recipe)) STRICT",
    "CREATE TABLE models(name TEXT PRIMARY KEY, kind TEXT NOT NULL, settings TEXT NOT NULL) STRICT",
    "CREATE TABLE model_arrays(model TEXT NOT NULL REFERENCES models(name) ON DELETE CASCADE, name TEXT NOT NULL, "
    "data BLOB NOT NULL, PRIMARY KEY(model, name)) STRICT",
    "INSERT INTO meta VALUES('revision', '0')",
    # What a graph is searched by. Triggers keep it equal to the relations that are not only proposed.
    "CREATE TABLE edges(source TEXT NOT NULL, target TEXT NOT NULL, type TEXT NOT NULL, strength REAL) STRICT",
    "CREATE INDEX edges_source ON edges(source)",
    "CREATE INDEX edges_target ON edges(target)",
    f"CREATE TRIGGER edges_insert AFTER INSERT ON entries BEGIN {_LEARN} END",
    f"CREATE TRIGGER edges_delete AFTER DELETE ON entries BEGIN {_FORGET} END",
    f"CREATE TRIGGER edges_update AFTER UPDATE OF id, relations ON entries BEGIN {_FORGET} {_LEARN} END",
    # The revision at which each entry or one of its vectors changed last, also of entries that are gone. What is
    # computed from all entries is kept with its revision and brought up to date from here: in memory, or in the
    # last two tables, which hold the words of the entries (see words.py).
    "CREATE TABLE changes(entry INTEGER PRIMARY KEY, revision INTEGER NOT NULL) STRICT",
    "CREATE INDEX changes_revision ON changes(revision)",
    *(
        f"CREATE TRIGGER changes_{event} AFTER {event.upper()} ON entries BEGIN INSERT INTO changes "
        f"SELECT {row}.rowid, value + 1 FROM meta WHERE key = 'revision' {NOTE}; END"
        for event, row in (("insert", "new"), ("update", "new"), ("delete", "old"))
    ),
    "CREATE TABLE word_indexes(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL, "
    "entries BLOB NOT NULL, lengths BLOB NOT NULL) STRICT",
    "CREATE TABLE postings(number INTEGER NOT NULL, word TEXT NOT NULL, entries BLOB NOT NULL, "
    "counts BLOB NOT NULL, positions BLOB NOT NULL, PRIMARY KEY(number, word)) STRICT, WITHOUT ROWID",
)
"""The statements, run one by one, that make an empty vault of a new file."""


def index_statements(index: KeywordIndex) -> tuple[str, ...]:
    """What makes the table of a keyword index, and the triggers that keep it equal to the entries on insert,
    delete and update. `KeywordIndex` checked the name and the tokenizer, so that they are safe to write here.
    """
    table, fields = f"fts_{index.name}", ", ".join(f'"{name}"' for name in index.fields)
    old, new = (", ".join(f'{row}."{name}"' for name in index.fields) for row in ("old", "new"))
    forget = f"INSERT INTO {table}({table}, rowid, {fields}) VALUES('delete', old.rowid, {old});"
    learn = f"INSERT INTO {table}(rowid, {fields}) VALUES(new.rowid, {new});"
    return (
        f"CREATE VIRTUAL TABLE {table} USING fts5("
        f"{fields}, content='entries', content_rowid='rowid', tokenize='{index.tokenizer}')",
        f"CREATE TRIGGER {table}_insert AFTER INSERT ON entries BEGIN {learn} END",
        f"CREATE TRIGGER {table}_delete AFTER DELETE ON entries BEGIN {forget} END",
        f"CREATE TRIGGER {table}_update AFTER UPDATE ON entries BEGIN {forget} {learn} END",
    )


def space_statement(number: int, dim: int) -> str:
    """What makes the table of a vector space."""
    return f"CREATE VIRTUAL TABLE vec_{number:d} USING vec0(embedding float[{dim:d}] distance_metric=cosine)"


NAMES = ", ".join(f'"{name}"' for name in COLUMNS)
_MARKS = ", ".join("?" * len(COLUMNS))
SET = ", ".join(f'"{name}" = excluded."{name}"' for name in COLUMNS if name != "id")
_DIFFERS = " OR ".join(f'entries."{name}" IS NOT excluded."{name}"' for name in COLUMNS if name != "id")
INSERT = f"INSERT INTO entries({NAMES}) VALUES({_MARKS})"
UPSERT = f"{INSERT} ON CONFLICT(id) DO UPDATE SET {SET} WHERE {_DIFFERS} RETURNING rowid"


def select(names: Sequence[str] = COLUMNS) -> str:
    """The statement that reads these columns of ``entries e``, names checked against `COLUMNS`."""
    return "SELECT " + ", ".join(f'e."{COLUMNS[COLUMNS.index(name)]}"' for name in names) + " FROM entries e"


def to_row(entry: Entry) -> tuple[str | float | None, ...]:
    """The bound values of an entry, in the order of `COLUMNS`; DataError for odd ones. Lists become JSON text."""
    check_entry(entry)
    return tuple(_to_sql(name, getattr(entry, name)) for name in COLUMNS)


def _to_sql(name: str, value: Any) -> str | float | None:  # noqa: ANN401 -- a field of any type
    if name == "relations":
        value = [[r.type, r.target, r.strength, r.status] for r in value]
    if name == "extra":
        return json.dumps(dict(value), sort_keys=True)  # ASCII: unknown fields may hold lone surrogates
    if isinstance(value, list | tuple):
        return json.dumps(value, ensure_ascii=False)
    return value  # type: ignore[no-any-return]  # the remaining fields are texts, numbers or absent


def from_row(names: Sequence[str], row: Sequence[Any]) -> Entry:
    """The entry of one row of `select(names)`; fields that were not read are empty.

    The file may hold anything, so VaultError unless every value is one that `to_row` writes.
    """
    try:
        return Entry(**{name: _READ[name](value) for name, value in zip(names, row, strict=True)})
    except (ValueError, TypeError, RecursionError) as error:
        raise VaultError(
            f"entry {shown(row[names.index('id')])} of the vault is damaged ({shown(str(error))}); "
            "index the data set into a new vault"
        ) from None


def from_rows(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Entry]:
    """The entries of many rows, each as `from_row` reads it, column by column: that takes half the time."""
    try:
        columns = {
            name: _column(name, values) for name, values in zip(names, zip(*rows, strict=True), strict=bool(rows))
        }
    except (ValueError, TypeError, RecursionError):
        return [from_row(names, row) for row in rows]  # which names the entry that is damaged
    entries = [object.__new__(Entry) for _ in rows]
    for field in fields(Entry):  # arguments of a frozen class take twice as long as slots
        empty: Iterable[Any] = ({} for _ in rows) if field.name == "extra" else repeat(field.default)
        deque(map(Entry.__dict__[field.name].__set__, entries, columns.get(field.name, empty)), maxlen=0)
    return entries


def _column(name: str, values: Sequence[Any]) -> Sequence[Any]:
    """The values of one field, read; texts, and numbers of which none is known, are seen to be sound at once."""
    return values if {*map(type, values)} == {_SOUND.get(name)} else [*map(_READ[name], values)]


_SOUND = {**dict.fromkeys(TEXT_FIELDS, str), **dict.fromkeys(NUMBER_FIELDS, NoneType), "id": None}
_ID = re.compile(r"\S+")


def _id(value: Any) -> str:  # noqa: ANN401 -- whatever the file holds, here and below
    if not _ID.fullmatch(value):
        raise ValueError("its id is empty or holds white space")
    return str(value)


def _text(value: Any) -> str:  # noqa: ANN401 -- as above
    if type(value) is not str:
        raise TypeError("a field of text holds something else")
    return value


def _number(value: Any) -> float | None:  # noqa: ANN401 -- as above
    return None if value is None else read_number(value)


def _time(value: Any) -> float | None:  # noqa: ANN401 -- as above
    if value is not None and not FIRST_TIME <= value < END_OF_TIME:
        raise ValueError("a time is beyond the calendar")
    return _number(value)


def _texts(value: Any) -> tuple[str, ...]:  # noqa: ANN401 -- as above
    if value == "[]":  # most of them: not worth a parser
        return ()
    return read_texts(STRICT_JSON.decode(value))


def _relations(value: Any) -> tuple[Relation, ...]:  # noqa: ANN401 -- as above
    if value == "[]":
        return ()
    return tuple(
        Relation(_text(type_), _text(target), _number(strength), _text(status))
        for type_, target, strength, status in STRICT_JSON.decode(value)
    )


def _extra(value: Any) -> dict[str, object]:  # noqa: ANN401 -- as above
    extra = {} if value == "{}" else STRICT_JSON.decode(value)
    if not isinstance(extra, dict):
        raise TypeError("unknown fields are not an object")
    return extra


_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(TEXT_FIELDS, _text),
    **dict.fromkeys(LIST_FIELDS, _texts),
    **dict.fromkeys(NUMBER_FIELDS, _number),
    **dict.fromkeys(TIME_FIELDS, _time),
    "id": _id,
    "relations": _relations,
    "extra": _extra,
}


def where(filters: Filters) -> tuple[str, tuple[str | float, ...]]:
    """An SQL condition on ``entries e`` and its bound values; field names were checked by Filters."""
    filters = EVERYTHING & filters  # refuses what is not a filter
    clauses = [" OR ".join(_condition(rule) for rule in clause) for clause in filters.clauses]
    condition = " AND ".join(f"({clause})" for clause in clauses) or "1"
    return condition, tuple(value for clause in filters.clauses for rule in clause for value in rule.values)


def failing(filters: Filters) -> list[tuple[str, tuple[str | float, ...]]]:
    """For each clause a condition as in `where` that the entries meet which fail it.

    It names columns as they are, without functions, where an index can answer it.
    """
    return [
        (" AND ".join(map(_opposite, clause)), tuple(value for rule in clause for value in rule.values))
        for clause in (EVERYTHING & filters).clauses
    ]


def _opposite(rule: Rule) -> str:
    if rule.test == "absent":
        return f'e."{rule.field}" IS NOT {_EMPTY.get(rule.field, "NULL")}'
    if rule.test == "none" and rule.field not in LIST_FIELDS:
        return _condition(replace(rule, test="any"))
    return f"({_condition(rule)}) IS NOT TRUE"


_COMPARE = {"from": ">=", "after": ">", "before": "<", "until": "<="}
_EMPTY = {**dict.fromkeys(TEXT_FIELDS, "''"), **dict.fromkeys(LIST_FIELDS, "'[]'")}
_REPLACED = """(e.superseded_by <> '' OR e.id IN (
  SELECT r.value ->> 1 FROM entries s, json_each(s.relations) r
  WHERE s.relations <> '[]' AND r.value ->> 0 = 'supersedes' AND r.value ->> 3 IN ('', 'accepted')))"""
"""An entry named its successor, or another entry says, unless that is only proposed, that it took its place."""


def _condition(rule: Rule) -> str:
    if rule.field == SUPERSEDED:
        return f"{_REPLACED} = ?"
    column = f'e."{rule.field}"'
    if rule.test in _COMPARE:
        return f"{column} {_COMPARE[rule.test]} ?"
    if rule.test == "absent":
        return f"{column} IS {_EMPTY.get(rule.field, 'NULL')}"
    marks = ", ".join("?" * len(rule.values))
    if rule.test == "prefix":  # not LIKE, which has wildcards and ignores case
        return " OR ".join([f"instr({column}, ?) = 1"] * len(rule.values)) or "0"
    if rule.field not in LIST_FIELDS:
        among = f"{column} = ?" if len(rule.values) == 1 else f"{column} IN ({marks})"
        return f"({among}) IS NOT TRUE" if rule.test == "none" else among
    held = f"SELECT count(DISTINCT t.value) FROM json_each({column}) t WHERE t.value IN ({marks})"
    if rule.test == "all":
        return f"({held}) = {len(set(rule.values))}"
    return f"({held}) {'=' if rule.test == 'none' else '>'} 0"
