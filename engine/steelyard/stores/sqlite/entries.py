"""The entries of a vault."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steelyard.memory.entry import Entry
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard.stores.base import Edge
from steelyard.stores.sqlite.file import NULL, REAL, TEXT
from steelyard.stores.sqlite.journal import Journal
from steelyard.stores.sqlite.schema import (
    COLUMNS,
    INSERT,
    SELECT,
    UPSERT,
    failing,
    from_row,
    from_rows,
    select,
    to_row,
    where,
)

KEPT = 4096
"""Entries of one state of the file that are kept as they were read, because searches show the same ones."""


class EntryTable(Journal):
    """See `steelyard.stores.base.Store`."""

    def upsert(self, entries: Iterable[Entry], *, keep_vectors: bool = False) -> int:
        """See Store.upsert."""
        return self._change(UPSERT, map(to_row, entries), keep_vectors)

    def rows(self, filters: Filters) -> Iterator[tuple[Any, ...]]:
        """The entries in scope as they lie in the file, for `add_rows` of another vault, by ascending id."""
        condition, values = where(filters)
        yield from self._db.execute(f"{SELECT} WHERE {condition} ORDER BY e.id", values)

    def add_rows(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert what `rows` of another vault gave."""
        with self.transaction():
            self._db.executemany(INSERT, rows)
            self._revise()

    def delete(self, ids: Iterable[str]) -> int:
        """See Store.delete; the triggers of the keyword indexes forget the entries."""
        return self._change("DELETE FROM entries WHERE id = ? RETURNING rowid", ((id_,) for id_ in ids))

    def _change(
        self, sql: str, bound: Iterable[tuple[str | float | None, ...]], keep_vectors: bool = False
    ) -> int:
        """Run a statement that returns the rowids it changed, drop their vectors, count them."""
        changed = 0
        with self.transaction():
            tables = [] if keep_vectors else [self._sound(table, dim) for table, _, dim in self._spaces()]
            for values in bound:
                for (rowid,) in self._db.execute(sql, values).fetchall():
                    changed += 1
                    self._changing(str(values[0]), keep_vectors)
                    for table in tables:
                        self._db.execute(f"DELETE FROM {table} WHERE rowid = ?", (rowid,))
            if changed:
                self._revise()
        return changed

    def _changing(self, id_: str, keep_vectors: bool) -> None:
        """Called for every entry that a write changes; a vault that is a copy notes it."""

    def get(self, ids: Sequence[str], fields: Sequence[str] = COLUMNS) -> list[Entry]:
        """See Store.get."""
        names = tuple(dict.fromkeys(("id", *fields)))
        with self._steady():
            now = self.revision()
            seen, known = self._shown.get(names, (now, {}))
            if seen != now or self._writing:
                known = {}
            if unknown := [id_ for id_ in ids if id_ not in known]:
                sql = f"{select(names)} JOIN json_each(?) j ON j.value = e.id"
                rows = self._db.execute(sql, (json.dumps(unknown),)).fetchall()
                read = {entry.id: entry for entry in from_rows(names, rows)}
                known = {**known, **read}
                if len(read) <= KEPT and not self._writing:
                    self._shown[names] = now, known if len(known) <= KEPT else read
        return [known[id_] for id_ in ids if id_ in known]

    def entries(self, filters: Filters = EVERYTHING) -> Iterator[Entry]:
        """See Store.entries."""
        for row in self.rows(filters):
            yield from_row(COLUMNS, row)

    def places(self) -> Iterator[tuple[str, str, bool]]:
        """See Readable.places."""
        layered = "(e.l0 != '' OR e.l1 != '')"
        sql = f"SELECT e.id, e.uri, {layered} FROM entries e WHERE e.uri != '' OR {layered} ORDER BY e.id"
        return ((id_, uri, bool(has_layers)) for id_, uri, has_layers in self._rows(sql, columns=(TEXT, TEXT)))

    def within(self, ids: Sequence[str], filters: Filters) -> set[str]:
        """See Readable.within."""
        condition, values = where(filters)
        sql = f"SELECT e.id FROM json_each(?) j JOIN entries e ON e.id = j.value WHERE {condition}"
        return {id_ for (id_,) in self._rows(sql, (json.dumps(list(ids)), *values))}

    def edges(self, ids: Sequence[str]) -> list[Edge]:
        """See Readable.edges."""
        sql = (
            "SELECT e.source, e.target, e.type, e.strength FROM json_each(?1) j JOIN edges e "
            "ON e.source = j.value UNION SELECT e.source, e.target, e.type, e.strength "
            "FROM json_each(?1) j JOIN edges e ON e.target = j.value ORDER BY 1, 2, 3, 4"
        )
        return [Edge(*row) for row in self._rows(sql, (json.dumps(list(ids)),), (TEXT, TEXT, TEXT, REAL | NULL))]

    def recent(self, filters: Filters, limit: int) -> list[Entry]:
        """See Store.recent."""
        condition, values = where(filters)
        sql = f"{SELECT} WHERE {condition} ORDER BY e.created_at DESC NULLS LAST, e.id LIMIT ?"
        return from_rows(COLUMNS, self._db.execute(sql, (*values, limit)).fetchall())

    def count(self, filters: Filters = EVERYTHING) -> int:
        """See Store.count."""
        condition, values = where(filters)
        return int(self._one(f"SELECT count(*) FROM entries e WHERE {condition}", values))

    def covers(self, filters: Filters) -> bool:
        """See Store.covers."""
        sql = "SELECT EXISTS (SELECT 1 FROM entries e WHERE {})"
        return not any(self._one(sql.format(condition), values) for condition, values in failing(filters))
