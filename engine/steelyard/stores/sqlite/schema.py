"""The tables of a vault file, the statements that read and write entries, and whether a file holds them."""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import lru_cache, partial
from importlib import resources
from itertools import repeat
from math import isfinite
from types import NoneType
from typing import Any, NamedTuple, TypeVar

import apsw
import sqlite_vec
from msgspec import MsgspecError, convert
from msgspec.json import Decoder

from steelyard.base.errors import PATH_WIDTH, ConfigError, VaultError, quote
from steelyard.base.fields import END_OF_TIME, FIRST_TIME, LIST_FIELDS, NUMBER_FIELDS, TEXT_FIELDS, TIME_FIELDS
from steelyard.base.files import STRICT_JSON
from steelyard.memory.entry import EVERY_FIELD, Entry, Relation, check_entry
from steelyard.memory.query import EVERYTHING, SUPERSEDED, Filters, Rule
from steelyard.memory.words import by_script, split, stemmer
from steelyard.stores.base import KeywordIndex

APPLICATION_ID = 0x53544C59  # "STLY", so that another program's SQLite file is recognised
VERSION = 5
"""A file of another version is refused: no version has been released, so there is nothing that has to be kept."""

NOTE = "ON CONFLICT(entry) DO UPDATE SET revision = excluded.revision"
"""How the journal takes an entry that it lists already."""
_COLUMNS = (f'"{name}" {"REAL" if name in NUMBER_FIELDS else "TEXT"}' for name in EVERY_FIELD if name != "id")
_SQL = resources.files(__package__).joinpath("vault.sql").read_text("utf-8")
_TABLES = _SQL.strip().format(columns=", ".join(_COLUMNS), note=NOTE).split("\n\n")
TABLES = (*_TABLES, f"PRAGMA user_version = {VERSION}", f"PRAGMA application_id = {APPLICATION_ID}")
"""The statements, run one by one, that make an empty vault of a new file."""


