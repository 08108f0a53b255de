"""The tables of a store in PostgreSQL, who sees which rows of them, and how values lie in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from steelyard.base.arrays import Vectors
from steelyard.base.errors import VaultError, quote
from steelyard.base.fields import NUMBER_FIELDS
from steelyard.memory.entry import EVERY_FIELD
from steelyard.stores.base import Space
from steelyard.stores.sqlite.schema import NAMES, SET

VERSION = 1
BATCH = 10_000
"""Rows that are read at a time."""
_TYPED = ", ".join(
    f'"{name}" {"double precision" if name in NUMBER_FIELDS else "text"}' for name in EVERY_FIELD if name != "id"
)
_ADMITTED = " OR ".join(
    f'"{field}" = ANY (ARRAY(SELECT a.value FROM steelyard.access a '
    f"WHERE a.role = current_user AND a.field = '{field}'))"
    for field in ("tenant", "vault")
)
"""The rule of `visible_to` in SQL: what is in any of the scopes of whoever asks."""

_GUARDED = ("access", "entries", "vectors", "models", "model_arrays")

TABLES = (
    "CREATE SCHEMA steelyard",
    "CREATE TABLE steelyard.meta(one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL, "
    "revision bigint NOT NULL, models bigint NOT NULL)",
    f"INSERT INTO steelyard.meta(version, revision, models) VALUES ({VERSION}, 0, 0)",
    f'CREATE TABLE steelyard.entries(id text COLLATE "C" PRIMARY KEY, {_TYPED}, revision bigint NOT NULL)',
    "CREATE INDEX ON steelyard.entries(revision)",
    "CREATE INDEX ON steelyard.entries(tenant)",
    "CREATE INDEX ON steelyard.entries(vault)",
    "CREATE TABLE steelyard.spaces(space integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, model text NOT NULL, "
    "layer text NOT NULL, recipe text NOT NULL, dim integer NOT NULL, UNIQUE (model, layer, recipe))",
    "CREATE TABLE steelyard.vectors(space integer REFERENCES steelyard.spaces ON DELETE CASCADE, "
    'id text COLLATE "C" REFERENCES steelyard.entries ON DELETE CASCADE, embedding {vector} NOT NULL, '
    "PRIMARY KEY (space, id))",
    "CREATE INDEX ON steelyard.vectors(id)",
    "CREATE TABLE steelyard.models(place integer PRIMARY KEY, name text NOT NULL UNIQUE, kind text NOT NULL, "
    "settings text NOT NULL)",
    "CREATE TABLE steelyard.model_arrays(model text REFERENCES steelyard.models(name) ON DELETE CASCADE, "
    "name text, data bytea NOT NULL, PRIMARY KEY (model, name))",
    # Row-level security: the owner sees all; any other role what the table access gives it.
    "CREATE TABLE steelyard.access(role text, field text CHECK (field IN ('tenant', 'vault')), value text, "
    "PRIMARY KEY (role, field, value))",
    *(f"ALTER TABLE steelyard.{table} ENABLE ROW LEVEL SECURITY" for table in _GUARDED),
    "CREATE POLICY own ON steelyard.access FOR SELECT USING (role = current_user)",
    f"CREATE POLICY seen ON steelyard.entries USING ({_ADMITTED})",
    "CREATE POLICY seen ON steelyard.vectors USING (id IN (SELECT id FROM steelyard.entries))",
    # LSA is fitted on the words of all entries: whoever sees a part fits it on that part.
    "CREATE POLICY seen ON steelyard.models USING (kind <> 'lsa')",
    "CREATE POLICY seen ON steelyard.model_arrays USING (model IN (SELECT name FROM steelyard.models))",
)
"""The statements that make an empty store; `vector` is the type as pgvector's own schema has it."""

