"""pgvector's HNSW index: made where it is asked for, and asked which entries may be the nearest.

It keeps directions in half precision, which takes half the room and finds the same: whoever asks computes how near
they are. One graph leads through the vectors of all tenants, so it is for roles alone that see all of them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from steelyard.base.arrays import Vectors
from steelyard.base.errors import ConfigError, quote
from steelyard.extensions.postgres.schema import received
from steelyard.extensions.postgres.server import Server
from steelyard.stores.base import COSINE, Space
from steelyard.stores.sqlite import Vault
from steelyard.stores.sqlite.guard import TEXT
from steelyard.stores.sqlite.matrix import length_of
from steelyard.stores.sqlite.nearest import VectorSearch
from steelyard.stores.sqlite.schema import where

if TYPE_CHECKING:
    import psycopg

EF_SEARCH = range(1, 1001)
"""What pgvector allows; more finds more and takes longer."""
MOST_PROPOSED = 1000
"""Candidates that are asked for at most; from there on comparing all is as fast."""
WIDEST = 4000
"""The most numbers of a vector that an index of half precision takes."""
SPARE = 4
"""So many times the entries asked for are proposed where a filter may leave some out."""
OLDEST = (0, 8)
"""The pgvector that goes on searching until a list is full (iterative scans)."""
NAMES = (
    "SELECT c.relname, s.space FROM pg_class c LEFT JOIN steelyard.spaces s ON c.relname = 'hnsw_' || s.space "
    "WHERE c.relnamespace = 'steelyard'::regnamespace AND c.relname ~ '^hnsw_[0-9]+$'"
)
"""The indexes, each with its space, or with none where that is gone."""
SETTINGS = (
    "hnsw.iterative_scan = 'relaxed_order'",
    "enable_sort = off",  # the planner does not count what reading every vector costs, and would rather sort them
)
_log = logging.getLogger(__name__)


class Hnsw:
    """The indexes of a store, searched with one breadth.

    Raises ConfigError for a breadth that pgvector does not allow, a store that it cannot be used in (see `check`),
    and one without an index.
    """

    def __init__(self, server: Server, ef_search: int) -> None:
        if ef_search not in EF_SEARCH:
            raise ConfigError(f"hnsw is {quote(ef_search)}; ef_search of pgvector is 1 to {EF_SEARCH[-1]}")
        check(server)
        self.ef_search = ef_search
        self._server = server
        with server.run_statement(NAMES) as (_, rows):
            self.made = {space for _, space in rows.fetchall()} - {None}
        if not self.made:
            raise ConfigError(
                f"{server.name} has no HNSW index; make one with steelyard index DATASET {server.name} --hnsw"
            )
        server.configure((f"hnsw.ef_search = {ef_search:d}", *SETTINGS))

    def near(self, space: int, vector: Vectors, count: int) -> list[str]:
        """So many entries that may be the nearest; fewer where it finds no more, none where it is not asked."""
        if space not in self.made or count > MOST_PROPOSED:
            return []
        dim = len(vector)
        direction = (vector / length_of(vector)).tolist()
        half = f"{self._server.vector}.halfvec({dim:d})"
        sql = (
            f"SELECT id FROM steelyard.vectors WHERE space = {space:d} ORDER BY {_directions(self._server, dim)} "
            f"OPERATOR({self._server.vector}.<=>) "
        )
        ordered = f"{sql.replace('%', '%%')}%s::{half.replace('%', '%%')} LIMIT {count:d}"
        with self._server.run_statement(ordered, (str(direction),)) as (_, rows):
            return [received(id_) for (id_,) in rows.fetchall()]


class HnswSearch(Vault):
    """The copy of a store, searched by the server's indexes: they propose, and the copy compares."""

    _server: Server
    _space_numbers: dict[Space, int]
    _hnsw: Hnsw | None = None

    def search_by(self, hnsw: int | None) -> None:
        """Let the server's HNSW index propose what `nearest` finds by cosine, with this ef_search (see `Hnsw`).

        None to compare every vector, as at first.
        """
        if self._hnsw is not None:
            self._hnsw = None
            self._server.configure(())
        if hnsw is not None:
            self._hnsw = Hnsw(self._server, hnsw)

    def approximate(self, spaces: Sequence[Space]) -> str:
        """See Readable.approximate; a space without an index is compared as a whole."""
        if self._hnsw is None or not any(self._space_numbers.get(space) in self._hnsw.made for space in spaces):
            return ""
        return f"HNSW with ef_search {self._hnsw.ef_search}"

    def check_hnsw(self) -> None:
        """ConfigError where `make_hnsw` would be refused."""
        check(self._server)

    def make_hnsw(self) -> dict[Space, int]:
        """Make the HNSW index of every space of texts that has none; their sizes in bytes. See `hnsw.make`."""
        dims = dict(self.spaces())
        spaces = {space: number for space, number in self._space_numbers.items() if space.layer == "text"}
        sizes = make(self._server, {number: dims[space] for space, number in spaces.items()})
        return {space: sizes[number] for space, number in spaces.items()}

    def _proposed(self, space: Space, asked: VectorSearch) -> list[tuple[str, float, int]] | None:
        """See NearestSearch._proposed; None, too, where fewer than asked for are left."""
        number, writes = self._space_numbers.get(space), getattr(self._thread, "changes", None) is not None
        if self._hnsw is None or number is None or asked.metric != COSINE or writes:
            return None
        spare = SPARE if asked.filters and asked.filter_first else 1
        ids = self._hnsw.near(number, asked.vector, spare * asked.depth)
        condition, values = where(asked.filters)
        sql = (
            f"SELECT e.id, e.rowid, ({condition}) FROM json_each(?) j JOIN entries e ON e.id = j.value "
            f"JOIN {asked.table}_rowids v ON v.rowid = e.rowid"
        )
        rows = self._db.run(sql, (*values, json.dumps(ids)), (TEXT,))
        kept = [row for row in rows if row[2] or not asked.filter_first]
        if len(kept) < asked.depth:
            return None
        distances = self._distances(asked, np.array([rowid for _, rowid, _ in kept], dtype=np.int64), None)
        measured = ((id_, far, inside) for (id_, _, inside), far in zip(kept, distances, strict=True))
        return sorted(measured, key=itemgetter(1, 0))[: asked.depth]


