"""A vault: one SQLite file with entries, FTS5 indexes and sqlite-vec tables.

SQLite comes with apsw, because the `sqlite3` module of many Pythons cannot load extensions. Every
write is one transaction; the file is in WAL mode, so readers never wait, and writers wait their turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from steelyard.entry import Entry
from steelyard.errors import DimensionMismatchError, VaultError, shown
from steelyard.filters import EVERYTHING, Filters
from steelyard.stores.base import Found, KeywordIndex, Space
from steelyard.stores.connect import connect, machine_errors
from steelyard.stores.damage import damaged
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
from steelyard.text import visible

K_MAX = 4096
"""The most neighbours a vec0 table returns."""
TIES = 32
"""Matches read beyond a cut, so that a tie across it is seldom searched for a second time."""


class Vault:
    """A store in one SQLite file, or in memory with the path ``:memory:``. Use it in one thread.

    Unless it is to be created, a file that cannot be written, or lies in a folder that cannot be, is
    opened for reading; the first write then raises MachineError.
    """

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = str(path)
        self._db = connect(self.path, create)
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

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See Store.transaction; MachineError when the file cannot be written."""
        with machine_errors(self.path):
            if self._db.in_transaction:
                yield
                return
            try:
                # At once: one that reads first could not write any more after another process has.
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._end("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside is one state of the file, whatever other processes write meanwhile."""
        with machine_errors(self.path):
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._end("COMMIT")

    def _end(self, how: str) -> None:
        """End a transaction unless it has ended: a full disk does that, and closing, which an interrupt may let
        come first.
        """
        with suppress(apsw.ConnectionClosedError):
            if self._db.in_transaction:
                self._db.execute(how)

    # Entries

    def upsert(self, entries: Iterable[Entry]) -> int:
        """See Store.upsert."""
        changed = 0
        with self.transaction():
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
        try:
            wanted = json.dumps(list(ids))
        except TypeError as error:  # an id that came from a damaged file
            raise damaged(self.path, error) from None
        return [from_row(names, row) for row in self._db.execute(sql, (wanted,))]

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
        stored = self._index_settings(index)
        if stored is None:
            with self.transaction():
                stored = self._index_settings(index)  # another process may have made it meanwhile
                if stored is None:
                    self._create_index(index)
                    return
        if stored != (json.dumps(index.fields), index.tokenizer):
            raise VaultError(
                f"keyword index {index.name!r} of {self.path} covers {visible(stored[0])} "
                f"with tokenizer {stored[1]!r}, "
                f"the system asks for {json.dumps(index.fields)} with {index.tokenizer!r}; run steelyard reindex"
            )

    def rebuild_indexes(self, indexes: Iterable[KeywordIndex]) -> None:
        """Drop every keyword index and build these anew, in one transaction."""
        with self.transaction():
            for (name,) in self._db.execute("SELECT name FROM keyword_indexes").fetchall():
                for event in ("insert", "update", "delete"):
                    self._db.execute(f"DROP TRIGGER fts_{name}_{event}")
                self._db.execute(f"DROP TABLE fts_{name}")
            self._db.execute("DELETE FROM keyword_indexes")
            for index in indexes:
                self._create_index(index)

    def _index_settings(self, index: KeywordIndex) -> tuple[str, str] | None:
        sql = "SELECT fields, tokenizer FROM keyword_indexes WHERE name = ?"
        row: tuple[str, str] | None = self._db.execute(sql, (index.name,)).fetchone()
        return row

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
        score = f"-bm25({table}, {', '.join('?' * len(weights))}) AS score"
        condition, values = where(filters)
        if depth > 0 and not filters:
            # Cut before the ids are read, with room for a tie that crosses the cut, because ids decide it.
            asked = depth + TIES
            sql = (
                f"SELECT e.id, best.score FROM (SELECT rowid, {score} FROM {table} WHERE {table} MATCH ? "
                "ORDER BY score DESC LIMIT ?) best JOIN entries e ON e.rowid = best.rowid "
                "ORDER BY best.score DESC, e.id"
            )
            rows: list[Any] = self._db.execute(sql, (*weights, match, asked)).fetchall()
            if len(rows) < asked or rows[-1][1] < rows[depth - 1][1]:
                return [Found(id_, value, place) for place, (id_, value) in enumerate(rows[:depth], 1)]
        sql = (
            f"SELECT e.id, {score} FROM {table} JOIN entries e ON e.rowid = {table}.rowid "
            f"WHERE {table} MATCH ? AND {condition} ORDER BY score DESC, e.id LIMIT ?"
        )
        whole = self._db.execute(sql, (*weights, match, *values, depth))
        return [Found(id_, value, place) for place, (id_, value) in enumerate(whole, 1)]

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
        with self.transaction():
            table = self._ensure_space(space, int(vectors.shape[1]))
            drop = f"DELETE FROM {table} WHERE rowid = (SELECT rowid FROM entries WHERE id = ?)"
            sql = f"INSERT INTO {table}(rowid, embedding) SELECT rowid, ? FROM entries WHERE id = ?"
            for id_, vector in zip(ids, np.ascontiguousarray(vectors, dtype=np.float32), strict=True):
                self._db.execute(drop, (id_,))
                self._db.execute(sql, (vector.tobytes(), id_))
            self._revise()

    def drop_space(self, space: Space) -> None:
        """See Store.drop_space."""
        with self.transaction():
            table, _ = self._table(space)
            if table is not None:
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
        with self.transaction():
            self._db.execute("DELETE FROM model_arrays WHERE model = ?", (name,))
            self._db.execute(
                "INSERT OR REPLACE INTO models VALUES(?, ?, ?)", (name, kind, json.dumps(settings, sort_keys=True))
            )
            self._db.executemany(
                "INSERT INTO model_arrays VALUES(?, ?, ?)", ((name, key, data) for key, data in arrays.items())
            )

    def models(self) -> list[str]:
        """Names of the stored models, ascending."""
        return [name for (name,) in self._db.execute("SELECT name FROM models ORDER BY name")]

    def drop_models(self) -> None:
        """Forget all stored models."""
        with self.transaction():
            self._db.execute("DELETE FROM model_arrays")
            self._db.execute("DELETE FROM models")

    def load_model(self, name: str) -> tuple[str, dict[str, Any], dict[str, bytes]] | None:
        """Kind, settings and arrays of a stored model, None when there is none of this name."""
        row = self._db.execute("SELECT kind, settings FROM models WHERE name = ?", (name,)).fetchone()
        if row is None:
            return None
        arrays = dict(self._db.execute("SELECT name, data FROM model_arrays WHERE model = ?", (name,)))
        try:
            return row[0], json.loads(row[1]), arrays
        except (ValueError, TypeError, RecursionError) as error:
            raise damaged(self.path, error) from None

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

    def _migrate(self) -> None:
        # One statement, one state: another process may be making the tables just now.
        version, application, tables = next(
            self._db.execute(
                "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema) "
                "FROM pragma_user_version, pragma_application_id"
            )
        )
        if application != APPLICATION_ID and (version or tables):
            raise VaultError(f"{self.path} is an SQLite file of another program; name a vault or a new file")
        if version > VERSION:
            raise VaultError(
                f"{self.path} was written by a newer Steelyard (schema {version}, this one knows {VERSION}); "
                "upgrade Steelyard, or index the data set into a new vault"
            )
        if not self._db.readonly("main"):
            with machine_errors(self.path):
                self._db.execute("PRAGMA journal_mode = wal")
        self._db.execute("PRAGMA synchronous = normal; PRAGMA foreign_keys = on")
        if version < VERSION:
            with self.transaction():
                for step in range(int(self._one("PRAGMA user_version")), VERSION):
                    self._db.execute(MIGRATIONS[step])
                    self._db.execute(f"PRAGMA user_version = {step + 1}")
                    self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
