"""A vault whose entries, vectors and models lie in PostgreSQL.

What this role may see is copied into a vault file like any other, and searched there: one code path, the same
bits, and no statistic of what is hidden. The copy follows the database: each state has a revision, and each
entry that at which it last changed. Writes change the copy, and what they changed goes to the database in one
transaction, which both keep or neither.

The file lies in the cache folder, for this process alone. It goes when the store is closed or the process ends;
what a process left that was killed is removed by the next one.
"""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import VaultError
from steelyard.base.files import STRICT_JSON, cache_folder, draft
from steelyard.extensions.postgres.hnsw import HnswSearch
from steelyard.extensions.postgres.schema import (
    ENTRIES_IN,
    PUT,
    TYPES,
    UPSERT,
    VECTORS_IN,
    Written,
    batches,
    copied,
    from_binary,
    received,
    received_value,
    sent,
    sent_ids,
    to_binary,
)
from steelyard.extensions.postgres.server import Connection, Server
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import KeywordIndex, Space
from steelyard.stores.sqlite.guard import TEXT, GuardedConnection
from steelyard.stores.sqlite.schema import NAMES, select
from steelyard.stores.sqlite.schema import UPSERT as UPSERT_HERE

LOOK = 0.1
"""Seconds until the database is asked again whether it has changed: so late is what others wrote seen at most."""
NOTHING = -1
"""The revision of a copy that is to be made anew."""


