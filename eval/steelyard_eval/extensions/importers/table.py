"""Tables: CSV, TSV, JSON, JSON Lines, Parquet, a table or a query of an SQLite file.

Columns are guessed by their names, and the guess is printed; `--map FIELD=COLUMN` says otherwise. Rows may be what
a vector database exports: fields one level down, and a vector. Rows without an id get the SHA-256 of what they
hold, so that an unchanged row keeps its id.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, islice
from typing import TYPE_CHECKING

from steelyard.base.errors import ConfigError, DataError, nearest, shown
from steelyard.base.extras import require
from steelyard.base.files import STRICT_JSON
from steelyard.base.inputs import budget
from steelyard.memory.entry import FIELDS
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, Row, filled, identifier
from steelyard_eval.extensions.importers.columns import (
    CONTAINERS,
    VECTORS,
    guessed,
    mapped,
    names_of,
    searched,
    value_at,
    vector_of,
    without,
)
from steelyard_eval.extensions.importers.source import ForeignStore, decoded

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Iterator[Row]
MODEL = "imported"
"""What the model of a column of vectors is called, which no table names."""
WRAPPERS = frozenset("collection data get hits points response result results vectors".split())  # noqa: SIM905 -- a list literal of so many words reads worse
"""Keys below which an answer of a database has its rows."""
LOOKED_AT = 100
"""Rows whose keys are looked at to guess the columns."""
HASHED = 16
"""Hexadecimal digits of an id that is a hash."""
BATCH, VALUE = 64, 8
"""Rows of Parquet that are unpacked at once; bytes that a value counts for, however short it is."""
LONGEST_CELL = 16 * 2**20
"""Characters."""


def read(source: ForeignStore) -> Imported:
    """Every row as an entry."""
    name = source.path.name
    reader = _reader(name)
    rows = iter(_database(source)) if reader is None or source.is_database(name) else reader(source, name)
    first = list(islice(rows, LOOKED_AT))
    if not first:
        raise DataError(f"{source} has no rows; name a table with some")
    names = list(dict.fromkeys(column for row in first for column in names_of(row)))
    vectors = _vectors(names, first)
    columns = _columns([name for name in names if name != vectors and not name.startswith(f"{vectors}.")], source)
    imported = Imported()
    for row in chain(first, rows):
        vector = vector_of(value_at(row, vectors)) if vectors else None
        entry = _entry(row, columns, "" if vector is None else vectors)
        imported.entries.append(entry)
        if str(entry["id"]) not in imported.vectors.get(MODEL, {}):
            imported.vector(MODEL, str(entry["id"]), vector)
    told = ", ".join(f"{field}={column}" for field, column in columns.items() if field != column)
    if told:
        imported.notes.append(f"columns: {shown(told, 200)} (another choice: --map FIELD=COLUMN)")
    rest = f"taken from the column {shown(vectors, 40)}, as those of the model {MODEL}"
    imported.note(len(imported.vectors.get(MODEL, ())), "vector", rest)
    if "id" not in columns:
        imported.notes.append("no column is an id, so ids are hashes of the rows")
    return imported


def _vectors(names: Iterable[str], rows: Sequence[Row]) -> str:
    """The column of vectors, or the container of several; empty where there is none."""
    tops = [*VECTORS, *(f"{outer}.{name}" for outer in CONTAINERS for name in VECTORS)]
    parts = (name.split(".") for name in names)
    stems = (".".join(part[:length]) for part in parts for length in range(1, len(part) + 1))
    there = {stem.lower(): stem for stem in stems}
    found = (there[name] for name in tops if name in there)
    return next((name for name in found if any(vector_of(value_at(row, name)) is not None for row in rows)), "")


def rows_of(source: ForeignStore, name: str) -> Rows:
    """The rows of one file of a folder; DataError for a file that is no table."""
    reader = _reader(name)
    if reader is None:
        raise DataError(f"{source}: {shown(name)} is no table; its ending says none")
    return reader(source, name)


def _columns(names: Iterable[str], source: ForeignStore) -> dict[str, str]:
    """Field -> column; what the user says comes first. ConfigError for a field or a column that is none."""
    names = list(names)
    asked = source.options.columns
    for field, column in asked.items():
        if field not in FIELDS:
            raise ConfigError(f"--map: {shown(field)} is no field of an entry{nearest(field, FIELDS)}")
        if column not in names:
            raise ConfigError(f"--map: {source} has no column {shown(column)}{nearest(column, names)}")
    left = [name for name in names if name not in asked.values()]
    columns = {**{field: column for field, column in guessed(left).items() if field not in asked}, **asked}
    if "text" not in columns and "title" not in columns:
        listed = ", ".join(shown(name, 40) for name in names[:10])
        raise ConfigError(f"{source}: no column is known to be the text ({listed}); say --map text=COLUMN")
    return columns


def _entry(row: Mapping[str, object], columns: Mapping[str, str], vectors: str) -> Record:
    """The entry of a row; without an id it gets the hash of all that the row holds."""
    record = filled(searched(mapped(without(row, [vectors]) if vectors else row, columns)))
    if (id_ := record.get("id")) is not None:
        return {**record, "id": identifier(str(id_))}
    top = {field: column for field, column in columns.items() if column in row}
    text = json.dumps(filled(mapped(row, top)), sort_keys=True, ensure_ascii=False, default=str)
    return {"id": sha256(text.encode()).hexdigest()[:HASHED], **record}


def _reader(name: str) -> Callable[[ForeignStore, str], Rows] | None:
    """How a file of this name is read; None for another ending."""
    plain = name.removesuffix(".gz").lower()
    return next((reader for ending, reader in READERS.items() if plain.endswith(ending)), None)


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
            yield {key: _cell(key, value) for key, value in row.items() if value not in (None, "")}
    except csv.Error as error:
        raise DataError(f"{source} is no CSV table that can be read ({error}); correct it") from None
    finally:
        csv.field_size_limit(before)


def _cell(name: str, text: str) -> object:
    """A cell, read where it holds the fields of an entry as JSON."""
    if name.lower() not in CONTAINERS or text[:1] != "{":
        return text
    try:
        return STRICT_JSON.decode(text)
    except (ValueError, RecursionError):
        return text


def _lines(source: ForeignStore, name: str) -> Rows:
    rows = (decoded(line, f"{source}: line {number}") for number, line in source.lines(name))
    return _objects(rows, source)


def _json(source: ForeignStore, name: str) -> Rows:
    """A list of objects; an object with one list of objects in it, or in what wraps it; a column a key."""
    rows = _rows_in(source.json(name))
    return _objects([None] if rows is None else rows, source)


def _rows_in(document: object) -> list[object] | None:
    """The rows in a JSON document; None where it holds none."""
    if not isinstance(document, dict):
        return document if isinstance(document, list) else None
    if isinstance(ids := document.get("ids"), list):  # Chroma: a list of the same length for each column
        lists = {name: part for name, part in document.items() if isinstance(part, list) and len(part) == len(ids)}
        return [{_singular(name): part[at] for name, part in lists.items()} for at in range(len(ids))]
    every = [part for part in document.values() if isinstance(part, list)]
    objects = [part for part in every if part and isinstance(part[0], dict)]
    if len(objects or every) == 1:
        return (objects or every)[0]
    inside = [part for name, part in document.items() if name.lower() in WRAPPERS and isinstance(part, dict)]
    if len(inside) == 1:
        return _rows_in(inside[0])
    return [{"id": key, **part} if isinstance(part, dict) else part for key, part in document.items()]


def _singular(name: str) -> str:
    return name if name.endswith("data") else name.removesuffix("s")


def _objects(rows: Iterable[object], source: ForeignStore) -> Rows:
    for row in rows:
        if not isinstance(row, dict):
            raise DataError(f"{source}: {shown(str(row), 40)} is no object; write one object for each entry")
        yield row


def _parquet(source: ForeignStore, name: str) -> Rows:
    require("parquet", "reading Parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = source.content(name)
    left = budget(len(content))
    try:
        # A text that many rows share stays one: unpacked, 64 of them would be there before any is counted.
        schema = pq.read_schema(io.BytesIO(content))
        shared = [field.name for field in schema if _is_text(field.type)]
        file = pq.ParquetFile(io.BytesIO(content), read_dictionary=shared)
        left -= VALUE * sum(
            file.metadata.row_group(group).column(column).num_values
            for group in range(file.num_row_groups)
            for column in range(file.metadata.num_columns)
        )
        if any(pa.types.is_nested(field.type) and "dictionary<" in str(field.type) for field in file.schema_arrow):
            raise DataError(f"{source} has dictionaries inside of lists; write it again with plain texts")
        inside = any(pa.types.is_nested(field.type) and _has_text(field.type) for field in schema)
        for batch in file.iter_batches(batch_size=1 if inside else BATCH):
            left -= batch.nbytes
            for i in range(batch.num_rows):
                if left < 0:
                    raise DataError(f"{source} unpacks to too much for its {len(content)} bytes; write JSON Lines")
                row = {of: batch[column][i].as_py() for column, of in enumerate(batch.schema.names)}
                longest = max((len(value) for value in row.values() if isinstance(value, str | bytes)), default=0)
                if longest > LONGEST_CELL:
                    raise DataError(f"{source} has a cell of {longest} characters; {LONGEST_CELL} are the most")
                left -= sum(len(value) for value in row.values() if isinstance(value, str | bytes))
                yield row
    except pa.ArrowMemoryError as error:
        raise MemoryError(str(error)) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{source} is no Parquet file that can be read ({error}); write it again") from None


def _is_text(kind: pa.DataType) -> bool:
    return str(kind) in ("string", "large_string", "binary", "large_binary")


def _has_text(kind: pa.DataType) -> bool:
    """Whether texts stand in a value of this type, however deep."""
    return _is_text(kind) or any(_has_text(kind.field(at).type) for at in range(kind.num_fields))


def _database(source: ForeignStore) -> Rows:
    """The rows of a query, or of the only table."""
    with source.database(source.path.name) as db:
        if source.options.sql:
            yield from db.query(source.options.sql)
            return
        tables = sorted(name for name in db.columns if not name.startswith("sqlite_"))
        if len(tables) != 1:
            listed = ", ".join(tables[:10]) or "none"
            raise ConfigError(f"{source} has the tables {listed}; choose the rows with --set sql=... and a SELECT")
        yield from db.rows(tables[0])


READERS: dict[str, Callable[[ForeignStore, str], Rows]] = {
    ".csv": _csv,
    ".tsv": _csv,
    ".jsonl": _lines,
    ".ndjson": _lines,
    ".json": _json,
    ".parquet": _parquet,
}
"""Ending of a file -> how its rows are read; compressed files end in ``.gz`` after it."""

IMPORTER = Importer(
    "table",
    "a table: CSV, TSV, JSON, JSON Lines, Parquet, SQLite with --sql",
    lambda source: (
        source.path.is_file() and bool(_reader(source.path.name) or source.is_database(source.path.name))
    ),
    read,
)
