"""The nearest entries of a vector: sqlite-vec finds them, or vectors in memory propose what it then measures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Indices, Vectors
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard.stores.base import COSINE, Found, Space
from steelyard.stores.sqlite.damage import damaged
from steelyard.stores.sqlite.file import REAL, TEXT
from steelyard.stores.sqlite.matrix import Matrix
from steelyard.stores.sqlite.schema import where
from steelyard.stores.sqlite.vectors import VectorTables

K_MAX = 4096
"""The most neighbours a vec0 table returns."""
SAMPLE = 16
"""Stored vectors whose nearest entries are searched for twice, to see that nothing is lost."""
MANY = 32
"""A share of the vectors that takes as long to read one by one as sqlite-vec takes for all of them."""
DISTANCES = {COSINE: "vec_distance_cosine", "l2": "vec_distance_L2"}
"""The distance of two vectors by metric; the vec0 tables themselves have the cosine metric."""


class VectorSearch(NamedTuple):
    """A search in the table of a space; see Readable.nearest."""

    table: str
    vector: Vectors
    filters: Filters
    depth: int
    filter_first: bool
    metric: str


class NearestSearch(VectorTables):
    """See `steelyard.stores.base.Readable.nearest`."""

    def nearest(
        self,
        space: Space,
        vector: NDArray[np.float32],
        filters: Filters,
        depth: int,
        filter_first: bool,
        metric: str = COSINE,
    ) -> list[Found]:
        """See Store.nearest."""
        table, dim = self._table(space)
        if table is None:
            return []
        self._check_dim(space, dim, len(vector))
        if depth < 1 or not vector.any():
            return []
        asked = VectorSearch(table, np.ascontiguousarray(vector, np.float32), filters, depth, filter_first, metric)
        with self._steady():
            rows = self._proposed(space, asked)
            matrix = self._matrix(table, dim) if rows is None and depth <= K_MAX else None
            rows = self._recomputed(matrix, asked) if matrix else rows
            if rows is None:
                rows = self._scanned(asked)
        return [
            Found(id_, 1.0 - distance, place) for place, (id_, distance, inside) in enumerate(rows, 1) if inside
        ]

    def _proposed(self, space: Space, asked: VectorSearch) -> list[tuple[str, float, int]] | None:
        """As `_scanned`, of what another index proposes; None where none does."""
        return None

    def expect(self, space: Space, vectors: Sequence[Vectors]) -> None:
        """See Readable.expect."""
        table, dim = self._table(space)
        wanted = [vector for vector in vectors if len(vector) == dim]
        with self._steady():
            matrix = self._matrix(table, dim, len(wanted)) if table is not None and wanted else None
        if matrix is not None:
            matrix.expect(wanted)

    def sampled_recall(self, space: Space, depth: int = 100) -> float:
        """The share of the nearest entries of some stored vectors that the search in memory finds, 0..1.

        The nearest are those that sqlite-vec finds; 1 where it does the search itself.
        """
        table, dim = self._table(space)
        with self._steady():
            matrix = None if table is None else self._matrix(table, dim, 2)
            if table is None or matrix is None:
                return 1.0
            sample = matrix.rowids[:: max(1, len(matrix.rowids) // SAMPLE)]
            wanted = found = 0
            for vector in self._stored(table, dim, sample[:SAMPLE])[1]:
                asked = VectorSearch(table, vector, EVERYTHING, depth, True, COSINE)
                nearest, rows = {id_ for id_, _, _ in self._scanned(asked)}, self._recomputed(matrix, asked)
                wanted += len(nearest)
                found += len(nearest if rows is None else nearest.intersection(id_ for id_, _, _ in rows))
        return found / wanted if wanted else 1.0

    def _recomputed(self, matrix: Matrix, asked: VectorSearch) -> list[tuple[str, float, int]] | None:
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
        measured = zip(self._named(rowids), distances, inside, strict=True)
        return sorted(measured, key=itemgetter(1, 0))[: asked.depth]

    def _distances(self, asked: VectorSearch, rowids: Indices, vectors: Vectors | None) -> list[float]:
        """Distances of some entries, computed by sqlite-vec; `vectors` spares reading theirs from the file."""
        bound: tuple[Any, ...] = ()
        if vectors is None:
            self._map()
            stored = f"v.embedding) FROM json_each(?2) j CROSS JOIN {asked.table} v ON v.rowid = j.value"
            places = rowids.tolist()
        else:
            size = 4 * vectors.shape[1]
            stored = "substr(?3, j.value, ?4)) FROM json_each(?2) j"
            places, bound = list(range(1, vectors.nbytes + 1, size)), (vectors.tobytes(), size)
        sql = f"SELECT {DISTANCES[asked.metric]}(?1, {stored}"
        rows: list[Any] = self._db.execute(sql, (asked.vector.tobytes(), json.dumps(places), *bound)).fetchall()
        if len(rows) < len(rowids):
            raise damaged(self.path, f"{asked.table} lacks a vector that it lists")
        return [distance for (distance,) in rows]

    def _scanned(self, asked: VectorSearch) -> list[tuple[str, float, int]]:
        """The nearest as (id, distance, in scope), by sqlite-vec.

        vec0 leaves ties at its cut open, so it is asked for more until none crosses.
        """
        depth = asked.depth
        count = depth + 1
        rows = self._neighbours(asked, count)
        while len(rows) == count and rows[-1][1] == rows[depth - 1][1]:
            count *= 2
            rows = self._neighbours(asked, count)
        return sorted(rows, key=itemgetter(1, 0))[:depth]

    def _neighbours(self, asked: VectorSearch, count: int) -> list[tuple[str, float, int]]:
        """So many of the nearest as (id, distance, in scope).

        vec0 finds at most `K_MAX` by cosine; more, or those by another metric, are found by a scan.
        """
        indexed = asked.metric == COSINE and count <= K_MAX
        condition, values = where(asked.filters)
        first = bool(asked.filters) and asked.filter_first
        scope = f"AND rowid IN (SELECT e.rowid FROM entries e WHERE {condition})" if first else ""
        near = "embedding MATCH ? AND k = ?" if indexed else "true"
        distance = "distance" if indexed else f"{DISTANCES[asked.metric]}(embedding, ?) AS distance"
        last = "" if indexed else "ORDER BY distance LIMIT ?"
        sql = (
            f"WITH near AS (SELECT rowid, {distance} FROM {asked.table} WHERE {near} {scope} {last}) "
            f"SELECT e.id, near.distance, ({condition}) FROM near JOIN entries e ON e.rowid = near.rowid "
            "ORDER BY near.distance"
        )
        inside = values if scope else ()
        blob = asked.vector.tobytes()
        bound = (blob, count, *inside) if indexed else (blob, *inside, count)
        return self._rows(sql, (*bound, *values), (TEXT, REAL))  # no distance: a vector of zeros