def index_statements(index: KeywordIndex) -> tuple[str, ...]:
    """What makes the table of a keyword index, and the triggers that keep it equal to the entries.

    `KeywordIndex` checked the name and the tokenizer, so that they are safe to write here.
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


T = TypeVar("T", bound=apsw.Connection)
OTHER_SCRIPTS = re.compile("[\u0370-\u1fff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]")
"""Letters beyond Latin."""


def damaged(path: str, reason: object) -> VaultError:
    """The error for a vault that does not hold what a vault holds."""
    return VaultError(
        f"{quote(path, PATH_WIDTH)} is damaged ({quote(str(reason), 200)}); restore a copy of it, or index the "
        "data set into a new vault"
    )


NAMES = ", ".join(f'"{name}"' for name in EVERY_FIELD)
_MARKS = ", ".join("?" * len(EVERY_FIELD))
SET = ", ".join(f'"{name}" = excluded."{name}"' for name in EVERY_FIELD if name != "id")
_DIFFERS = " OR ".join(f'entries."{name}" IS NOT excluded."{name}"' for name in EVERY_FIELD if name != "id")
INSERT = f"INSERT INTO entries({NAMES}) VALUES({_MARKS})"
UPSERT = f"{INSERT} ON CONFLICT(id) DO UPDATE SET {SET} WHERE {_DIFFERS} RETURNING rowid"


def select(names: Sequence[str] = EVERY_FIELD) -> str:
    """The statement that reads these columns of ``entries e``, names checked against `EVERY_FIELD`."""
    columns = ", ".join(f'e."{EVERY_FIELD[EVERY_FIELD.index(name)]}"' for name in names)
    return f"SELECT {columns} FROM entries e"


def to_row(entry: Entry) -> tuple[str | float | None, ...]:
    """The bound values of an entry, ordered as `EVERY_FIELD`; DataError for odd ones. Lists become JSON text."""
    check_entry(entry)
    row = {name: getattr(entry, name) for name in EVERY_FIELD}
    row["relations"] = [[r.type, r.target, r.strength, r.status] for r in entry.relations]
    for name in (*LIST_FIELDS, "relations"):
        row[name] = json.dumps(row[name], ensure_ascii=False) if row[name] else "[]"
    row["extra"] = json.dumps(dict(entry.extra), sort_keys=True)  # ASCII: unknown fields may hold lone surrogates
    return tuple(row.values())


def from_rows(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Entry]:
    """The entries of rows of `select(names)`; fields that were not read are empty.

    The file may hold anything, so VaultError unless every value is one that `to_row` writes. Reading column by
    column takes half the time.
    """
    try:
        columns = {  # texts, and numbers of which none is known, are seen to be sound at once
            name: values if {*map(type, values)} == {_SOUND.get(name)} else [*map(_READ[name], values)]
            for name, values in zip(names, zip(*rows, strict=True), strict=bool(rows))
        }
    except (ValueError, TypeError, RecursionError, MsgspecError) as error:
        if len(rows) > 1:
            return [entry for row in rows for entry in from_rows(names, [row])]  # which names the one
        raise VaultError(
            f"entry {quote(rows[0][names.index('id')])} of the vault is damaged ({quote(str(error))}); "
            "index the data set into a new vault"
        ) from None
    entries = [object.__new__(Entry) for _ in rows]
    for field in fields(Entry):  # arguments of a frozen class take twice as long as slots
        empty: Iterable[Any] = ({} for _ in rows) if field.name == "extra" else repeat(field.default)
        deque(map(Entry.__dict__[field.name].__set__, entries, columns.get(field.name, empty)), maxlen=0)
    return entries


_SOUND = {**dict.fromkeys(TEXT_FIELDS, str), **dict.fromkeys(NUMBER_FIELDS, NoneType), "id": None}
_ID = re.compile(r"\S+")
_TEXTS, _RELATIONS = Decoder(tuple[str, ...]), Decoder(tuple[tuple[str, str, float | None, str], ...])


def _id(value: Any) -> str:  # noqa: ANN401 -- whatever the file holds, here and below
    if not _ID.fullmatch(value):
        raise ValueError("its id is empty or holds white space")
    return str(value)


def _number(value: Any) -> float | None:  # noqa: ANN401 -- as above
    if value is not None and not (isinstance(value, float) and isfinite(value)):
        raise ValueError("not a finite number")
    return value


def _time(value: Any) -> float | None:  # noqa: ANN401 -- as above
    if value is not None and not FIRST_TIME <= value < END_OF_TIME:
        raise ValueError("a time is beyond the calendar")
    return _number(value)


def _texts(value: Any) -> tuple[str, ...]:  # noqa: ANN401 -- as above
    return _TEXTS.decode(convert(value, str))  # no blob, which a decoder takes, too


def _relations(value: Any) -> tuple[Relation, ...]:  # noqa: ANN401 -- as above
    return tuple(Relation(*relation) for relation in _RELATIONS.decode(convert(value, str)))


def _extra(value: Any) -> dict[str, object]:  # noqa: ANN401 -- as above
    extra = {} if value == "{}" else STRICT_JSON.decode(value)
    if not isinstance(extra, dict):
        raise TypeError("unknown fields are not an object")
    return extra


_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(TEXT_FIELDS, partial(convert, type=str)),
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


# Whether a file holds the tables of a vault and nothing else: every object of it has to be one that our own
# statements make. Its SQL is compared with that of an empty vault, and with what we would write for the keyword
# indexes and vector spaces that it names. What is foreign is refused before any of it is used.

MOST_OBJECTS = 10_000
"""Rows of sqlite_schema; a vault with a hundred vector spaces has less than a thousand."""
LARGEST_DIMENSION = 100_000
CHUNK = 1024
"""Vectors that sqlite-vec keeps in one row of its own."""

Run = Callable[..., list[Any]]
"""`GuardedConnection.run`."""


class _Thing(NamedTuple):
    """A row of sqlite_schema; `sql` without white space, because it means nothing there."""

    type: str
    name: str
    table: str
    sql: str | None


_SPACE = re.compile(r"vec_1(?![0-9])")


def check_schema(run: Run, path: str) -> None:
    """VaultError, with the remedy, unless the file holds what a vault holds and no more."""
    try:
        foreign = _foreign(run)
    # RecursionError: JSON nested without end. SQLError: a tokenizer that does not exist.
    except (TypeError, ValueError, RecursionError, ConfigError, apsw.SQLError) as error:
        foreign = quote(str(error), 200)
    if foreign:
        raise VaultError(
            f"{quote(path, PATH_WIDTH)} is not a vault as Steelyard writes it ({foreign}); restore a copy of it, "
            "or index the data set into a new vault"
        )


def check_books(run: Run, path: str, table: str, dim: int) -> None:
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
    if any(run(f"{sql} LIMIT 1") for sql in odd):
        raise damaged(path, f"what sqlite-vec keeps of {table} does not agree")


def _foreign(run: Run) -> str:
    """What does not belong, or is missing; empty when all is well. ValueError for odd rows in it."""
    rows = run("SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT ?", (MOST_OBJECTS,))
    things = [_thing(*row) for row in rows]
    if len(things) == MOST_OBJECTS or len({(thing.type, thing.name) for thing in things}) < len(things):
        return "it has too many objects, or two of one name"
    left = set(things) - {_SEQUENCE}
    # The tables that name indexes and spaces are only read once they are known to be ours.
    for part in (lambda: _made(*TABLES), lambda: _indexes(run), lambda: _spaces(run)):
        wanted = set(part())
        if missing := wanted - left:
            thing = max(missing, key=lambda thing: (thing.type, thing.name))  # a table rather than its index
            return f"its {thing.type} {quote(thing.name)} is missing or another one"
        left -= wanted
    if other := min(left, key=str, default=None):
        return f"{other.type} {quote(other.name)} does not belong there"
    # Where a table lies on another's pages, its values have types that STRICT promises to refuse.
    shared = "SELECT 1 FROM sqlite_schema WHERE rootpage IS NOT 0 GROUP BY rootpage HAVING count(*) > 1"
    first = "SELECT id, title FROM entries LIMIT 1"
    odd = f"SELECT 1 FROM ({first}) WHERE typeof(id) <> 'text' OR typeof(title) <> 'text'"
    return "the pages of one table are those of another" if run(shared) or run(odd) else ""


def _thing(type_: object, name: object, table: object, sql: object) -> _Thing:
    if not all(isinstance(part, str) for part in (type_, name, table)) or not isinstance(sql, str | None):
        raise TypeError("its schema is damaged")
    return _Thing(str(type_), str(name), str(table), None if sql is None else "".join(sql.split()))


_SEQUENCE = _Thing("table", "sqlite_sequence", "sqlite_sequence", "CREATETABLEsqlite_sequence(name,seq)")
"""SQLite's own table for AUTOINCREMENT, which stays when the tables are gone that needed it."""


