"""A vault: one SQLite file with entries, FTS5 indexes, sqlite-vec tables and fitted models.

A caller who may see a part of it has a store that holds these entries as if there were no others. FTS5 and TF-IDF
count words over all entries they hold, and an entry may supersede another one. So what a caller may see is copied
into a vault in memory, and that is searched: no number, order or message depends on more.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

from steelyard.base.errors import ConfigError, quote
from steelyard.base.extensions import extension
from steelyard.base.files import STRICT_JSON
from steelyard.memory.entry import EVERY_FIELD, Entry, linked_ids, naming
from steelyard.memory.query import EVERYTHING, SUPERSEDED, Filters
from steelyard.memory.words import STEMMERS
from steelyard.stores.base import Edge, ReadableStore, RevisionCache, Space, is_address
from steelyard.stores.sqlite.guard import MEMORY, NULL, REAL, ROWS, TEXT
from steelyard.stores.sqlite.keywords import KeywordTables
from steelyard.stores.sqlite.nearest import NearestSearch
from steelyard.stores.sqlite.schema import INSERT, UPSERT, damaged, failing, from_rows, select, to_row, where

READING = frozenset(name for name in vars(ReadableStore) if not name.startswith("_"))
"""What can be asked of a store that is read."""
ENTRIES_KEPT = 4096
"""Entries that are kept as they were read, of each choice of fields: searches show the same ones."""


def open_vault(name: str | Path, *, create: bool = False, hnsw: int | None = None) -> "Vault":
    """The vault in a file, or at ``postgresql://USER@HOST:PORT/DATABASE``; see `Vault` and `PostgresVault`.

    `hnsw` is the ef_search with which a database is searched by its HNSW index; ConfigError for a file.
    """
    if is_address(name):
        return cast("Vault", extension("postgres").PostgresVault(str(name), create=create, hnsw=hnsw))
    if hnsw is not None:
        raise ConfigError(f"{name} is a file, and only databases have HNSW indexes; leave --hnsw out")
    return Vault(name, create=create)


class Vault(KeywordTables, NearestSearch, ReadableStore):
    """A store in one SQLite file, or in memory with the path ``:memory:``. Threads may share it.

    Each base is a module beside this one: `VaultFile` connects and writes, `WordTables` counts words in it and
    `KeywordTables` ranks by them, `NearestSearch` has the vectors; here are the entries and the models.

    Every thread has a connection of its own, so readers do not wait for each other, nor for a writer of a
    file. A transaction and a snapshot are those of the thread that began them; what other threads read
    meanwhile is what was committed. Between two calls without a snapshot others may have written.

    Unless it is to be created, a file that cannot be written, or lies in a folder that cannot be, is
    opened for reading; the first write then raises MachineError.
    """

    restricted = False
    """Whether who opened it sees a part of it alone, by rules that it does not decide."""

    models_revision: int | None = None
    """The revision at which models changed last, where others may change them; None of a file."""

    def seen_by(self, visible: Filters) -> ReadableStore:
        """See Readable.seen_by; kept for the next one who asks."""
        if not visible and not self.restricted:
            return self
        return cast(ReadableStore, self._views.setdefault(visible, ScopedStore(self, visible)))

    def copied(self, visible: Filters) -> "Vault":
        """A vault in memory with the entries that the filters admit and their vectors."""
        admitted = Filters(visible.clauses)
        with self._steady():
            copy = VisiblePart(MEMORY)
            copy.add_rows(self.rows(admitted))
            copy.set_languages(self.languages())
            for space, _ in self.spaces():
                ids, matrix = self.vectors(space, admitted)
                if ids:
                    copy.put_vectors(space, ids, matrix)
        return copy

    # Writing

    def upsert(self, entries: Iterable[Entry], *, keep_vectors: bool = False) -> int:
        """Insert or replace entries by id in one transaction; returns how many changed.

        A changed entry loses its vectors, because they stood for its old text; with `keep_vectors` it is found by
        them still.
        """
        return self._change(UPSERT, map(to_row, entries), keep_vectors)

    def delete(self, ids: Iterable[str]) -> int:
        """Remove entries with their keywords, which triggers forget, and vectors; returns how many there were."""
        return self._change("DELETE FROM entries WHERE id = ? RETURNING rowid", ((id_,) for id_ in ids))

    def _change(
        self, sql: str, bound: Iterable[tuple[str | float | None, ...]], keep_vectors: bool = False
    ) -> int:
        """Run a statement that returns the rowids it changed, drop their vectors, count them."""
        changed = 0
        with self.transaction():
            tables = [] if keep_vectors else [self._sound(table, dim) for table, _, dim in self._spaces()]
            for values in bound:
                for (rowid,) in self._db.run(sql, values):
                    changed += 1
                    self._changing(str(values[0]), keep_vectors)
                    for table in tables:
                        self._db.run(f"DELETE FROM {table} WHERE rowid = ?", (rowid,))
            if changed:
                self._revise()
        return changed

    def _changing(self, id_: str, keep_vectors: bool) -> None:
        """Called for every entry that a write changes; a vault that is a copy notes it."""

    def rows(self, filters: Filters) -> Iterator[tuple[Any, ...]]:
        """The entries in scope as they lie in the file, for `add_rows` of another vault, by ascending id."""
        condition, values = where(filters)
        yield from self._db.each(f"{select()} WHERE {condition} ORDER BY e.id", values)

    def add_rows(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert what `rows` of another vault gave."""
        with self.transaction():
            self._db.many(INSERT, rows)
            self._revise()

    # Reading

    def get(self, ids: Sequence[str], fields: Sequence[str] = EVERY_FIELD) -> list[Entry]:
        names = tuple(dict.fromkeys(("id", *fields)))

        def read(unknown: list[str]) -> dict[str, Entry]:
            rows = self._db.run(f"{select(names)} JOIN json_each(?) j ON j.value = e.id", (json.dumps(unknown),))
            return {entry.id: entry for entry in self._made(names, rows)}

        with self._steady():
            known = self.cache.many("entries", names, ids, read, ENTRIES_KEPT)
        return [known[id_] for id_ in ids if id_ in known]

    def entries(self, filters: Filters = EVERYTHING) -> Iterator[Entry]:
        rows = self.rows(filters)
        while some := [*islice(rows, ROWS)]:
            yield from self._made(EVERY_FIELD, some)

    def places(self) -> Iterator[tuple[str, str, bool]]:
        layered = "(e.l0 != '' OR e.l1 != '')"
        sql = f"SELECT e.id, e.uri, {layered} FROM entries e WHERE e.uri != '' OR {layered} ORDER BY e.id"
        return ((id_, uri, bool(has_layers)) for id_, uri, has_layers in self._db.run(sql, (), (TEXT, TEXT)))

    def within(self, ids: Sequence[str], filters: Filters) -> set[str]:
        condition, values = where(filters)
        sql = f"SELECT e.id FROM json_each(?) j JOIN entries e ON e.id = j.value WHERE {condition}"
        return {id_ for (id_,) in self._db.run(sql, (json.dumps(list(ids)), *values), (TEXT,))}

    def edges(self, ids: Sequence[str]) -> list[Edge]:
        read = "SELECT e.source, e.target, e.type, e.strength FROM json_each(?1) j JOIN edges e"
        sql = f"{read} ON e.source = j.value UNION {read} ON e.target = j.value ORDER BY 1, 2, 3, 4"
        return [Edge(*row) for row in self._db.run(sql, (json.dumps(list(ids)),), (TEXT, TEXT, TEXT, REAL | NULL))]

    def languages(self) -> tuple[str, ...]:
        [(told,)] = self._db.run("SELECT value FROM meta WHERE key = 'languages'", (), (TEXT,)) or [("",)]
        if unknown := set(told.split()) - set(STEMMERS):
            raise damaged(self.path, f"the language {quote(min(unknown))} is unknown")
        return tuple(told.split())

    def set_languages(self, languages: Sequence[str]) -> None:
        """Say which languages the entries are in; none where their words are to tell."""
        if tuple(languages) != self.languages():
            with self.transaction():
                self._db.run("INSERT OR REPLACE INTO meta VALUES('languages', ?)", (" ".join(languages),))
                self._revise()

    def recent(self, filters: Filters, limit: int) -> list[Entry]:
        condition, values = where(filters)
        sql = f"{select()} WHERE {condition} ORDER BY e.created_at DESC NULLS LAST, e.id LIMIT ?"
        return self._made(EVERY_FIELD, self._db.run(sql, (*values, limit)))

    def _made(self, names: Sequence[str], rows: Sequence[Any]) -> list[Entry]:
        """The entries of rows of `select(names)`, as whoever opened the vault sees them."""
        return from_rows(names, rows)

    def count(self, filters: Filters = EVERYTHING) -> int:
        def read() -> int:
            condition, values = where(filters)
            return int(self._one(f"SELECT count(*) FROM entries e WHERE {condition}", values))

        return self.cache.get("count", filters, read)

    def spaces(self) -> list[tuple[Space, int]]:
        return [(space, dim) for _, space, dim in self._spaces()]

    def covers(self, filters: Filters) -> bool:
        sql = "SELECT EXISTS (SELECT 1 FROM entries e WHERE {})"
        return self.cache.get(
            "covers", filters, lambda: not any(self._one(sql.format(one), own) for one, own in failing(filters))
        )

    # Models that were fitted on the vault, as plain arrays (never pickled)

    def save_model(
        self, name: str, kind: str, settings: Mapping[str, object], arrays: Mapping[str, bytes]
    ) -> None:
        """Store a fitted model in one transaction, replacing one of the same name.

        The first one stored is the vault's own: the one it is searched with unless another is named.
        """
        with self.transaction():
            self._db.run(
                "INSERT OR IGNORE INTO meta SELECT 'model', coalesce((SELECT min(name) FROM models), ?)", (name,)
            )
            self._db.run("DELETE FROM model_arrays WHERE model = ?", (name,))
            self._db.run(
                "INSERT OR REPLACE INTO models VALUES(?, ?, ?)", (name, kind, json.dumps(settings, sort_keys=True))
            )
            self._db.many(
                "INSERT INTO model_arrays VALUES(?, ?, ?)", ((name, key, data) for key, data in arrays.items())
            )

    def models(self) -> list[str]:
        """Names of the stored models: the vault's own first, the others ascending."""
        sql = "SELECT name FROM models ORDER BY name IS NOT (SELECT value FROM meta WHERE key = 'model'), name"
        return [name for (name,) in self._db.run(sql)]

    def drop_models(self) -> None:
        """Forget all stored models."""
        with self.transaction():
            for table in ("model_arrays", "models", "meta WHERE key = 'model'"):
                self._db.run(f"DELETE FROM {table}")

    def load_model(self, name: str) -> tuple[str, dict[str, Any], dict[str, bytes]] | None:
        """Kind, settings and arrays of a stored model, None when there is none of this name."""
        rows = self._db.run("SELECT kind, settings FROM models WHERE name = ?", (name,))
        if not rows:
            return None
        [(kind, told)] = rows
        arrays = dict(self._db.run("SELECT name, data FROM model_arrays WHERE model = ?", (name,)))
        try:
            settings = STRICT_JSON.decode(told)
        except (ValueError, TypeError, RecursionError) as error:
            raise damaged(self.path, error) from None
        if not isinstance(settings, dict):
            raise damaged(self.path, f"the settings of model {name!r} are not an object")
        return kind, settings, arrays


