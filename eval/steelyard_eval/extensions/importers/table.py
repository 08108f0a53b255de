"""Tables: CSV, TSV, JSON, JSON Lines, a table or a query of an SQLite file.

Columns are guessed by their names, and the guess is printed; `--map FIELD=COLUMN` says otherwise. Rows may be what
a vector database exports: fields one level down, and a vector. Rows without an id get the SHA-256 of what they
hold, so that an unchanged row keeps its id.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import ConfigError, DataError, nearest, quote
from steelyard.base.fields import LIST_FIELDS, TEXT_FIELDS, TIME_FIELDS
from steelyard.memory.entry import FIELDS
from steelyard.memory.text import CONTENT
from steelyard_eval.extensions.importers.base import FORMS, WORDS, Imported, Row, filled, identifier, importer
from steelyard_eval.extensions.importers.source import ForeignStore, decoded

Rows = Iterator[Row]
MODEL = "imported"  # What the model of a column of vectors is called, which no table names
ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")  # How the names of tables end; `.gz` may follow
LOOKED_AT = 100  # Rows whose keys are looked at to guess the columns
HASHED = 16  # Hexadecimal digits of an id that is a hash
LONGEST_CELL = 16 * 2**20  # Characters
ALIASES = {field: words.split() for field, words in FORMS["table"].items()}
"""Field -> names that other programs have for it, best first, without case and punctuation."""
_LETTER = re.compile(r"[^\W\d_]")


def matches(source: ForeignStore) -> bool:
    """A file whose name ends like a table's, or a database."""
    named = source.path.name.removesuffix(".gz").lower().endswith(ENDINGS)
    return source.path.is_file() and (named or source.is_database())


@importer(matches)
def table(source: ForeignStore) -> Imported:
    """Tables: CSV, TSV, JSON, JSON Lines, SQLite (--set sql=). Rows without an id get a hash of all they hold."""
    name = source.path.name
    rows = map(level, _database(source) if source.is_database(name) else rows_of(source, name))
    first = list(islice(rows, LOOKED_AT))
    if not first:
        raise DataError(f"{source} has no rows; name a table with some")
    names = list(dict.fromkeys(column for row in first for column in row))
    there = {name.lower(): name for name in names}
    found = (there[name] for name in WORDS["vectors"] if name in there)
    vectors = next((name for name in found if any(vector_of(row.get(name)) is not None for row in first)), "")
    columns = _columns([name for name in names if name != vectors], source)
    imported = Imported()
    for row in chain(first, rows):
        record, vector = mapped(row, columns), vector_of(row.get(vectors)) if vectors else None
        text = json.dumps(filled(record), sort_keys=True, ensure_ascii=False, default=str)
        id_ = identifier(str(record.get("id", sha256(text.encode()).hexdigest()[:HASHED])))
        if vector is not None:
            del record[vectors]
        imported.entries.append(filled(searched({**record, "id": id_})))
        if id_ not in imported.vectors.get(MODEL, {}):
            imported.vector(MODEL, id_, vector)
    told = ", ".join(f"{field}={column}" for field, column in columns.items() if field != column)
    if told:
        imported.notes.append(f"columns: {quote(told, 200)} (another choice: --map FIELD=COLUMN)")
    rest = f"taken from the column {quote(vectors, 40)}, as those of the model {MODEL}"
    imported.note(len(imported.vectors.get(MODEL, ())), "vector", rest)
    if "id" not in columns:
        imported.notes.append("no column is an id, so ids are hashes of the rows")
    return imported


def _columns(names: list[str], source: ForeignStore) -> dict[str, str]:
    """The column of each field: what the user says, then what is guessed."""
    asked = source.options.columns
    for field, column in asked.items():
        if field not in FIELDS:
            raise ConfigError(f"--map: {quote(field)} is not a field of entries{nearest(field, FIELDS)}")
        if column not in names:
            raise ConfigError(f"--map: {source} has no column {quote(column)}{nearest(column, names)}")
    left = guessed(name for name in names if name not in asked.values())
    columns = {**{field: column for field, column in left.items() if field not in asked}, **asked}
    if "text" not in columns and "title" not in columns:
        listed = ", ".join(quote(name, 40) for name in names[:10])
        raise ConfigError(f"{source}: found no column with the text ({listed}); add --map text=COLUMN")
    return columns


def rows_of(source: ForeignStore, name: str) -> Rows:
    """The rows of one file; DataError for a file that is no table."""
    plain = name.removesuffix(".gz").lower()
    if plain.endswith((".csv", ".tsv")):
        return _csv(source, name)
    if plain.endswith((".jsonl", ".ndjson")):
        return _objects((decoded(line, f"{source}: line {number}") for number, line in source.lines(name)), source)
    if not plain.endswith(ENDINGS):
        raise DataError(f"{source}: {quote(name)} is not a table, by its ending")
    return _objects(_rows_in(source.json(name)), source)


def _csv(source: ForeignStore, name: str) -> Rows:
    """Rows with a header; separated by tabs under a name in ``.tsv``, else by what the first line has most of."""
    text = source.text(name, None)
    first = text.split("\n", 1)[0]
    separator = "\t" if ".tsv" in name else max(",;\t", key=first.count)
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True):
            if None in row:
                raise csv.Error(f"a row has more cells than the header: {str(row[None])[:40]}")
            yield {key: value for key, value in row.items() if value not in (None, "")}
    except csv.Error as error:
        raise DataError(f"{source} is not a readable CSV table ({error}); correct it") from None
    finally:
        csv.field_size_limit(before)


