"""The vectors of a vault: a sqlite-vec table for every space, and the same in memory where that is faster.

The first search of a space is left to sqlite-vec, which reads the file once, as loading the matrix does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Indices, Vectors
from steelyard.base.errors import DimensionMismatchError, VaultError, shown
from steelyard.base.machine import budget, precision
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard.stores.base import Space
from steelyard.stores.sqlite.damage import damaged
from steelyard.stores.sqlite.file import table_of
from steelyard.stores.sqlite.journal import Journal
from steelyard.stores.sqlite.matrix import Matrix
from steelyard.stores.sqlite.schema import space_statement, where
from steelyard.stores.sqlite.segments import KINDS, VectorSegment

CHANGES = 1024
"""More changes than these since the matrix was read, or a share of `CHANGES_SHARE`, and it is read anew."""
CHANGES_SHARE = 1 / 64


class VectorTables(Journal):
    """See `steelyard.stores.base.Store`."""

    def spaces(self) -> list[tuple[Space, int]]:
        """See Store.spaces."""
        return [(space, dim) for _, space, dim in self._spaces()]

    def without_vectors(self, spaces: Sequence[Space]) -> list[str]:
        """See Readable.without_vectors."""
        return []

    def approximate(self, spaces: Sequence[Space]) -> str:
        """See Readable.approximate."""
        return ""

    def missing(self, space: Space) -> list[str]:
        """See Store.missing."""
        table, _ = self._table(space)
        if table is None:
            return [id_ for (id_,) in self._rows("SELECT id FROM entries ORDER BY id")]
        sql = f"SELECT id FROM entries WHERE rowid NOT IN (SELECT rowid FROM {table}) ORDER BY id"
        return [id_ for (id_,) in self._rows(sql)]

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
            last = dict(zip(ids, np.ascontiguousarray(vectors, dtype=np.float32), strict=True))
            self._db.executemany(drop, ((id_,) for id_ in last))
            self._db.executemany(sql, ((vector.tobytes(), id_) for id_, vector in last.items()))
            listed = json.dumps(list(ids))
            self._note("SELECT e.rowid FROM json_each(?) j JOIN entries e ON e.id = j.value", (listed,))
            self._revise()

    def drop_space(self, space: Space) -> None:
        """See Store.drop_space."""
        with self.transaction():
            table, _ = self._table(space)
            if table is not None:
                self._note(f"SELECT rowid FROM {table}_rowids")  # a new space may get the same number
                self._db.execute(f"DROP TABLE {table}")
                self._db.execute("DELETE FROM spaces WHERE space = ?", (int(table.removeprefix("vec_")),))
                self._revise()

    def _matrix(self, table: str, dim: int, searches: int = 1) -> Matrix | None:
        """The vectors in memory; None for the first search, above the budget, and where they cannot be trusted."""
        self._searches[table] += searches
        if self._searches[table] < 2 or self._writing:
            return None
        kind = KINDS[precision()]
        key = (table, dim, kind)
        if key not in self._memory_of and self._bytes(table, dim, kind) > budget():
            return None
        matrix = self._kept(key, lambda: self._read(table, dim, kind), lambda known: self._updated(table, known))
        return matrix if matrix.sound() else None

    def vector_bytes(self, precise: str = "") -> dict[Space, int]:
        """How much memory the vectors of each space take, as `float` or as `int8`; by default as they are kept."""
        kind = KINDS[precise or precision()]
        return {space: self._bytes(table, dim, kind) for table, space, dim in self._spaces()}

    def _bytes(self, table: str, dim: int, kind: type[VectorSegment]) -> int:
        return kind.size(dim) * int(self._one(f"SELECT count(*) FROM {table}_rowids"))

    def _read(self, table: str, dim: int, kind: type[VectorSegment]) -> Matrix:
        """All vectors of a space."""
        used = self._db.execute(f"SELECT validity FROM {table}_chunks")
        count = sum(int.from_bytes(bits, "little").bit_count() for (bits,) in used)
        whole = kind.gathered(self._chunks(table, dim), count, dim)
        twice = (np.diff(np.sort(whole.rowids)) == 0).any()
        if twice or not np.isin(whole.rowids, self._inside(EVERYTHING), assume_unique=True).all():
            raise damaged(self.path, f"{table} holds vectors of entries that are not there")
        return Matrix.of(self.revision(), whole)

    def _chunks(self, table: str, dim: int) -> Iterator[tuple[Indices, Vectors]]:
        """The blobs in which vec0 keeps the vectors."""
        sql = (
            f"SELECT c.rowids, c.validity, v.vectors FROM {table}_chunks c "
            f"JOIN {table}_vector_chunks00 v ON v.rowid = c.chunk_id"
        )
        for numbers, validity, blob in self._db.execute(sql):
            used = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").astype(bool)
            vectors = np.frombuffer(blob, np.float32).reshape(-1, dim)
            yield np.frombuffer(numbers, np.int64)[used], vectors[used]

    def _updated(self, table: str, known: Matrix) -> Matrix:
        """The matrix with what changed since; read anew where that is much."""
        changed = self._changed(known.revision)
        if len(changed) + len(known.tail) > max(CHANGES, CHANGES_SHARE * len(known.base)):
            return self._read(table, known.base.dim, type(known.base))
        return known.updated(self.revision(), changed, *self._stored(table, known.base.dim, changed))

    def _stored(self, table: str, dim: int, rowids: Indices) -> tuple[Indices, Vectors]:
        """Read the vectors of some entries: the rows of those that have one, and the vectors."""
        sql = f"SELECT v.rowid, v.embedding FROM json_each(?) j JOIN {table} v ON v.rowid = j.value"
        rows: list[Any] = self._db.execute(sql, (json.dumps(rowids.tolist()),)).fetchall()
        vectors = np.frombuffer(b"".join(blob for _, blob in rows), dtype=np.float32).reshape(len(rows), dim)
        return np.array([rowid for rowid, _ in rows], dtype=np.int64), vectors

    def unembedded(self, spaces: Sequence[Space], filters: Filters) -> list[str]:
        """See Readable.unembedded."""
        condition, values = where(filters)
        with self._steady():
            tables = [table for table, _ in map(self._table, spaces) if table is not None]
            without = "".join(f" AND e.rowid NOT IN (SELECT rowid FROM {table}_rowids)" for table in tables)
            sql = f"SELECT e.id FROM entries e WHERE (e.text != '' OR e.details != '') AND {condition}{without}"
            return sorted(id_ for (id_,) in self._rows(sql, values))

    def vectors(self, space: Space, filters: Filters) -> tuple[list[str], NDArray[np.float32]]:
        """See Store.vectors."""
        table, dim = self._table(space)
        if table is None:
            return [], np.zeros((0, 0), dtype=np.float32)
        with self._steady():
            condition, values = where(filters)
            sql = (
                f"SELECT e.id, e.rowid FROM {table}_rowids v JOIN entries e ON e.rowid = v.rowid WHERE {condition}"
            )
            rows = sorted(self._rows(sql, values))
            wanted = np.array([rowid for _, rowid in rows], dtype=np.int64)
            order = np.argsort(wanted)
            matrix = np.zeros((len(rows), dim), dtype=np.float32)  # filled in place: all are in memory once
            for rowids, vectors in self._chunks(table, dim):
                keep = np.isin(rowids, wanted)
                matrix[order[np.searchsorted(wanted, rowids[keep], sorter=order)]] = vectors[keep]
        return [id_ for id_, _ in rows], matrix

    def vectors_of(self, space: Space, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """See Store.vectors_of."""
        table, dim = self._table(space)
        if table is None:
            return {}
        with self._steady():
            matrix = self._matrix(table, dim, 0)
            known = None if matrix is None else self._exact(matrix, ids)
        if known is not None:
            return known
        sql = (
            f"SELECT e.id, v.embedding FROM json_each(?) j JOIN entries e ON e.id = j.value "
            f"JOIN {table} v ON v.rowid = e.rowid"
        )
        rows = self._rows(sql, (json.dumps(list(ids)),))
        return {id_: np.frombuffer(blob, dtype=np.float32) for id_, blob in rows}

    def _exact(self, matrix: Matrix, ids: Sequence[str]) -> dict[str, Vectors] | None:
        """The vectors of those entries that have one; None where they are not kept as they are."""
        sql = "SELECT e.id, e.rowid FROM json_each(?) j JOIN entries e ON e.id = j.value"
        names: dict[int, str] = {rowid: id_ for id_, rowid in self._rows(sql, (json.dumps(list(ids)),))}
        rowids, vectors = matrix.of_entries(np.array(list(names), dtype=np.int64))
        if vectors is None:
            return None
        return {names[rowid]: vector for rowid, vector in zip(rowids.tolist(), vectors, strict=True)}

    def _table(self, space: Space) -> tuple[str | None, int]:
        table, dim = next(((table, dim) for table, known, dim in self._spaces() if known == space), (None, 0))
        if table is not None:
            self._sound(table, dim)
        return table, dim

    def _ensure_space(self, space: Space, dim: int) -> str:
        table, stored = self._table(space)
        if table is None:
            self._db.execute(
                "INSERT INTO spaces(model, layer, recipe, dim) VALUES(?, ?, ?, ?)",
                (space.model, space.layer, space.recipe, dim),
            )
            number = self._db.last_insert_rowid()
            self._db.execute(space_statement(number, dim))
            table = table_of(number)
        else:
            self._check_dim(space, stored, dim)
        return table

    def _check_dim(self, space: Space, stored: int, given: int) -> None:
        if stored != given:
            raise DimensionMismatchError(
                f"{self.path} holds vectors of dimension {stored} for model {shown(space.model)}, "
                f"the embedder returned {given}; run steelyard index VAULT --rebuild to rebuild them"
            )
