"""A data set indexed in a store, with the embedder that goes with it: what every command starts from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.config import SearchConfig
from steelyard.embed import Embedder, RecordedEmbedder, embed_missing, space_of
from steelyard.embedders import KINDS, CachedEmbedder, open_embedder
from steelyard.errors import ConfigError, EmbedderError, shown
from steelyard.lsa import LsaEmbedder
from steelyard.query import Query
from steelyard.search import Searcher
from steelyard.stores.sqlite import Vault
from steelyard.systems import System, keyword_indexes
from steelyard.table import EMBEDDING
from steelyard.template import render
from steelyard.text import content
from steelyard_eval.datasets import Dataset
from steelyard_eval.progress import bar

EMBEDDERS = ("auto", "recorded", "lsa", "none", *KINDS)
RESUME = "run the same command again to go on: what was embedded is kept"


@contextmanager
def resumable(embedder: Embedder | None) -> Iterator[None]:
    """Adds to an EmbedderError how to go on, where the embedder keeps on disk what it embedded."""
    try:
        yield
    except EmbedderError as error:
        if not isinstance(embedder, CachedEmbedder):
            raise
        raise EmbedderError(f"{error}; {RESUME}") from None


@dataclass(frozen=True)
class Workspace:
    """A data set, the store it is indexed in, and the embedder of its queries (None: keywords only)."""

    dataset: Dataset
    store: Vault
    embedder: Embedder | None

    @classmethod
    def open(cls, dataset: Dataset, embedder: str = "auto", vault: Vault | None = None) -> Workspace:
        """Index the data set, in memory unless a vault is given.

        `embedder` is recorded (the vectors of the data set), lsa (fitted on its texts), none, one of
        `steelyard.embedders.KINDS`, or auto: recorded where there are recorded vectors, else lsa. Vectors
        are added by `index_for`.
        """
        store = Vault(":memory:") if vault is None else vault
        store.upsert(dataset.entries)
        return cls(dataset, store, choose_embedder(dataset, embedder))

    @property
    def model(self) -> str:
        """Name of the vectors' model, empty without an embedder."""
        return self.embedder.model if self.embedder else ""

    def index_for(self, systems: Iterable[System], signals: Iterable[str]) -> None:
        """Build the keyword indexes of the systems and the vectors that the signals need."""
        wanted = set(signals)
        layers = {"text" if name in ("vector", "cosine", "l2") else name for name in wanted & EMBEDDING}
        systems = list(systems)
        for index in keyword_indexes(systems):
            self.store.ensure_index(index)
        for system in systems:
            if self.embedder is not None:
                for layer in sorted(layers):
                    space = space_of(self.embedder, layer, system.recipe)
                    embed_missing(self.store, self.embedder, space, bar(f"embedding {layer}"))

    def searcher(self, config: SearchConfig) -> Searcher:
        """A searcher whose clock is the data set's as-of date."""
        return Searcher(self.store, config, self.embedder, clock=lambda: self.dataset.as_of)

    def usable(self, names: Iterable[str]) -> list[str]:
        """Those of the signals that this data set can feed: vectors need an embedder, layers their texts."""
        embeds = self.embedder is not None
        return [
            n for n in names if n not in EMBEDDING or (embeds and (n not in ("l0", "l1") or self._has_layer(n)))
        ]

    def _has_layer(self, layer: str) -> bool:
        if isinstance(self.embedder, RecordedEmbedder):
            return (self.embedder.model, layer) in self.dataset.vectors
        return any(getattr(entry, layer) for entry in self.dataset.entries)


def choose_embedder(dataset: Dataset, kind: str) -> Embedder | None:
    """The embedder of that kind for a data set.

    Raises ConfigError when it has no recorded vectors to offer, or the environment names no provider
    that can be asked; MachineError for a missing extra.
    """
    if kind not in EMBEDDERS:
        raise ConfigError(f"unknown embedder {shown(kind)}; valid: {', '.join(EMBEDDERS)}")
    if kind in KINDS:
        return open_embedder(kind, os.environ)
    if kind == "none":
        return None
    models = sorted(model for model in dataset.query_vectors if (model, "text") in dataset.vectors)
    if kind == "recorded" and not models:
        raise ConfigError(
            f"{dataset.name} has no recorded vectors of corpus and queries; use the embedder lsa, which needs none"
        )
    if models and kind != "lsa":
        return recorded(dataset, models[0])
    try:
        return LsaEmbedder.fit([content(entry) for entry in dataset.entries])
    except EmbedderError:
        if kind == "lsa":
            raise
        return None  # auto: too few texts to fit on, keywords are what there is


def recorded(dataset: Dataset, model: str) -> RecordedEmbedder:
    """The recorded vectors of one model, looked up by text: entries under the recipe, layers, queries."""
    vectors: dict[str, NDArray[np.float16]] = {}
    for query, row in zip(dataset.queries, dataset.query_vectors[model], strict=True):
        vectors.setdefault(query.text, row)
    for layer in ("l0", "l1"):
        if (model, layer) in dataset.vectors:
            for entry, row in zip(dataset.entries, dataset.vectors[model, layer], strict=True):
                vectors.setdefault(getattr(entry, layer), row)
    for entry, row in zip(dataset.entries, dataset.vectors[model, "text"], strict=True):
        vectors.setdefault(render(dataset.recipe, entry), row)
    return RecordedEmbedder(model, dataset.recipe, vectors)


def judged(dataset: Dataset, queries: Iterable[Query]) -> tuple[Query, ...]:
    """Those of the queries that have judgments; the others cannot be scored and are left out."""
    return tuple(query for query in queries if query.id in dataset.qrels)