def _rows_in(document: object) -> list[object]:
    """A list of objects; an object with one list of objects in it, or in what wraps it; a column a key."""
    if not isinstance(document, dict):
        return document if isinstance(document, list) else [None]
    if isinstance(ids := document.get("ids"), list):  # Chroma: a list of the same length for each column
        lists = {name: part for name, part in document.items() if isinstance(part, list) and len(part) == len(ids)}
        short = {name: name if name.endswith("data") else name.removesuffix("s") for name in lists}
        return [{short[name]: part[at] for name, part in lists.items()} for at in range(len(ids))]
    every = [part for part in document.values() if isinstance(part, list)]
    objects = [part for part in every if part and isinstance(part[0], dict)]
    if len(objects or every) == 1:
        return (objects or every)[0]
    inside = [
        part for name, part in document.items() if name.lower() in WORDS["wrappers"] and isinstance(part, dict)
    ]
    if len(inside) == 1:
        return _rows_in(inside[0])
    return [{"id": key, **part} if isinstance(part, dict) else part for key, part in document.items()]


def _objects(rows: Iterable[object], source: ForeignStore) -> Rows:
    for row in rows:
        if not isinstance(row, dict):
            raise DataError(f"{source}: {quote(str(row), 40)} is not an object; write one object for each entry")
        yield row


def _database(source: ForeignStore) -> Rows:
    with source.database(source.path.name) as db:
        if source.options.sql:
            yield from db.query(source.options.sql)
            return
        tables = sorted(name for name in db.columns if not name.startswith("sqlite_"))
        if len(tables) != 1:
            listed = ", ".join(tables[:10]) or "none"
            raise ConfigError(f"{source} has the tables {listed}; choose the rows with --set sql=... and a SELECT")
        yield from db.rows(tables[0])


def guessed(names: Iterable[str]) -> dict[str, str]:
    """Field -> the column that stands for it: a column of the field's own name, else the best alias."""
    names = list(dict.fromkeys(names))
    columns = {name: name for name in names if name in FIELDS}
    bare = {re.sub(r"[\W_]+", "", name).casefold(): name for name in reversed(names) if name not in columns}
    for field, aliases in ALIASES.items():
        found = next((bare[alias] for alias in aliases if alias in bare), None)
        if found is not None and field not in columns:
            columns[field] = found
            bare = {alias: name for alias, name in bare.items() if name != found}
    return columns


def level(row: Mapping[str, object]) -> dict[str, object]:
    """The row with what its containers hold in their place; a key that stands there twice is the outer one."""
    flat = dict(row)
    for name in WORDS["containers"]:
        if isinstance(inside := flat.get(name), Mapping):
            del flat[name]
            flat = {**inside, **flat}
    return flat


def mapped(row: Mapping[str, object], columns: Mapping[str, str]) -> dict[str, object]:
    """The row with fields in place of the columns that stand for them; other columns are kept as they are."""
    gone = {*columns.values(), *FIELDS}
    record = {name: value for name, value in row.items() if name not in gone}
    return record | {
        field: fitted(field, row[column]) for field, column in columns.items() if row.get(column) is not None
    }


def vector_of(value: object) -> NDArray[np.float32] | None:
    """The vector in a cell: a list of numbers, one written as text, or the plain one of several by name."""
    if isinstance(value, Mapping):
        names = [*(name for name in WORDS["plain_vectors"] if name in value), *value]
        return next((found for name in names if (found := vector_of(value[name])) is not None), None)
    if isinstance(value, str) and value[:1] == "[" and value[-1:] == "]":
        value = re.split(r"[\s,]+", value[1:-1].strip())
    if not isinstance(value, list) or not value:
        return None
    try:
        with np.errstate(over="ignore"):
            return np.array(value, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        return None


def fitted(field: str, value: Any) -> Any:  # noqa: ANN401 -- whatever a column holds
    """A value as its field wants it: texts as texts, tags as a list, numbers that are written as texts."""
    if field in LIST_FIELDS:
        parts = (
            re.split(r"[,;]", value) if isinstance(value, str) else value if isinstance(value, list) else [value]
        )
        return [str(part).strip() for part in parts if str(part).strip()]
    if field in TEXT_FIELDS:
        return value if isinstance(value, str) else str(value)
    if field in FIELDS and field not in TIME_FIELDS and isinstance(value, str) and field != "relations":
        try:
            return float(value)
        except ValueError:
            return value
    return value


def searched(record: Mapping[str, object]) -> dict[str, object]:
    """The record with the sentences that no field stands for in its `context`, which keyword search reads."""
    fields = [str(record[field]) for field in CONTENT if record.get(field)]
    there = {*fields, *(line for text in fields for line in text.split("\n"))}
    pairs = (pair for name, value in record.items() if name not in FIELDS for pair in _sentences(value, name))
    said = dict.fromkeys(f"{name}: {text}" for name, text in pairs if text not in there)
    return {**record, "context": "\n".join(filter(None, [str(record.get("context") or ""), *said]))}


def _sentences(value: object, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and len(value.split(None, 1)) > 1 and _LETTER.search(value):
        yield name, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _sentences(part, str(key))
    elif isinstance(value, list):
        for part in value:
            yield from _sentences(part, name)


def entry_fields(value: Mapping[str, object]) -> dict[str, object]:
    """An object of unknown shape as the fields of an entry; an object in the place of the text is looked into."""
    columns = guessed(value)
    inner = value.get(columns.get("text", ""))
    if isinstance(inner, Mapping):
        rest = {name: part for name, part in value.items() if name != columns["text"]}
        return entry_fields(inner) | mapped(rest, guessed(rest))
    return mapped(value, columns)