def tokenizing(db: T) -> T:
    """The connection, knowing the tokenizer ``steelyard``: for Latin ``porter unicode61``, else `split`."""

    def made(*_: object) -> Any:  # noqa: ANN401 -- a tokenizer of apsw
        # One of the connection itself would hold it, and it would never end.
        porter = apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61"])

        def tokens(text: bytes, flags: int, locale: str | None) -> Iterator[Any]:
            if text.isascii() or not OTHER_SCRIPTS.search(told := text.decode("utf-8", "replace")):
                yield from porter(text, flags, locale, include_offsets=False)
                return
            for word in split(told, one_letter=True):
                if not OTHER_SCRIPTS.search(word):
                    yield from porter(word.encode(), flags, locale, include_offsets=False)
                else:
                    yield stemmer(language)(word) if (language := by_script(word)) else word

        return tokens

    db.register_fts5_tokenizer("steelyard", made)
    return db


def _database(*statements: str) -> apsw.Connection:
    db = tokenizing(apsw.Connection(":memory:"))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    for statement in statements:
        db.execute(statement)
    return db


empty = lru_cache(partial(_database, *TABLES))
"""A database with the tables of a vault, made once."""


@lru_cache
def _made(*statements: str) -> frozenset[_Thing]:
    """The objects that statements make, those of FTS5 and sqlite-vec for themselves included."""
    rows = _database(*statements).execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    return frozenset(_thing(*row) for row in rows) - {_SEQUENCE}


def _indexes(run: Run) -> Iterator[_Thing]:
    for name, covered, tokenizer in run("SELECT name, fields, tokenizer FROM keyword_indexes"):
        columns = STRICT_JSON.decode(covered)
        if not isinstance(columns, list) or not columns or any(column not in EVERY_FIELD for column in columns):
            raise ValueError(f"keyword index {quote(name)} covers no fields of entries")
        index = index_statements(KeywordIndex(name, tuple(columns), tokenizer))
        yield from _made(*TABLES, *index) - _made(*TABLES)


def _spaces(run: Run) -> Iterator[_Thing]:
    for number, dim, *texts in run("SELECT space, dim, model, layer, recipe FROM spaces"):
        typed = type(number) is type(dim) is int and all(isinstance(text, str) for text in texts)
        if not typed or number < 1 or not 1 <= dim <= LARGEST_DIMENSION:
            raise ValueError(f"vector space {quote(number)} of dimension {quote(dim)} cannot exist")
        own = partial(_SPACE.sub, f"vec_{number:d}")  # the statements at hand are those of space 1
        for thing in _made(space_statement(1, dim)):
            yield _Thing(thing.type, own(thing.name), own(thing.table), thing.sql and own(thing.sql))
