"""What changed since a revision, which entries are in a scope, and their ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar, cast

import apsw
import numpy as np

from steelyard.base.arrays import Indices
from steelyard.memory.filters import Filters
from steelyard.stores.sqlite.damage import damaged
from steelyard.stores.sqlite.file import VaultFile
from steelyard.stores.sqlite.schema import NOTE, where

SCOPES = 64
"""How many scopes are kept in memory; queries with a clock have one each."""


class KeptState(Protocol):
    """What was computed from a whole vault."""

    @property
    def revision(self) -> int:
        """The revision of the vault that it belongs to."""


K = TypeVar("K", bound=KeptState)


class Journal(VaultFile):
    """Entries are known by their rowids here, int64, which are short and do not change."""

    def _changed(self, since: int) -> Indices:
        """The entries that changed after a revision, those that are gone included; ascending."""
        sql = "SELECT entry FROM changes WHERE revision > ? ORDER BY +entry"  # by the index of revisions
        return _column(self._db.execute(sql, (since,)).fetchall())

    def _note(self, entries: str, values: tuple[str, ...] = ()) -> None:
        """List the rowids that a SELECT gives as changed at the revision that `_revise` makes next."""
        listed = f"SELECT n.rowid, value + 1 FROM meta, ({entries}) n WHERE key = 'revision'"
        self._db.execute(f"INSERT INTO changes {listed} {NOTE}", values)

    def _inside(self, filters: Filters) -> Indices:
        """The entries in scope, ascending; kept until the vault changes."""
        now = self.revision()
        known = self._scopes.get(filters)
        if known is not None and known[0] == now and not self._writing:
            return known[1]
        condition, values = where(filters)
        sql = f"SELECT e.rowid FROM entries e WHERE {condition} ORDER BY e.rowid"
        rowids = _column(self._db.execute(sql, values).fetchall())
        if not self._writing:
            scopes = dict(self._scopes)
            scopes.pop(filters, None)
            self._scopes = {**dict(list(scopes.items())[1 - SCOPES :]), filters: (now, rowids)}
        return rowids

    def _named(self, rowids: Indices) -> list[str]:
        """The ids of entries; kept until the vault changes."""
        now, wanted = self.revision(), rowids.tolist()
        names = self._names[1] if self._names[0] == now and not self._writing else {}
        if unknown := [rowid for rowid in wanted if rowid not in names]:
            sql = "SELECT e.id, e.rowid FROM json_each(?) j JOIN entries e ON e.rowid = j.value"
            names.update((rowid, id_) for id_, rowid in self._rows(sql, (json.dumps(unknown),)))
            if not self._writing:
                self._names = now, names
        try:
            return [names[rowid] for rowid in wanted]
        except KeyError as error:
            raise damaged(self.path, f"an index names entry {error}, which is not there") from None

    @property
    def _writing(self) -> bool:
        """Whether this thread has written what is not committed: nothing that it reads may be kept."""
        return self._db.txn_state("main") == apsw.SQLITE_TXN_WRITE

    def _kept(self, key: Hashable, load: Callable[[], K], update: Callable[[K], K]) -> K:
        """What is kept in memory under the key, of the vault as this thread sees it.

        `load` computes it anew, `update` brings an older one up to date. It is not kept inside a transaction that
        has written, nor for a thread whose snapshot is older than what other threads keep.
        """
        now = self.revision()
        known: K | None = cast("K | None", self._memory_of.get(key))  # the key says which kind it is
        if self._writing or (known is not None and known.revision > now):
            return load()
        if known is None or known.revision < now:
            known = load() if known is None else update(known)
            self._memory_of[key] = known
        return known


def _column(rows: list[Any]) -> Indices:
    return np.fromiter((rowid for (rowid,) in rows), dtype=np.int64, count=len(rows))
