"""The vectors of a vault: a sqlite-vec table for every space, and the same in memory where that is faster.

The nearest entries of a vector are found by sqlite-vec, or vectors in memory propose what it then measures. The
first search of a space is left to sqlite-vec, which reads the file once, as loading the matrix does.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple, cast

import numpy as np

from steelyard.base.arrays import Indices, Vectors
from steelyard.base.errors import DimensionMismatchError, VaultError, quote
from steelyard.base.extensions import extension
from steelyard.base.machine import budget, precision
from steelyard.memory.query import EVERYTHING, Filters
from steelyard.stores.base import COSINE, ScoredId, Space
from steelyard.stores.sqlite.file import VaultFile
from steelyard.stores.sqlite.guard import LARGEST_MAP, REAL, TEXT, Value
from steelyard.stores.sqlite.matrix import Matrix, VectorSegment
from steelyard.stores.sqlite.schema import damaged, space_statement, where

K_MAX = 4096
"""The most neighbours a vec0 table returns."""
MANY = 32
"""A share of the vectors that takes as long to read one by one as sqlite-vec takes for all of them."""
DISTANCES = {COSINE: "vec_distance_cosine", "l2": "vec_distance_L2"}
"""The distance of two vectors by metric; the vec0 tables themselves have the cosine metric."""
CHANGES, CHANGES_SHARE = 1024, 1 / 64
"""More changes than these since the matrix was read, or than this share of it, and it is read anew."""
Neighbour = tuple[str, float, int]
"""An entry, its distance, and whether it is in scope."""


class VectorSearch(NamedTuple):
    """A search in the table of a space; see Readable.nearest."""

    table: str
    vector: Vectors
    filters: Filters
    depth: int
    filter_first: bool
    metric: str


class NearestSearch(VaultFile):
    """See `steelyard.stores.base.ReadableStore`."""

    # Writing

    def put_vectors(self, space: Space, ids: Sequence[str], vectors: Vectors) -> None:
        """Store float32[len(ids), dim] in one transaction; the first vectors fix the dimension.

        Raises DimensionMismatchError when the space holds another dimension, VaultError for a vector
        that is all zeros or not finite.
        """
        last = dict(zip(ids, np.ascontiguousarray(vectors, dtype=np.float32), strict=True))
        sound = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
        if odd := [quote(ids[row]) for row in np.flatnonzero(~sound).tolist()]:
            raise VaultError(f"the vector of {odd[0]} has no direction (all zeros, or not finite); leave it out")
        known = "SELECT e.rowid{} FROM json_each(?) j CROSS JOIN entries e ON e.id = j.value"
        listed = (json.dumps([*last]),)
        with self.transaction():
            table = self._ensure_space(space, int(vectors.shape[1]))
            held = self._db.run(f"{known.format('')} JOIN {table}_rowids v ON v.rowid = e.rowid", listed)
            self._db.many(f"DELETE FROM {table} WHERE rowid = ?", held)
            rows = self._db.run(known.format(", e.id"), listed)
            sql = f"INSERT INTO {table}(rowid, embedding) VALUES(?, ?)"
            self._db.many(sql, ((rowid, last[id_].tobytes()) for rowid, id_ in rows))
            self._note(known.format(""), listed)
            self._revise()

    def drop_space(self, space: Space) -> None:
        """Forget all vectors of a space, and its dimension."""
        with self.transaction():
            table, _ = self._table(space)
            if table is not None:
                self._note(f"SELECT rowid FROM {table}_rowids")  # a new space may get the same number
                self._db.run(f"DROP TABLE {table}")
                self._db.run("DELETE FROM spaces WHERE space = ?", (int(table.removeprefix("vec_")),))
                self._revise()

    def _table(self, space: Space) -> tuple[str | None, int]:
        table, dim = next(((table, dim) for table, known, dim in self._spaces() if known == space), (None, 0))
        return (None if table is None else self._sound(table, dim)), dim

    def _ensure_space(self, space: Space, dim: int) -> str:
        table, stored = self._table(space)
        if table is not None:
            self._check_dim(space, stored, dim)
            return table
        sql = "INSERT INTO spaces(model, layer, recipe, dim) VALUES(?, ?, ?, ?)"
        self._db.run(sql, (space.model, space.layer, space.recipe, dim))
        number = self._db.last_insert_rowid()
        self._db.run(space_statement(number, dim))
        return f"vec_{number:d}"

    def _check_dim(self, space: Space, stored: int, given: int) -> None:
        if stored != given:
            raise DimensionMismatchError(
                f"{self.path} holds vectors of dimension {stored} for model {quote(space.model)}, "
                f"the embedder returned {given}; run steelyard index VAULT --rebuild to rebuild them"
            )

    # Reading

    def missing(self, space: Space) -> list[str]:
        """Ids of entries without a vector in this space, ascending."""
        table, _ = self._table(space)
        lacking = "" if table is None else f"WHERE rowid NOT IN (SELECT rowid FROM {table})"
        return [id_ for (id_,) in self._db.run(f"SELECT id FROM entries {lacking} ORDER BY id", (), (TEXT,))]

    def unembedded(self, spaces: Sequence[Space], filters: Filters) -> list[str]:
        condition, values = where(filters)
        with self._steady():
            tables = [table for table, _ in map(self._table, spaces) if table is not None]
            without = "".join(f" AND e.rowid NOT IN (SELECT rowid FROM {table}_rowids)" for table in tables)
            sql = f"SELECT e.id FROM entries e WHERE (e.text != '' OR e.details != '') AND {condition}{without}"
            return sorted(id_ for (id_,) in self._db.run(sql, values, (TEXT,)))

    def vectors(self, space: Space, filters: Filters) -> tuple[list[str], Vectors]:
        table, dim = self._table(space)
        if table is None:
            return [], np.zeros((0, 0), dtype=np.float32)
        condition, values = where(filters)
        sql = f"SELECT e.id, e.rowid FROM {table}_rowids v JOIN entries e ON e.rowid = v.rowid WHERE {condition}"
        with self._steady():
            rows = sorted(self._db.run(sql, values, (TEXT,)))
            wanted = np.array([rowid for _, rowid in rows], dtype=np.int64)
            order = np.argsort(wanted)
            matrix = np.zeros((len(rows), dim), dtype=np.float32)  # filled in place: all are in memory once
            for rowids, vectors in self._chunks(table, dim):
                keep = np.isin(rowids, wanted)
                matrix[order[np.searchsorted(wanted, rowids[keep], sorter=order)]] = vectors[keep]
        return [id_ for id_, _ in rows], matrix

    def vectors_of(self, space: Space, ids: Sequence[str]) -> dict[str, Vectors]:
        table, dim = self._table(space)
        if table is None:
            return {}
        listed = (json.dumps(list(ids)),)
        with self._steady():
            if (matrix := self._matrix(table, dim, 0)) is not None:
                sql = "SELECT e.id, e.rowid FROM json_each(?) j JOIN entries e ON e.id = j.value"
                names: dict[int, str] = {rowid: id_ for id_, rowid in self._db.run(sql, listed, (TEXT,))}
                held = np.isin(matrix.rowids, list(names)) & matrix.alive
                rowids, vectors = matrix.chosen(np.flatnonzero(held))
                if vectors is not None:
                    return {names[rowid]: vector for rowid, vector in zip(rowids.tolist(), vectors, strict=True)}
        sql = (
            "SELECT e.id, v.embedding FROM json_each(?) j JOIN entries e ON e.id = j.value "
            f"JOIN {table} v ON v.rowid = e.rowid"
        )
        return {id_: np.frombuffer(blob, dtype=np.float32) for id_, blob in self._db.run(sql, listed, (TEXT,))}

    # In memory

    @cached_property
    def _kind(self) -> type[VectorSegment]:
        """How vectors are kept in memory."""
        if precision() == "float":
            return VectorSegment
        return cast("type[VectorSegment]", extension("int8").Codes)

    def _matrix(self, table: str, dim: int, searches: int = 1) -> Matrix | None:
        """The vectors in memory; None for the first search, above the budget, and where they cannot be trusted."""
        self._searches[table] += searches
        if self._searches[table] < 2 or self.uncommitted():
            return None
        kind = self._kind
        key = table, dim, kind
        if not self.cache.holds("vectors", key) and self._bytes(table, dim) > budget():
            return None
        read, renew = partial(self._all_vectors, table, dim, kind), partial(self._updated, table)
        matrix = self.cache.get("vectors", key, read, renew=renew)
        return matrix if matrix.base.sound and matrix.tail.sound else None

    def vector_bytes(self) -> dict[Space, int]:
        """How much memory the vectors of each space take, as they are kept."""
        return {space: self._bytes(table, dim) for table, space, dim in self._spaces()}

    def _bytes(self, table: str, dim: int) -> int:
        return self._kind.size(dim) * int(self._one(f"SELECT count(*) FROM {table}_rowids"))

    def _all_vectors(self, table: str, dim: int, kind: type[VectorSegment]) -> Matrix:
        used = self._db.run(f"SELECT validity FROM {table}_chunks")
        count = sum(int.from_bytes(bits, "little").bit_count() for (bits,) in used)
        whole = kind.gathered(self._chunks(table, dim), count, dim)
        twice = (np.diff(np.sort(whole.rowids)) == 0).any()
        if twice or not np.isin(whole.rowids, self._inside(EVERYTHING), assume_unique=True).all():
            raise damaged(self.path, f"{table} holds vectors of entries that are not there")
        return Matrix.of(whole)

    def _chunks(self, table: str, dim: int) -> Iterator[tuple[Indices, Vectors]]:
        """The blobs in which vec0 keeps the vectors."""
        sql = (
            f"SELECT c.rowids, c.validity, v.vectors FROM {table}_chunks c "
            f"JOIN {table}_vector_chunks00 v ON v.rowid = c.chunk_id"
        )
        for numbers, validity, blob in self._db.each(sql, ahead=1):  # a row is a thousand vectors
            used = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").astype(bool)
            vectors = np.frombuffer(blob, np.float32).reshape(-1, dim)
            yield np.frombuffer(numbers, np.int64)[used], vectors[used]

    def _updated(self, table: str, since: int, known: Matrix) -> Matrix:
        """The matrix with what changed since a revision; read anew where that is much."""
        changed, dim = self._changed(since), known.base.dim
        if len(changed) + len(known.tail) > max(CHANGES, CHANGES_SHARE * len(known.base)):
            return self._all_vectors(table, dim, type(known.base))
        sql = f"SELECT v.rowid, v.embedding FROM json_each(?) j JOIN {table} v ON v.rowid = j.value"
        rows = self._db.run(sql, (json.dumps(changed.tolist()),))
        vectors = np.frombuffer(b"".join(blob for _, blob in rows), dtype=np.float32).reshape(len(rows), dim)
        rowids = np.array([rowid for rowid, _ in rows], dtype=np.int64)
        return known.updated(changed, rowids, vectors)

    def expect(self, space: Space, vectors: Sequence[Vectors]) -> None:
        table, dim = self._table(space)
        wanted = [vector for vector in vectors if len(vector) == dim]
        with self._steady():
            matrix = self._matrix(table, dim, len(wanted)) if table is not None and wanted else None
        if matrix is not None:
            matrix.expect(wanted)

    # Searching

    def nearest(
        self, space: Space, vector: Vectors, filters: Filters, depth: int, filter_first: bool, metric: str = COSINE
    ) -> list[ScoredId]:
        table, dim = self._table(space)
        if table is None:
            return []
        self._check_dim(space, dim, len(vector))
        if depth < 1 or not vector.any():
            return []
        asked = VectorSearch(table, np.ascontiguousarray(vector, np.float32), filters, depth, filter_first, metric)
        with self._steady():
            rows = self._proposed(space, asked)
            if rows is None and depth <= K_MAX and (matrix := self._matrix(table, dim)):
                rows = self._recomputed(matrix, asked)
            if rows is None:
                rows = self._scanned(asked)
        return [ScoredId(id_, 1.0 - far, place) for place, (id_, far, inside) in enumerate(rows, 1) if inside]

    def _proposed(self, space: Space, asked: VectorSearch) -> list[Neighbour] | None:
        """As `_scanned`, of what another index proposes; None where none does."""
        return None

    def _recomputed(self, matrix: Matrix, asked: VectorSearch) -> list[Neighbour] | None:
        """As `_scanned`, of the candidates that the matrix finds."""
        filters, late = asked.filters, bool(asked.filters) and not asked.filter_first
        mask = np.isin(matrix.rowids, self._inside(filters)) if filters and not late else None
        rows = matrix.near(asked.vector, asked.depth, asked.metric, mask)
        if rows is None:
            return None
        rowids, vectors = matrix.chosen(rows)
        if vectors is None and len(rows) > max(4 * asked.depth, len(matrix) // MANY):
            return None
        distances = self._distances(asked, rowids, vectors)
        inside = np.isin(rowids, self._inside(filters)).tolist() if late else [True] * len(rowids)
        measured = zip(self._ids_of(rowids), distances, inside, strict=True)
        return sorted(measured, key=itemgetter(1, 0))[: asked.depth]

    def _distances(self, asked: VectorSearch, rowids: Indices, vectors: Vectors | None) -> list[float]:
        """Distances of some entries, computed by sqlite-vec; `vectors` spares reading theirs from the file."""
        bound: tuple[Any, ...] = ()
        if vectors is None:
            # Where the system keeps the file in memory nothing is copied: a large value is a chain of pages.
            self._db.run(f"PRAGMA mmap_size = {LARGEST_MAP}")
            stored = f"v.embedding) FROM json_each(?2) j CROSS JOIN {asked.table} v ON v.rowid = j.value"
            places = rowids.tolist()
        else:
            size = 4 * vectors.shape[1]
            stored = "substr(?3, j.value, ?4)) FROM json_each(?2) j"
            places, bound = list(range(1, vectors.nbytes + 1, size)), (vectors.tobytes(), size)
        sql = f"SELECT {DISTANCES[asked.metric]}(?1, {stored}"
        rows = self._db.run(sql, (asked.vector.tobytes(), json.dumps(places), *bound))
        if len(rows) < len(rowids):
            raise damaged(self.path, f"{asked.table} lacks a vector that it lists")
        return [distance for (distance,) in rows]

    def _scanned(self, asked: VectorSearch) -> list[Neighbour]:
        """The nearest, by sqlite-vec.

        vec0 finds at most `K_MAX` by cosine; more, or those by another metric, are found by a scan. It leaves
        ties at its cut open, so it is asked for more until none crosses.
        """
        depth, count, (condition, values) = asked.depth, asked.depth + 1, where(asked.filters)
        first, blob = bool(asked.filters) and asked.filter_first, asked.vector.tobytes()
        scope = f"AND rowid IN (SELECT e.rowid FROM entries e WHERE {condition})" if first else ""
        inside = values if first else ()
        while True:
            if asked.metric == COSINE and count <= K_MAX:
                distance, near, last = "distance", "embedding MATCH ? AND k = ?", ""
                bound: tuple[Value, ...] = (blob, count, *inside)
            else:
                distance, near = f"{DISTANCES[asked.metric]}(embedding, ?) AS distance", "true"
                last, bound = "ORDER BY distance LIMIT ?", (blob, *inside, count)
            sql = (
                f"WITH near AS (SELECT rowid, {distance} FROM {asked.table} WHERE {near} {scope} {last}) "
                f"SELECT e.id, near.distance, ({condition}) FROM near JOIN entries e ON e.rowid = near.rowid "
                "ORDER BY near.distance"
            )
            rows = self._db.run(sql, (*bound, *values), (TEXT, REAL))  # no distance: a vector of zeros
            if len(rows) < count or rows[-1][1] != rows[depth - 1][1]:
                return sorted(rows, key=itemgetter(1, 0))[:depth]
            count *= 2