class PostgresVault(HnswSearch):
    """See Vault. Threads may share it. The password is not in its address: libpq has it of PGPASSWORD or .pgpass.

    What others write is seen within `LOOK` seconds, and never inside a snapshot. What a vault file stores of
    words and keyword indexes, only the copy holds. `hnsw` is as in `search_by`. See `Server` for errors.
    """

    _ready = False

    def __init__(self, address: str, *, create: bool = False, hnsw: int | None = None) -> None:
        held = ExitStack()
        self._release = weakref.finalize(self, held.close)  # at the end of the process, too
        self._server = Server(address, create)
        held.callback(self._server.close)
        self.restricted = self._server.restricted
        self._turn = threading.RLock()
        self._at, self.models_revision, self._look_at = NOTHING, NOTHING, 0.0
        self._space_numbers: dict[Space, int] = {}
        folder = held.enter_context(draft(cache_folder(os.environ) / "postgres", folder=True))
        super().__init__(folder / "copy.db", create=True)
        self.path = self._server.name
        self._ready = True
        try:
            self._db.run("PRAGMA journal_mode = memory")  # or all would be written twice, to the log first
            self.search_by(hnsw)
            self.refresh()
            self._db.run("PRAGMA journal_mode = wal")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """See Vault.close."""
        super().close()
        self._release()

    def _connect(self, create: bool) -> GuardedConnection:
        db = super()._connect(create)
        db.run("PRAGMA synchronous = off")  # what a crash of the machine destroys is copied again
        return db

    # Reading

    def at(self) -> tuple[int, int]:
        """See Readable.at: that of the copy."""
        if self._ready and time.monotonic() >= self._look_at and not self._db.in_transaction:
            self.refresh(wait=False)
        return super().at()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See Vault.snapshot."""
        self.revision()
        with super().snapshot():
            yield

    def refresh(self, *, wait: bool = True) -> None:
        """Bring the copy up to date; without `wait` only if nobody else is doing so."""
        if not self._turn.acquire(blocking=wait):
            return
        try:
            with self._server.transaction(write=False) as there, self._copying():
                self._pull(there)
            self._look_at = time.monotonic() + LOOK
        finally:
            self._turn.release()

    @contextmanager
    def _copying(self) -> Iterator[None]:
        """What is written inside is what the database holds; it is forgotten when that fails."""
        revision, models, numbers = self._at, self.models_revision, dict(self._space_numbers)
        self._thread.copying = True
        try:
            with super().transaction():
                yield
        except BaseException:
            self._at, self.models_revision, self._space_numbers = revision, models, numbers
            raise
        finally:
            self._thread.copying = False

    def _pull(self, there: Connection) -> None:
        """Bring the copy to the state that a transaction sees."""
        [(revision, models)] = there.execute("SELECT revision, models FROM steelyard.meta").fetchall()
        if revision == self._at:
            return
        new: set[str] = set()
        if self._at != NOTHING:
            seen, held = (
                {received(id_) for (id_,) in there.execute("SELECT id FROM steelyard.entries")},
                self._ids(),
            )
            super().delete(sorted(held - seen))
            new = seen - held  # also what this role did not see before
        changed = self._pull_entries(there, new)
        self._pull_spaces(there, changed)
        if models != self.models_revision:
            self._pull_models(there)
        self._at, self.models_revision = revision, models

    def _ids(self) -> set[str]:
        return {id_ for (id_,) in self._db.run("SELECT id FROM entries", (), (TEXT,))}

    def _pull_entries(self, there: Connection, new: Iterable[str]) -> list[str]:
        """Copy the entries that changed since, and new ones; return their ids."""
        changed: list[str] = []
        asked = f"SELECT {NAMES} FROM steelyard.entries WHERE revision > {self._at:d} OR id = ANY ({{}})"
        with there.cursor().copy(copied(asked, new)) as copy:
            copy.set_types(TYPES)
            for rows in batches(tuple(map(received_value, row)) for row in copy.rows()):
                changed += [row[0] for row in rows]
                if self._at == NOTHING:
                    self.add_rows(rows)
                else:
                    self._forget_vectors([row[0] for row in rows])
                    super()._change(UPSERT_HERE, rows)
        return changed

    def _forget_vectors(self, ids: Sequence[str]) -> None:
        for table, _, _ in self._spaces():
            sql = f"DELETE FROM {table} WHERE rowid = (SELECT rowid FROM entries WHERE id = ?)"
            self._db.many(sql, ((id_,) for id_ in ids))

    def _pull_spaces(self, there: Connection, changed: Sequence[str]) -> None:
        """Copy the vectors of the entries that changed, and all of the spaces that are new."""
        sql = "SELECT space, model, layer, recipe, dim FROM steelyard.spaces ORDER BY space"
        spaces = {Space(*map(received, names)): (number, dim) for number, *names, dim in there.execute(sql)}
        for space, number in list(self._space_numbers.items()):
            if spaces.get(space, (0, 0))[0] != number:
                super().drop_space(space)
                del self._space_numbers[space]
        for space, (number, dim) in spaces.items():
            known = space in self._space_numbers
            if known and not changed:
                continue
            self._space_numbers[space] = number
            if not known:
                self._ensure_space(space, dim)
            vector = f"{self._server.vector}.vector_send(embedding)"
            asked = f"SELECT id, {vector} FROM steelyard.vectors WHERE space = {number:d}"
            asked += " AND id = ANY ({})" if known else ""
            with there.cursor().copy(copied(asked, changed)) as copy:
                copy.set_types(["text", "bytea"])
                for rows in batches(copy.rows()):
                    ids = [received(id_) for id_, _ in rows]
                    super().put_vectors(space, ids, from_binary([blob for _, blob in rows], dim))

    def _pull_models(self, there: Connection) -> None:
        super().drop_models()
        rows = there.execute("SELECT name, kind, settings FROM steelyard.models ORDER BY place").fetchall()
        for name, kind, settings in rows:
            arrays = there.execute("SELECT name, data FROM steelyard.model_arrays WHERE model = %s", (name,))
            try:
                read = STRICT_JSON.decode(received(settings))
            except (ValueError, RecursionError):
                raise VaultError(
                    f"{self.path}: the settings of a model cannot be read; run steelyard index VAULT --rebuild"
                ) from None
            super().save_model(received(name), kind, read, {received(key): data for key, data in arrays})

    # Writing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See Vault.transaction: the copy's and the database's, committed together or not at all."""
        if not self._ready or getattr(self._thread, "copying", False):
            with super().transaction():
                yield
            return
        if self._changes is not None:
            yield
            return
        if self._db.in_transaction:
            raise VaultError(f"{self.path}: a snapshot is read-only; write after it ends")
        with self._turn, self._copying(), self._server.transaction(write=True) as there:
            self._pull(there)
            changes = self._thread.changes = Written()
            self._thread.copying = False
            try:
                yield
                if changes != Written():
                    self._push(there, changes)
            finally:
                self._thread.changes = None

    @property
    def _changes(self) -> Written | None:
        changes: Written | None = getattr(self._thread, "changes", None)
        return changes

    def _changing(self, id_: str, keep_vectors: bool) -> None:
        changes = self._changes
        if changes is not None:
            changes.entries.add(id_)
            if not keep_vectors:
                changes.stale.add(id_)
                for put in changes.vectors.values():
                    put.pop(id_, None)

    def put_vectors(self, space: Space, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """See Vault.put_vectors."""
        with self.transaction():
            super().put_vectors(space, ids, vectors)
            put = self._thread.changes.vectors.setdefault(space, {})
            put.update(zip(ids, map(to_binary, vectors), strict=True))

    def drop_space(self, space: Space) -> None:
        """See Vault.drop_space."""
        with self.transaction():
            super().drop_space(space)
            self._thread.changes.dropped.append(space)
            self._thread.changes.vectors.pop(space, None)

    def save_model(
        self, name: str, kind: str, settings: Mapping[str, object], arrays: Mapping[str, bytes]
    ) -> None:
        """See Vault.save_model."""
        with self.transaction():
            super().save_model(name, kind, settings, arrays)
            self._thread.changes.models = True

    def drop_models(self) -> None:
        """See Vault.drop_models."""
        with self.transaction():
            super().drop_models()
            self._thread.changes.models = True

    def ensure_words(self, analyses: Iterable[object]) -> None:
        """Nothing: the words of a copy are counted in memory."""

    def ensure_index(self, index: KeywordIndex) -> None:
        """See Vault.ensure_index: of the copy alone."""
        if not self._has(index):
            with self._turn, self._copying():
                if not self._has(index):
                    self._create_index(index)

    def _push(self, there: Connection, changes: Written) -> None:
        """Write what changed to the database, at a new revision."""
        [(revision,)] = there.execute(
            "UPDATE steelyard.meta SET revision = revision + 1 RETURNING revision"
        ).fetchall()
        alive = self.within(sorted(changes.entries), EVERYTHING)
        gone = changes.entries - alive
        there.execute("DELETE FROM steelyard.entries WHERE id = ANY (%s)", (sent_ids(gone),))
        self._push_entries(there, alive, revision)
        there.execute("DELETE FROM steelyard.vectors WHERE id = ANY (%s)", (sent_ids(changes.stale & alive),))
        for space in changes.dropped:
            names = tuple(map(sent, (space.model, space.layer, space.recipe)))
            there.execute("DELETE FROM steelyard.spaces WHERE (model, layer, recipe) = (%s, %s, %s)", names)
            self._space_numbers.pop(space, None)
        for space, put in changes.vectors.items():
            self._push_vectors(there, space, put, revision)
        if changes.models:
            self._push_models(there, revision)
        self._at = revision

    def _push_entries(self, there: Connection, ids: Iterable[str], revision: int) -> None:
        there.execute(ENTRIES_IN)
        rows = self._db.each(f"{select()} JOIN json_each(?) j ON j.value = e.id", (json.dumps(sorted(ids)),))
        with there.cursor().copy("COPY pg_temp.steelyard_entries FROM STDIN (FORMAT binary)") as copy:
            for row in rows:
                copy.write_row([sent(value) if isinstance(value, str) else value for value in row])
        there.execute(UPSERT.encode(), (revision,))

    def _push_vectors(self, there: Connection, space: Space, vectors: Mapping[str, bytes], revision: int) -> None:
        known = sorted(self.within(list(vectors), EVERYTHING))
        names = tuple(map(sent, (space.model, space.layer, space.recipe)))
        dim = dict(self.spaces())[space]
        there.execute(
            "INSERT INTO steelyard.spaces(model, layer, recipe, dim) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT DO NOTHING",
            (*names, dim),
        )
        [(number,)] = there.execute(
            "SELECT space FROM steelyard.spaces WHERE (model, layer, recipe) = (%s, %s, %s)", names
        ).fetchall()
        self._space_numbers[space] = number
        there.execute(VECTORS_IN.replace("{vector}", f"{self._server.vector}.vector").encode())
        there.execute("DELETE FROM pg_temp.steelyard_vectors")
        with there.cursor().copy("COPY pg_temp.steelyard_vectors FROM STDIN (FORMAT binary)") as copy:
            for id_ in known:
                copy.write_row((sent(id_), vectors[id_]))
        there.execute(PUT.encode(), (number,))
        there.execute(
            "UPDATE steelyard.entries SET revision = %s WHERE id = ANY (%s)", (revision, sent_ids(known))
        )

    def _push_models(self, there: Connection, revision: int) -> None:
        there.execute("DELETE FROM steelyard.models")
        for place, name in enumerate(self.models()):
            stored = self.load_model(name)
            if stored is None:
                continue
            kind, settings, arrays = stored
            text = sent(json.dumps(settings, sort_keys=True))
            there.execute("INSERT INTO steelyard.models VALUES (%s, %s, %s, %s)", (place, sent(name), kind, text))
            for key, data in arrays.items():
                there.execute(
                    "INSERT INTO steelyard.model_arrays VALUES (%s, %s, %s)", (sent(name), sent(key), data)
                )
        there.execute("UPDATE steelyard.meta SET models = %s", (revision,))
        self.models_revision = revision