class VisiblePart(Vault):
    """What a caller may see of a vault: its entries name no others, whether these are hidden or nowhere.

    The relations themselves stay as they lie: along them a federation reaches entries of its other tiers.
    """

    def _made(self, names: Sequence[str], rows: Sequence[Any]) -> list[Entry]:
        entries = super()._made(names, rows)
        others = {other for entry in entries for other in linked_ids(entry)}
        inside = self.within(sorted(others), EVERYTHING) if others else set()
        return [naming(entry, inside) for entry in entries]


class ScopedStore:
    """See Readable: the entries of a vault that `visible` admits, copied when it changes. Threads may share it.

    Raises ConfigError for a scope that asks whether entries are superseded: that depends on all of them.
    """

    def __init__(self, vault: Vault, visible: Filters) -> None:
        if any(rule.field == SUPERSEDED for clause in visible.clauses for rule in clause):
            raise ConfigError("a scope cannot select superseded entries; use a filter instead")
        self._vault, self._visible = vault, Filters(visible.clauses)
        self.revision, self.at, self.uncommitted = vault.revision, vault.at, vault.uncommitted
        self._building = threading.Lock()
        self.cache = RevisionCache(self)

    def seen_by(self, visible: Filters) -> ReadableStore:
        return cast(ReadableStore, ScopedStore(self._vault, self._visible & Filters(visible.clauses)))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Everything else that is read, asked of the copy each time; what would write is not there."""
        if name not in READING:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")

        def asked(*values: Any, **options: Any) -> Any:  # noqa: ANN401 -- as the method of the vault has it
            state = self._vault.state()
            if self not in state:  # of what is not committed, and of an older state, the cache keeps nothing
                state[self] = self.cache.get("copy", self._visible, self._copied)
            return getattr(state[self], name)(*values, **options)

        return asked

    def _copied(self) -> Vault:
        """A new copy, or the one that another thread made while this one waited for its turn.

        One that writes takes no turn: whoever has it may be waiting until that is committed.
        """
        if self.uncommitted():
            return self._vault.copied(self._visible)
        with self._building, self._vault._steady():
            return self.cache.get("copy", self._visible, lambda: self._vault.copied(self._visible))
