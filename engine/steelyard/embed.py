"""From texts to vectors: the protocol, recorded vectors, and filling a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import EmbedderError, shown
from steelyard.filters import Filters, Rule
from steelyard.stores.base import Readable, Space, Store
from steelyard.template import render

Vectors = NDArray[np.float32]
Kind = Literal["entry", "query"]
"""What a text is: some models turn queries into vectors in another way than the texts they should find."""
BATCH = 100
"""Entries embedded and stored together (Soleri's document)."""
LAYER_RECIPES = {"l0": "{l0}", "l1": "{l1}", "l2": "{text}\n{details}"}
"""What is embedded of each layer: abstract, overview, and as the last one the entry's own words in full."""


class Embedder(Protocol):
    """Turns texts into vectors of one model.

    A model that is fitted on a corpus also says which fit it is, as `version`: the vectors of each fit
    have spaces of their own, so that those of an older fit are never compared with a newer query.
    """

    @property
    def model(self) -> str:
        """The name vectors are stored under; vectors of different names are never compared."""

    @property
    def recipe(self) -> str | None:
        """The text template its entry vectors stand for; None when it can embed any text."""

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """float32[len(texts), dim], rows of length 1, or all 0 where a text says nothing to the model.

        Raises EmbedderError when it cannot.
        """

    def warm(self) -> bool:
        """Whether an answer would come at once, without loading a model first."""


class RecordedEmbedder:
    """Vectors that were computed before, looked up by their text."""

    def __init__(self, model: str, recipe: str, vectors: Mapping[str, NDArray[np.floating]]) -> None:
        self._vectors = vectors
        self.model = model
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
        """Always: nothing is loaded."""
        return True


def unit(matrix: Vectors) -> Vectors:
    """Rows scaled to length 1; rows of zeros stay as they are."""
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    scaled: Vectors = (matrix / np.where(length > 0, length, 1.0)).astype(np.float32)
    return scaled


def embed_checked(embedder: Embedder, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
    """What the embedder gives, once it is one row of finite numbers a text; EmbedderError otherwise."""
    vectors = embedder.embed(texts, kind)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
        raise EmbedderError(
            f"{embedder.model} gave an array of shape {vectors.shape} for {len(texts)} texts; "
            "an embedder returns one row a text"
        )
    if not np.isfinite(vectors).all():
        raise EmbedderError(f"{embedder.model} gave a vector with NaN or infinity; check the model")
    return vectors


def space_of(embedder: Embedder, layer: str, recipe: str) -> Space:
    """The space of a layer: the embedder's own recipe wins over the system's for the layer text."""
    own = embedder.recipe or recipe
    version = getattr(embedder, "version", "")
    model = f"{embedder.model}:{version}" if version else embedder.model
    return Space(model, layer, LAYER_RECIPES.get(layer, own))


def layers_of(store: Readable) -> tuple[str, ...]:
    """The layers that a store's entries have beside their text: those written, and then l2.

    Where no entry has an abstract or an overview there are no layers, and the text stands for l2.
    """
    written = [name for name in ("l0", "l1") if not store.covers(Filters.all_of((Rule(name, "absent"),)))]
    return (*written, "l2") if written else ()


def embed_missing(
    store: Store,
    embedder: Embedder,
    space: Space,
    progress: Callable[[Sequence[Sequence[str]]], Iterable[Sequence[str]]] = iter,
) -> int:
    """Embed the entries that have no vector in this space, in batches of 100; returns how many were.

    Each batch is one transaction, so an interrupted run loses at most one batch. Entries whose text
    is empty, or says nothing to the model, stay without a vector: keywords still reach them.

    Raises EmbedderError with the number of entries that were done when the embedder failed.
    """
    ids = store.missing(space)
    done = store.count() - len(ids)
    embedded = 0
    for batch in progress([ids[at : at + BATCH] for at in range(0, len(ids), BATCH)]):
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
        # An entry that somebody changed meanwhile waits for its next turn: this vector stands for its old text.
        now = texts_of(store, space, batch)
        keep = [at for at, id_ in enumerate(texts) if meaningful[at] and now.get(id_) == texts[id_]]
        if keep:
            ids = list(texts)
            store.put_vectors(space, [ids[at] for at in keep], vectors[keep])
    return len(keep)


def texts_of(store: Store, space: Space, ids: Sequence[str]) -> dict[str, str]:
    """The texts to embed of those entries that have one."""
    rendered = {entry.id: render(space.recipe, entry) for entry in store.get(ids)}
    if space.layer not in LAYER_RECIPES:
        return rendered
    return {id_: text for id_, text in rendered.items() if text.strip()}
