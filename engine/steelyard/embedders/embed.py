"""Embedding: the protocol, the embedders that a command can name, vectors that were recorded or paid for once."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import apsw
import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Vectors as Vectors
from steelyard.base.errors import ConfigError, EmbedderError, MachineError, nearest, quote
from steelyard.base.extensions import extension, missing_modules, require
from steelyard.base.files import cache_folder
from steelyard.memory.query import Filters, Rule
from steelyard.memory.text import render, template_fields
from steelyard.stores.base import ReadableStore, Space

if TYPE_CHECKING:
    from steelyard.stores.sqlite import Vault

Kind = Literal["entry", "query"]  # the role of a text: some models embed queries and entries differently
BATCH = 100  # the number of entries embedded and stored together (Soleri's document)
LAYER_RECIPES = {"l0": "{l0}", "l1": "{l1}", "l2": "{text}\n{details}"}
"""The template of each layer's embedded text: abstract, overview, and the full text."""
LSA = "lsa"  # the model that is fitted on the vault itself
KINDS = {"minilm-int8": "onnx", "minilm": "minilm", "wordllama": "wordllama", "api": "api"}
"""Kind -> the extra it needs."""
TORCH_FREE = {"minilm": "minilm-int8"}  # A kind that brings PyTorch -> the same model without it
DIMENSIONS = {"minilm-int8": 384, "minilm": 384, "wordllama": 256}
"""How long the vectors of a model of this machine are."""
PROVIDERS = ("voyage", "openai", "cohere", "local")
"""What the name of a model of the kind api begins with, before a slash."""


class Embedder(Protocol):
    """Turns texts into vectors of one model.

    A model that is fitted on a corpus also has a `version`, which identifies the fit: each fit has its own
    spaces, so that entries of an older fit are never compared with a query of a newer one.
    """

    @property
    def model(self) -> str:
        """The name under which vectors are stored; vectors of different models are never compared."""

    @property
    def recipe(self) -> str | None:
        """The text template of recorded entry vectors; None when the embedder accepts any text."""

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """Embed texts to float32[len(texts), dim], with rows of length 1, or 0 for a text without known words.

        Raises EmbedderError when that fails.
        """

    def warm(self) -> bool:
        """Whether it can answer at once, without loading a model first."""