def check(server: Server) -> None:
    """ConfigError for a role from which rows are hidden, and for a pgvector that is too old."""
    if server.restricted:
        raise ConfigError(
            "an HNSW index covers the vectors of all tenants, and this role sees only some of them; leave --hnsw "
            "out (search is then exact), or use the role that owns the store"
        )
    if server.pgvector < OLDEST:
        version = ".".join(map(str, server.pgvector))
        raise ConfigError(f"{server.name} has pgvector {version}; HNSW needs 0.8, so update it on the server")


def make(server: Server, spaces: Mapping[int, int]) -> dict[int, int]:
    """Make the indexes of spaces, given with their dimensions, that have none; the size of each in bytes.

    Those of spaces that are gone are dropped. Who writes meanwhile waits, and fails after `lock_timeout`. Raises
    ConfigError as `check`, and for vectors that are too wide; VaultError for a role that does not own the store.
    """
    check(server)
    if wide := [dim for dim in spaces.values() if dim > WIDEST]:
        raise ConfigError(f"vectors have {wide[0]} numbers; pgvector's HNSW takes {WIDEST} at most")
    sizes = {}
    for space, dim in spaces.items():
        with server.transaction(write=True) as there:
            there.add_notice_handler(_told)
            there.execute("SET LOCAL statement_timeout = 0")
            indexed = f"({_directions(server, dim)}) {server.vector}.halfvec_cosine_ops"
            sql = f"CREATE INDEX IF NOT EXISTS {_name(space)} ON steelyard.vectors USING hnsw ({indexed})"
            there.execute(f"{sql} WHERE space = {space:d}".encode())
            there.remove_notice_handler(_told)
            [(sizes[space],)] = there.execute(f"SELECT pg_relation_size('steelyard.{_name(space)}')").fetchall()
    with server.transaction(write=True) as there:
        for name in [name for name, space in there.execute(NAMES) if space is None]:
            there.execute(f"DROP INDEX steelyard.{name}")
    return sizes


def _name(space: int) -> str:
    return f"hnsw_{space:d}"


def _directions(server: Server, dim: int) -> str:
    """What is indexed: of length 1, so that no number is too large or too small for half precision."""
    return f"{server.vector}.l2_normalize(embedding)::{server.vector}.halfvec({dim:d})"


def _told(said: psycopg.errors.Diagnostic) -> None:
    if "maintenance_work_mem" in (said.message_primary or ""):
        _log.warning(
            "the index no longer fits into the server's maintenance_work_mem and takes much longer; to give it "
            "more, stop and begin again with PGOPTIONS='-c maintenance_work_mem=2GB'"
        )
