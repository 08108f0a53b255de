"""Vectors that were paid for once, kept on disk: an SQLite file keyed by model, kind and text hash."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import apsw
import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import EmbedderError, MachineError, shown
from steelyard.embedders.embed import BATCH, Embedder, Kind, Vectors, embed_checked

TABLE = """
CREATE TABLE IF NOT EXISTS vectors(
  model TEXT NOT NULL, kind TEXT NOT NULL, text BLOB NOT NULL, vector BLOB NOT NULL,
  PRIMARY KEY(model, kind, text)
) WITHOUT ROWID, STRICT
"""


class CachedEmbedder:
    """An embedder that asks another one only for texts it has no vector of.

    The key is `identity` (what must be equal for vectors to be the same: model, address, dimension; the
    embedder's own, or its model name), the kind, the embedder's recipe, and the SHA-256 of the text. Texts
    themselves are not stored. Every 100 new vectors are one transaction, so an interrupted run keeps what
    it has. Processes and threads may share the file.
    """

    remembers = True
    """Texts can be embedded together: one that is asked for later, alone, has the same vector."""

    def __init__(self, inner: Embedder, path: str | Path, identity: str = "") -> None:
        self.inner, self.path = inner, Path(path)
        self.model, self.recipe = inner.model, inner.recipe
        self._identity = f"{identity or inner.model} {inner.recipe or ''}".rstrip()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed. Raises MachineError when the file cannot be used."""
        if not texts:
            return self.inner.embed(texts, kind)
        key = {text: sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts}
        vectors = self._load(kind, list(key.values()))
        missing = [text for text, digest in key.items() if digest not in vectors]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            new = {key[t]: row for t, row in zip(batch, embed_checked(self.inner, batch, kind), strict=True)}
            self._save(kind, new)
            vectors |= new
        rows = [vectors[key[text]] for text in texts]
        sizes = sorted({len(row) for row in rows})
        if len(sizes) > 1:
            raise EmbedderError(
                f"{self.path} holds vectors of {self.model} with dimensions {sizes}: the model behind this name "
                "changed; delete the file, and index the vaults made with it with --rebuild"
            )
        return np.array(rows, dtype=np.float32)

    def warm(self) -> bool:
        """See Embedder.warm."""
        return self.inner.warm()

    @cached_property
    def _db(self) -> apsw.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.touch(mode=0o600)  # vectors say something about texts: for the owner's eyes
        db = apsw.Connection(str(self.path))
        db.set_busy_timeout(30_000)
        db.execute("PRAGMA journal_mode = wal; PRAGMA synchronous = normal")
        db.execute(TABLE)
        return db

    def _load(self, kind: Kind, digests: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """The stored vectors of these texts; damaged ones count as absent."""
        sql = "SELECT vector FROM vectors WHERE model = ? AND kind = ? AND text = ?"
        vectors = {}
        with self._used() as db:
            for digest in digests:
                row = db.execute(sql, (self._identity, kind, digest)).fetchone()
                vector = np.frombuffer(row[0] if row and len(row[0]) % 4 == 0 else b"", dtype=np.float32)
                if len(vector) and np.isfinite(vector).all():
                    vectors[digest] = vector
        return vectors

    def _save(self, kind: Kind, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        rows = [
            (self._identity, kind, digest, np.ascontiguousarray(vector, np.float32).tobytes())
            for digest, vector in vectors.items()
        ]
        with self._used() as db, db:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES(?, ?, ?, ?)", rows)

    @contextmanager
    def _used(self) -> Iterator[apsw.Connection]:
        """The file, for one thread at a time."""
        try:
            with self._lock:
                yield self._db
        except (apsw.Error, OSError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise MachineError(
                f"cannot use the embedding cache {shown(str(self.path))}: {why}; free space, check permissions, "
                "delete the file if it is damaged, or set STEELYARD_CACHE to another folder"
            ) from None


@contextmanager
def resumable(embedder: Embedder | None) -> Iterator[None]:
    """Add to an EmbedderError how to continue, when the embedder caches its vectors on disk."""
    try:
        yield
    except EmbedderError as error:
        if not isinstance(embedder, CachedEmbedder):
            raise
        raise EmbedderError(f"{error}; run the same command again to go on: what was embedded is kept") from None