class RecordedEmbedder:
    """Looks up vectors that were computed earlier, by their text."""

    def __init__(self, model: str, recipe: str, vectors: Mapping[str, NDArray[np.floating]]) -> None:
        self.vectors, self.model = vectors, model
        self.recipe: str | None = recipe

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed; EmbedderError names the first text that was not recorded."""
        for text in texts:
            if text not in self.vectors:
                raise EmbedderError(
                    f"no recorded {self.model} vector for the text {quote(text)}; "
                    "use an embedder that can embed new text, such as lsa"
                )
        return unit(np.array([self.vectors[text] for text in texts], dtype=np.float32))

    def warm(self) -> bool:
        return True  # there is nothing to load


def unit(matrix: Vectors) -> Vectors:
    """Scale rows to length 1; rows of zeros stay unchanged."""
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    return (matrix / np.where(length > 0, length, 1.0)).astype(np.float32)


def embed_checked(embedder: Embedder, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
    """Embed texts, and raise EmbedderError unless the result has one row of finite numbers for each text."""
    vectors = embedder.embed(texts, kind)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
        raise EmbedderError(
            f"{embedder.model} returned an array of shape {vectors.shape} for {len(texts)} texts; "
            "an embedder returns one row for each text"
        )
    if not np.isfinite(vectors).all():
        raise EmbedderError(f"{embedder.model} returned a vector with NaN or infinity; check the model")
    return vectors


def space_of(embedder: Embedder, layer: str, recipe: str) -> Space:
    """Return the space of a layer; for the layer text, an embedder's own recipe replaces the system's."""
    version = getattr(embedder, "version", "")
    model = f"{embedder.model}:{version}" if version else embedder.model
    return Space(model, layer, LAYER_RECIPES.get(layer, embedder.recipe or recipe))


def layers_of(store: ReadableStore) -> tuple[str, ...]:
    """Return the layers of a store's entries besides their text: l0 and l1 where any entry has them, and l2.

    When no entry has an abstract or an overview there are no layers, and the text is used as l2.
    """
    written = [name for name in ("l0", "l1") if not store.covers(Filters.all_of((Rule(name, "absent"),)))]
    return (*written, "l2") if written else ()


def embed_missing(
    store: Vault,
    embedder: Embedder,
    *spaces: Space,
    progress: Callable[[Sequence[Sequence[str]]], Iterable[Sequence[str]]] = iter,
) -> int:
    """Embed the entries that have no vector in one of these spaces, in batches of 100; returns how many were made.

    Each batch is one transaction, so an interrupted run loses at most one; a text of several spaces is embedded
    once. Entries whose text is empty, or has no word that the model knows, stay without a vector: only keywords
    find them. `progress` wraps the list of batches. Raises EmbedderError, with how many entries were done.
    """
    lacking = {space: {*store.missing(space)} for space in spaces}
    ids = sorted(set[str]().union(*lacking.values()))
    done, embedded = store.count() - len(ids), 0
    for batch in progress([ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]):
        state, texts = store.at(), texts_of(store, spaces, batch)
        if distinct := list(dict.fromkeys(chain.from_iterable(own.values() for own in texts.values()))):
            try:
                rows = dict(zip(distinct, embed_checked(embedder, distinct), strict=True))
            except EmbedderError as error:
                raise EmbedderError(f"{error}; {done} of {store.count()} entries were done") from None
            with store.transaction():
                # An entry that was changed meanwhile is skipped, because this vector belongs to its old text.
                now = texts if store.at() == state else texts_of(store, spaces, batch)
                for space, own in texts.items():
                    same = {id_ for id_, text in own.items() if now[space].get(id_) == text} & lacking[space]
                    if keep := [id_ for id_ in own if id_ in same and rows[own[id_]].any()]:
                        store.put_vectors(space, keep, np.array([rows[own[id_]] for id_ in keep]))
                    embedded += len(keep)
        done += len(batch)
    return embedded


def texts_of(store: Vault, spaces: Iterable[Space], ids: Sequence[str]) -> dict[Space, dict[str, str]]:
    """Return the texts that each space embeds, for the entries that have one."""
    named = {name for space in spaces for name in template_fields(space.recipe)}
    entries = store.get(ids, sorted("tags" if name == "tag" else name for name in named))
    rendered = {space: {entry.id: render(space.recipe, entry) for entry in entries} for space in spaces}
    return {space: {id_: text for id_, text in own.items() if text.strip()} for space, own in rendered.items()}


def installed() -> list[str]:
    """The kinds that run on this machine and can be imported here; the first is the one to try."""
    return [kind for kind, extra in KINDS.items() if kind != "api" and not missing_modules(extra)]


def indexing_kind(model: str) -> str:
    """The kind of embedder that a model is of, as `index --embedder` names it; empty for one that none names."""
    kind = "api" if model.partition("/")[0] in PROVIDERS else model.partition(":")[0]
    return kind if kind in (*KINDS, LSA) else ""


def missing_model_hint(model: str, vault: str = "", models: Iterable[str] = ()) -> str:
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
    anew = shlex.join(["steelyard", "recommend", data, "--embedder", own])
    return f"; add them: {add}" + (f"; or choose weights for the vectors that it has: {anew}" if own else "")


class UnavailableEmbedder:
    """Stands for an embedder that cannot be asked here and now: `embed` raises EmbedderError with the reason."""

    recipe: str | None = None

    def __init__(self, model: str, reason: str) -> None:
        self.model, self._reason = model, reason

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """Raises EmbedderError."""
        raise EmbedderError(self._reason)

    def warm(self) -> bool:
        return False


def open_embedder(kind: str, environ: Mapping[str, str]) -> CachedEmbedder:
    """An embedder by kind, behind the cache on disk.

    Raises ConfigError for an unknown kind or incomplete settings, MachineError for a missing extra.
    """
    if kind not in KINDS:
        raise ConfigError(f"unknown embedder {quote(kind)}{nearest(kind, KINDS)}")
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
        raise ConfigError(f"this Steelyard does not know the vault's embedder {quote(kind)}; upgrade Steelyard")
    known = settings if isinstance(settings, Mapping) else {}  # whatever JSON the file held
    named = kind if kind != "api" else f"{known.get('provider', '')}/{known.get('model', '')}"
    try:
        return cast(Embedder, extension("models").restored(kind, known, environ))
    except (ConfigError, MachineError) as error:
        return UnavailableEmbedder(named, str(error))


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
        return self.inner.warm()

    @cached_property
    def _db(self) -> apsw.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.touch(mode=0o600)  # vectors say something about texts: for the owner's eyes
        db = apsw.Connection(str(self.path))
        db.set_busy_timeout(30_000)
        db.execute("PRAGMA journal_mode = wal; PRAGMA synchronous = normal")
        db.execute(
            "CREATE TABLE IF NOT EXISTS vectors(model TEXT NOT NULL, kind TEXT NOT NULL, text BLOB NOT NULL, "
            "vector BLOB NOT NULL, PRIMARY KEY(model, kind, text)) WITHOUT ROWID, STRICT"
        )
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
                f"cannot use the embedding cache {quote(str(self.path))}: {why}; free space, check permissions, "
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
        raise EmbedderError(f"{error}; finished vectors are kept, so run the same command again") from None