ENTRIES_IN = f"CREATE TEMPORARY TABLE IF NOT EXISTS steelyard_entries(id text, {_TYPED}) ON COMMIT DELETE ROWS"
UPSERT = (
    f"INSERT INTO steelyard.entries({NAMES}, revision) SELECT {NAMES}, %s FROM pg_temp.steelyard_entries "
    f"ON CONFLICT (id) DO UPDATE SET {SET}, revision = excluded.revision"
)
VECTORS_IN = (
    "CREATE TEMPORARY TABLE IF NOT EXISTS steelyard_vectors(id text, embedding {vector}) ON COMMIT DELETE ROWS"
)
PUT = (
    "INSERT INTO steelyard.vectors(space, id, embedding) SELECT %s, id, embedding FROM pg_temp.steelyard_vectors "
    "ON CONFLICT (space, id) DO UPDATE SET embedding = excluded.embedding"
)
TYPES = ["float8" if name in NUMBER_FIELDS else "text" for name in EVERY_FIELD]
"""Of `NAMES`, for COPY."""
_MARK = "\x1a"


def sent(value: str) -> str:
    """A text as the database can hold it, which has no NUL: two characters stand for it, and for the mark itself.

    >>> sent("a" + chr(0) + "b") == "a" + chr(26) + "0b"
    True
    """
    if _MARK not in value and "\0" not in value:
        return value
    return value.replace(_MARK, _MARK + "1").replace("\0", _MARK + "0")


def received(value: str) -> str:
    """The text of what `sent` made."""
    return value if _MARK not in value else value.replace(_MARK + "0", "\0").replace(_MARK + "1", _MARK)


def to_binary(vector: Vectors) -> bytes:
    """A vector as pgvector receives it: its dimension in 16 bits, 16 bits of nothing, float32, all big-endian."""
    return len(vector).to_bytes(2, "big") + b"\0\0" + vector.astype(">f4").tobytes()


def from_binary(blobs: Sequence[bytes], dim: int) -> Vectors:
    """float32[n, dim] of what pgvector sends; VaultError for vectors of another size or without a direction."""
    if any(len(blob) != 4 * dim + 4 for blob in blobs):
        raise VaultError(
            f"the database holds vectors of other sizes than {dim}; run steelyard index VAULT --rebuild"
        )
    payload = np.frombuffer(b"".join(blobs), dtype=np.uint8).reshape(len(blobs), 4 * dim + 4)[:, 4:]
    vectors = np.ascontiguousarray(payload).view(">f4").astype(np.float32)
    if not (np.isfinite(vectors).all() and vectors.any(axis=1).all()):
        raise VaultError("the database holds a vector without a direction; run steelyard index VAULT --rebuild")
    return vectors


def check_version(address: str, version: object) -> None:
    """VaultError unless it is ours."""
    if version != VERSION:
        raise VaultError(
            f"{address} holds a store of schema {quote(version)}, this Steelyard knows {VERSION}; use the one "
            "that wrote it, or index the data set into another database"
        )


def sent_ids(ids: Iterable[str]) -> list[str]:
    """Ids as the database can hold them, ascending."""
    return [sent(id_) for id_ in sorted(ids)]


def received_value(value: object) -> Any:  # noqa: ANN401 -- a text, a number, or nothing
    """What of a column was sent."""
    return received(value) if isinstance(value, str) else value


def copied(query: str, ids: Iterable[str]) -> Any:  # noqa: ANN401 -- psycopg's Composed
    """The statement that copies what a query gives out of the database; its braces are these ids."""
    from psycopg import sql

    listed = sql.SQL("{}::text[]").format(sql.Literal(sent_ids(ids)))
    return sql.SQL(f"COPY ({query}) TO STDOUT (FORMAT binary)").format(*[listed] * query.count("{}"))


def batches(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """The rows, `BATCH` at a time."""
    rest = iter(rows)
    while batch := list(islice(rest, BATCH)):
        yield batch


@dataclass
class Written:
    """What a transaction has changed: entries, those that lost their vectors, vectors, spaces that are gone.

    Vectors are here as they are sent: the copy would find each in a chain of pages.
    """

    entries: set[str] = field(default_factory=set)
    stale: set[str] = field(default_factory=set)
    vectors: dict[Space, dict[str, bytes]] = field(default_factory=dict)
    dropped: list[Space] = field(default_factory=list)
    models: bool = False
