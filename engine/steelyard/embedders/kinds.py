"""The embedders a command can name, and how a vault remembers the one it was indexed with."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import apsw
import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import ConfigError, EmbedderError, MachineError, nearest, shown
from steelyard.base.extensions import extension, missing_modules, require
from steelyard.base.files import cache_folder
from steelyard.embedders.embed import BATCH, Embedder, Kind, Vectors, embed_checked
from steelyard.embedders.lsa import MODEL as LSA

KINDS = {"minilm-int8": "onnx", "minilm": "minilm", "wordllama": "wordllama", "api": "api"}
"""Kind -> the extra it needs."""
LIGHT = {"minilm": "minilm-int8"}
"""A kind that brings PyTorch -> the same model without it."""
DIMENSIONS = {"minilm-int8": 384, "minilm": 384, "wordllama": 256}
"""How long the vectors of a model of this machine are."""
PROVIDERS = ("voyage", "openai", "cohere", "local")
"""What the name of a model of the kind api begins with, before a slash."""


def installed() -> list[str]:
    """The kinds that run on this machine and can be imported here; the first is the one to try."""
    return [kind for kind, extra in KINDS.items() if kind != "api" and not missing_modules(extra)]


def indexing_kind(model: str) -> str:
    """The kind of embedder that a model is of, as `index --embedder` names it; empty for one that none names."""
    kind = "api" if model.partition("/")[0] in PROVIDERS else model.partition(":")[0]
    return kind if kind in (*KINDS, LSA) else ""


def adding(model: str, vault: str = "", models: Iterable[str] = ()) -> str:
    """The remedies for a vault without the vectors of a model: add them, or choose weights for `models`, its own.

    The other options that these weights were chosen with are not known here. `vault` is its file, if it is one;
    the data set is the folder of that name beside it, as `recommend` names the vault of a folder. Empty for a
    model that no kind names.
    """
    kind, file = indexing_kind(model), Path(vault)
    if not kind:
        return ""
    known = bool(vault) and file.is_file()
    data = str(file.with_suffix("")) if known and file.with_suffix("").is_dir() else "DATASET"
    add = shlex.join(["steelyard", "index", data, vault if known else "VAULT", "--embedder", kind])
    own = min(filter(None, map(indexing_kind, models)), default="")
    anew = f", or run the recommend that wrote these weights again, with --embedder {own}, whose vectors it has"
    return f"; add them with {add}{anew if own else ''}"


class UnavailableEmbedder:
    """Stands for an embedder that cannot be asked here and now: `embed` raises EmbedderError with the reason."""

    recipe: str | None = None

    def __init__(self, model: str, reason: str) -> None:
        self.model, self._reason = model, reason

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """Raises EmbedderError."""
        raise EmbedderError(self._reason)

    def warm(self) -> bool:
        """Never."""
        return False


def open_embedder(kind: str, environ: Mapping[str, str]) -> CachedEmbedder:
    """An embedder by kind, behind the cache on disk.

    Raises ConfigError for an unknown kind or incomplete settings, MachineError for a missing extra.
    """
    if kind not in KINDS:
        raise ConfigError(f"unknown embedder {shown(kind)}{nearest(kind, KINDS)}")
    require(KINDS[kind], f"the embedder {kind}")
    inner = extension("models").opened(kind, environ)
    return CachedEmbedder(inner, cache_folder(environ) / "vectors.db", inner.identity)


def remembered(embedder: CachedEmbedder) -> tuple[str, dict[str, object]]:
    """Kind and settings by which `restore` makes the embedder again; never the key."""
    settings = getattr(embedder.inner, "settings", None)
    return (embedder.inner.model, {}) if settings is None else ("api", settings.to_json())


def restore(kind: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> Embedder:
    """The embedder that a vault remembers, for live search: without the cache, and less patient.

    What cannot be asked becomes an UnavailableEmbedder: search then answers by keywords. Raises ConfigError for a
    kind this version does not know.
    """
    if kind not in KINDS:
        raise ConfigError(
            f"the vault was indexed with the embedder {shown(kind)}, unknown here; upgrade Steelyard"
        )
    known = settings if isinstance(settings, Mapping) else {}  # whatever JSON the file held
    named = kind if kind != "api" else f"{known.get('provider', '')}/{known.get('model', '')}"
    try:
        return cast(Embedder, extension("models").restored(kind, known, environ))
    except (ConfigError, MachineError) as error:
        return UnavailableEmbedder(named, str(error))


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
        sql = "SELECT vector FROM vectors WHERE model = ? AND kind = ? AND text = ?"
        vectors: dict[str, NDArray[np.float32]] = {}
        with self._used() as db:
            for text, digest in key.items():
                row = db.execute(sql, (self._identity, kind, digest)).fetchone()
                vector = np.frombuffer(row[0] if row and len(row[0]) % 4 == 0 else b"", dtype=np.float32)
                if len(vector) and np.isfinite(vector).all():  # damaged ones count as absent
                    vectors[text] = vector
        missing = [text for text in key if text not in vectors]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            new = dict(zip(batch, embed_checked(self.inner, batch, kind).astype(np.float32), strict=True))
            rows = [(self._identity, kind, key[text], row.tobytes()) for text, row in new.items()]
            with self._used() as db, db:
                db.executemany("INSERT OR REPLACE INTO vectors VALUES(?, ?, ?, ?)", rows)
            vectors |= new
        sizes = sorted({len(row) for row in vectors.values()})
        if len(sizes) > 1:
            raise EmbedderError(
                f"{self.path} holds vectors of {self.model} with dimensions {sizes}: the model behind this name "
                "changed; delete the file, and index the vaults made with it with --rebuild"
            )
        return np.array([vectors[text] for text in texts], dtype=np.float32)

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
