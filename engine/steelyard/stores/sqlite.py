"""A vault: one SQLite file with entries, FTS5 indexes and sqlite-vec tables.

SQLite comes with apsw, because the `sqlite3` module of many Pythons cannot load extensions. Every
write is one transaction; the file is in WAL mode, so readers never wait.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import sqlite_vec
from numpy.typing import NDArray

from steelyard.entry import EVERYTHING, Entry, Filters
from steelyard.errors import PATH_WIDTH, DimensionMismatchError, MachineError, VaultError, shown
from steelyard.stores.base import Found, KeywordIndex, Space
from steelyard.stores.schema import (
    APPLICATION_ID,
    COLUMNS,
    MIGRATIONS,
    SELECT,
    UPSERT,
    VERSION,
    from_row,
    select,
    to_row,
    where,
)

K_MAX = 4096
"""The most neighbours a vec0 table returns."""


class Vault:
    """A store in one SQLite file, or in memory with the path ``:memory:``. Use it in one thread."""

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = str(path)
        self._db = _open(self.path, create)
        try:
            self._migrate()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the file; the write-ahead log is folded in."""
        self._db.close()

    def __enter__(self) -> Vault:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Entries

    def upsert(self, entries: Iterable[Entry]) -> int:
        """See Store.upsert."""
        changed = 0
        with self._transaction():
            tables = [table for table, _, _ in self._spaces()]
            for entry in entries:
                for (rowid,) in self._db.execute(UPSERT, to_row(entry)).fetchall():
                    changed += 1
                    for table in tables:
                        self._db.execute(f"DELETE FROM {table} WHERE rowid = ?", (rowid,))
            if changed:
                self._revise()
        return changed

    def get(self, ids: Sequence[str], fields: Sequence[str] = COLUMNS) -> list[Entry]:
        """See Store.get."""
        names = list(dict.fromkeys(("id", *fields)))
        sql = f"{select(names)} JOIN json_each(?) j ON j.value = e.id ORDER BY j.key"
        return [from_row(names, row) for row in self._db.execute(sql, (json.dumps(list(ids)),))]

    def entries(self, filters: Filters = EVERYTHING) -> Iterator[Entry]:
        """See Store.entries."""
        condition, values = where(filters)
        for row in self._db.execute(f"{SELECT} WHERE {condition} ORDER BY e.id", values):
            yield from_row(COLUMNS, row)

    def recent(self, filters: Filters, limit: int) -> list[Entry]:
        """See Store.recent."""
        condition, values = where(filters)
        sql = f"{SELECT} WHERE {condition} ORDER BY e.created_at DESC NULLS LAST, e.id LIMIT ?"
        return [from_row(COLUMNS, row) for row in self._db.execute(sql, (*values, limit))]

    def count(self, filters: Filters = EVERYTHING) -> int:
        """See Store.count."""
        condition, values = where(filters)
        return int(self._one(f"SELECT count(*) FROM entries e WHERE {condition}", values))

    def revision(self) -> int:
        """See Store.revision."""
        return int(self._one("SELECT value FROM meta WHERE key = 'revision'"))

    # Keyword indexes

    def ensure_index(self, index: KeywordIndex) -> None:
        """See Store.ensure_index."""
        stored = self._db.execute(
            "SELECT fields, tokenizer FROM keyword_indexes WHERE name = ?", (index.name,)
        ).fetchone()
        if stored is None:
            with self._transaction():
                self._create_index(index)
        elif stored != (json.dumps(index.fields), index.tokenizer):
            raise VaultError(
                f"keyword index {index.name!r} of {self.path} covers {stored[0]} with tokenizer {stored[1]!r}, "
                f"the system asks for {json.dumps(index.fields)} with {index.tokenizer!r}; run steelyard reindex"
            )

    def rebuild_indexes(self, indexes: Iterable[KeywordIndex]) -> None:
        """Drop every keyword index and build these anew, in one transaction."""
        with self._transaction():
            for (name,) in self._db.execute("SELECT name FROM keyword_indexes").fetchall():
                for event in ("insert", "update", "delete"):
                    self._db.execute(f"DROP TRIGGER fts_{name}_{event}")
                self._db.execute(f"DROP TABLE fts_{name}")
            self._db.execute("DELETE FROM keyword_indexes")
            for index in indexes:
                self._create_index(index)

    def _create_index(self, index: KeywordIndex) -> None:
        table, fields = f"fts_{index.name}", ", ".join(f'"{name}"' for name in index.fields)
        old, new = (", ".join(f'{row}."{name}"' for name in index.fields) for row in ("old", "new"))
        forget = f"INSERT INTO {table}({table}, rowid, {fields}) VALUES('delete', old.rowid, {old});"
        learn = f"INSERT INTO {table}(rowid, {fields}) VALUES(new.rowid, {new});"
        self._db.execute(f"""
            CREATE VIRTUAL TABLE {table} USING fts5(
              {fields}, content='entries', content_rowid='rowid', tokenize='{index.tokenizer}');
            CREATE TRIGGER {table}_insert AFTER INSERT ON entries BEGIN {learn} END;
            CREATE TRIGGER {table}_delete AFTER DELETE ON entries BEGIN {forget} END;
            CREATE TRIGGER {table}_update AFTER UPDATE ON entries BEGIN {forget} {learn} END;
            INSERT INTO {table}({table}) VALUES('rebuild');
        """)
        self._db.execute(
            "INSERT INTO keyword_indexes VALUES(?, ?, ?)", (index.name, json.dumps(index.fields), index.tokenizer)
        )

    def keyword(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[Found]:
        """See Store.keyword. SQLite's bm25 is negative with the best lowest; the score is its negation."""
        if not match:
            return []
        self.ensure_index(index)
        table = f"fts_{index.name}"
        condition, values = where(filters)
        sql = (
            f"SELECT e.id, -bm25({table}, {', '.join('?' * len(weights))}) AS score "
            f"FROM {table} JOIN entries e ON e.rowid = {table}.rowid "
            f"WHERE {table} MATCH ? AND {condition} ORDER BY score DESC, e.id LIMIT ?"
        )
        rows = self._db.execute(sql, (*weights, match, *values, depth))
        return [Found(id_, score, place) for place, (id_, score) in enumerate(rows, 1)]

    # Vectors

    def spaces(self) -> list[tuple[Space, int]]:
        """See Store.spaces."""
        return [(space, dim) for _, space, dim in self._spaces()]

    def missing(self, space: Space) -> list[str]:
        """See Store.missing."""
        table, _ = self._table(space)
        if table is None:
            return [id_ for (id_,) in self._db.execute("SELECT id FROM entries ORDER BY id")]
        sql = f"SELECT id FROM entries WHERE rowid NOT IN (SELECT rowid FROM {table}) ORDER BY id"
        return [id_ for (id_,) in self._db.execute(sql)]

    def put_vectors(self, space: Space, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """See Store.put_vectors."""
        for id_, vector in zip(ids, vectors, strict=True):
            if not np.isfinite(vector).all() or not vector.any():
                raise VaultError(
                    f"the vector of {shown(id_)} has no direction (all zeros, or not finite); leave it out"
                )
        with self._transaction():
            table = self._ensure_space(space, int(vectors.shape[1]))
            drop = f"DELETE FROM {table} WHERE rowid = (SELECT rowid FROM entries WHERE id = ?)"
            sql = f"INSERT INTO {table}(rowid, embedding) SELECT rowid, ? FROM entries WHERE id = ?"
            for id_, vector in zip(ids, np.ascontiguousarray(vectors, dtype=np.float32), strict=True):
                self._db.execute(drop, (id_,))
                self._db.execute(sql, (vector.tobytes(), id_))
            self._revise()

    def drop_space(self, space: Space) -> None:
        """See Store.drop_space."""
        table, _ = self._table(space)
        if table is not None:
            with self._transaction():
                self._db.execute(f"DROP TABLE {table}")
                self._db.execute("DELETE FROM spaces WHERE space = ?", (int(table.removeprefix("vec_")),))
                self._revise()

    def nearest(
        self, space: Space, vector: NDArray[np.float32], filters: Filters, depth: int, filter_first: bool
    ) -> list[Found]:
        """See Store.nearest. vec0 leaves ties at its cut open, so it is asked for more until none crosses."""
        table, dim = self._table(space)
        if table is None:
            return []
        self._check_dim(space, dim, len(vector))
        if depth < 1 or not vector.any():
            return []
        depth = min(depth, K_MAX)
        asked = min(depth + 1, K_MAX)
        rows = self._neighbours(table, vector, filters, asked, filter_first)
        while len(rows) == asked < K_MAX and rows[-1][1] == rows[depth - 1][1]:
            asked = min(2 * asked, K_MAX)
            rows = self._neighbours(table, vector, filters, asked, filter_first)
        rows = sorted(rows, key=lambda row: (row[1], row[0]))[:depth]
        return [
            Found(id_, 1.0 - distance, place) for place, (id_, distance, inside) in enumerate(rows, 1) if inside
        ]

    def _neighbours(
        self, table: str, vector: NDArray[np.float32], filters: Filters, k: int, filter_first: bool
    ) -> list[tuple[str, float, int]]:
        condition, values = where(filters)
        scope = (
            f"AND rowid IN (SELECT e.rowid FROM entries e WHERE {condition})" if filters and filter_first else ""
        )
        sql = (
            f"WITH near AS (SELECT rowid, distance FROM {table} WHERE embedding MATCH ? AND k = ? {scope}) "
            f"SELECT e.id, near.distance, ({condition}) FROM near JOIN entries e ON e.rowid = near.rowid "
            "ORDER BY near.distance"
        )
        blob = np.ascontiguousarray(vector, dtype=np.float32).tobytes()
        rows: list[Any] = self._db.execute(sql, (blob, k, *(values if scope else ()), *values)).fetchall()
        return rows

    def vectors(self, space: Space, filters: Filters) -> tuple[list[str], NDArray[np.float32]]:
        """See Store.vectors."""
        table, dim = self._table(space)
        if table is None:
            return [], np.zeros((0, 0), dtype=np.float32)
        condition, values = where(filters)
        sql = f"SELECT e.id, v.embedding FROM {table} v JOIN entries e ON e.rowid = v.rowid WHERE {condition}"
        rows = sorted(self._db.execute(sql, values))
        matrix = np.frombuffer(b"".join(blob for _, blob in rows), dtype=np.float32)
        return [id_ for id_, _ in rows], matrix.reshape(len(rows), dim)

    def vectors_of(self, space: Space, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """See Store.vectors_of."""
        table, _ = self._table(space)
        if table is None:
            return {}
        sql = f"SELECT v.embedding FROM {table} v WHERE v.rowid = (SELECT rowid FROM entries WHERE id = ?)"
        found = {}
        for id_ in ids:
            row = self._db.execute(sql, (id_,)).fetchone()
            if row is not None:
                found[id_] = np.frombuffer(row[0], dtype=np.float32)
        return found

    # Models fitted on this vault, as plain arrays (never pickled)

    def save_model(self, name: str, kind: str, settings: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Store a fitted model in one transaction, replacing one of the same name."""
        with self._transaction():
            self._db.execute("DELETE FROM model_arrays WHERE model = ?", (name,))
            self._db.execute(
                "INSERT OR REPLACE INTO models VALUES(?, ?, ?)", (name, kind, json.dumps(settings, sort_keys=True))
            )
            self._db.executemany(
                "INSERT INTO model_arrays VALUES(?, ?, ?)", ((name, key, data) for key, data in arrays.items())
            )

    def load_model(self, name: str) -> tuple[str, dict[str, Any], dict[str, bytes]] | None:
        """Kind, settings and arrays of a stored model, None when there is none of this name."""
        row = self._db.execute("SELECT kind, settings FROM models WHERE name = ?", (name,)).fetchone()
        if row is None:
            return None
        arrays = dict(self._db.execute("SELECT name, data FROM model_arrays WHERE model = ?", (name,)))
        return row[0], json.loads(row[1]), arrays

    # Inside

    def _one(self, sql: str, values: Sequence[str | float] = ()) -> Any:  # noqa: ANN401 -- whatever SQL returns
        return next(self._db.execute(sql, tuple(values)))[0]

    def _spaces(self) -> list[tuple[str, Space, int]]:
        rows = self._db.execute("SELECT space, model, layer, recipe, dim FROM spaces ORDER BY space")
        return [(f"vec_{number}", Space(model, layer, recipe), dim) for number, model, layer, recipe, dim in rows]

    def _table(self, space: Space) -> tuple[str | None, int]:
        return next(((table, dim) for table, known, dim in self._spaces() if known == space), (None, 0))

    def _ensure_space(self, space: Space, dim: int) -> str:
        table, stored = self._table(space)
        if table is None:
            self._db.execute(
                "INSERT INTO spaces(model, layer, recipe, dim) VALUES(?, ?, ?, ?)",
                (space.model, space.layer, space.recipe, dim),
            )
            table = f"vec_{self._db.last_insert_rowid()}"
            self._db.execute(
                f"CREATE VIRTUAL TABLE {table} USING vec0(embedding float[{dim}] distance_metric=cosine)"
            )
        else:
            self._check_dim(space, stored, dim)
        return table

    def _revise(self) -> None:
        self._db.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")

    def _check_dim(self, space: Space, stored: int, given: int) -> None:
        if stored != given:
            raise DimensionMismatchError(
                f"{self.path} holds vectors of dimension {stored} for model {shown(space.model)}, "
                f"the embedder gave {given}; run steelyard reindex to rebuild them"
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._db:
                yield
        except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError) as error:
            raise MachineError(f"cannot write {self.path}: {error}; free space or check permissions") from None

    def _migrate(self) -> None:
        version = int(self._one("PRAGMA user_version"))
        ours = self._one("PRAGMA application_id") == APPLICATION_ID
        if not ours and (version or self._one("SELECT count(*) FROM sqlite_schema")):
            raise VaultError(f"{self.path} is an SQLite file of another program; name a vault or a new file")
        if version > VERSION:
            raise VaultError(
                f"{self.path} was written by a newer Steelyard (schema {version}, this one knows {VERSION}); "
                "upgrade Steelyard, or index the data set into a new vault"
            )
        self._db.execute("PRAGMA journal_mode = wal; PRAGMA synchronous = normal; PRAGMA foreign_keys = on")
        with self._transaction():
            for step in range(version, VERSION):
                self._db.execute(MIGRATIONS[step])
                self._db.execute(f"PRAGMA user_version = {step + 1}")
                self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _open(path: str, create: bool) -> apsw.Connection:
    place = shown(path, PATH_WIDTH)
    if path != ":memory:" and not create and not Path(path).is_file():
        raise VaultError(f"there is no vault at {place}; make one with steelyard index DATASET {place}")
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create or path == ":memory:" else 0)
    try:
        db = apsw.Connection(path, flags=flags)
        db.set_busy_timeout(30_000)
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        db.enable_load_extension(False)
        db.execute("SELECT count(*) FROM sqlite_schema")  # reads the header, and changes nothing
    except apsw.NotADBError:
        raise VaultError(f"{place} is not an SQLite file; name a vault") from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError) as error:
        raise MachineError(f"cannot open {place}: {error}; check the folder's permissions") from None
    return db
