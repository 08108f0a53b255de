"""Embedding: the protocol of embedders, recorded vectors, and filling a store with vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Vectors as Vectors
from steelyard.base.errors import EmbedderError, shown
from steelyard.memory.query import Filters, Rule
from steelyard.memory.text import render
from steelyard.stores.base import Readable, Space, Store

Kind = Literal["entry", "query"]
"""The role of a text: some models embed queries and entries differently."""
BATCH = 100
"""The number of entries embedded and stored together (Soleri's document)."""
LAYER_RECIPES = {"l0": "{l0}", "l1": "{l1}", "l2": "{text}\n{details}"}
"""The template of each layer's embedded text: abstract, overview, and the full text."""


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
        self._vectors, self.model = vectors, model
        self.recipe: str | None = recipe

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed; EmbedderError names the first text that was not recorded."""
        rows = [self._vectors.get(text) for text in texts]
        for text, row in zip(texts, rows, strict=True):
            if row is None:
                raise EmbedderError(
                    f"no recorded {self.model} vector for the text {shown(text)}; "
                    "use an embedder that can embed new text, such as lsa"
                )
        return unit(np.array(rows, dtype=np.float32))

    def warm(self) -> bool:
        """Return True: there is nothing to load."""
        return True


def unit(matrix: Vectors) -> Vectors:
    """Scale rows to length 1; rows of zeros stay unchanged."""
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    scaled: Vectors = (matrix / np.where(length > 0, length, 1.0)).astype(np.float32)
    return scaled


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


def layers_of(store: Readable) -> tuple[str, ...]:
    """Return the layers of a store's entries besides their text: l0 and l1 where any entry has them, and l2.

    When no entry has an abstract or an overview there are no layers, and the text is used as l2.
    """
    written = [name for name in ("l0", "l1") if not store.covers(Filters.all_of((Rule(name, "absent"),)))]
    return (*written, "l2") if written else ()


def embed_missing(
    store: Store,
    embedder: Embedder,
    space: Space,
    progress: Callable[[Sequence[Sequence[str]]], Iterable[Sequence[str]]] = iter,
) -> int:
    """Embed the entries that have no vector in this space, in batches of 100; returns how many were embedded.

    Each batch is one transaction, so an interrupted run loses at most one batch. Entries whose text
    is empty, or has no word that the model knows, stay without a vector: only keywords find them.
    `progress` wraps the list of batches, for example to draw a progress bar. Raises EmbedderError when the
    embedder fails, with the number of entries that were done.
    """
    ids = store.missing(space)
    done = store.count() - len(ids)
    embedded = 0
    for batch in progress([ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]):
        try:
            embedded += _embed_batch(store, embedder, space, batch)
        except EmbedderError as error:
            raise EmbedderError(f"{error}; {done} of {store.count()} entries were done") from None
        done += len(batch)
    return embedded


def _embed_batch(store: Store, embedder: Embedder, space: Space, batch: Sequence[str]) -> int:
    texts = texts_of(store, space, batch)
    if not texts:
        return 0
    vectors = embed_checked(embedder, list(texts.values()))
    meaningful = np.any(vectors != 0, axis=1)
    with store.transaction():
        # An entry that was changed meanwhile is skipped, because this vector belongs to its old text.
        now = texts_of(store, space, batch)
        keep = [i for i, (id_, text) in enumerate(texts.items()) if meaningful[i] and now.get(id_) == text]
        if keep:
            store.put_vectors(space, [list(texts)[i] for i in keep], vectors[keep])
    return len(keep)


def texts_of(store: Store, space: Space, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts to embed, for the entries that have one."""
    rendered = {entry.id: render(space.recipe, entry) for entry in store.get(ids)}
    return {id_: text for id_, text in rendered.items() if text.strip()}
