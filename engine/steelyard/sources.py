"""Where the columns of a table come from: the retrievers and scorers of one system over one store."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from steelyard.config import SearchConfig
from steelyard.embed import Embedder, Vectors, embed_checked, space_of
from steelyard.errors import ConfigError, EmbedderError
from steelyard.filters import Filters
from steelyard.query import Query
from steelyard.retrievers import RETRIEVER_KINDS, SCORER_KINDS, Retriever, RetrieverConfig, Scorer
from steelyard.retrievers.kinds import QueryVector
from steelyard.scopes import Scopes
from steelyard.stores.base import Found, Readable, Space
from steelyard.stores.federation import same_copies
from steelyard.systems.base import System
from steelyard.table import Floats


class Sources:
    """Builds each retriever and scorer once, and embeds each query once a model, whoever asks.

    Several embedders serve a federation whose tiers have models of their own: a query is compared in each
    tier with the vectors of that tier's model. Threads may share it.
    """

    def __init__(
        self,
        store: Readable,
        system: System,
        config: SearchConfig,
        embedder: Embedder | Sequence[Embedder] | None,
    ) -> None:
        self.store = store
        self.reading = system.reading
        self.config = config
        self.embedders = _models(embedder)
        self.scopes = Scopes(store, system.reading)
        self._thread = threading.local()
        self._retrievers: dict[str, Retriever] = {}
        self._scorers: dict[str, Scorer] = {}

    # Columns

    def retrieve(
        self, name: str, query: Query, depth: int | None, lists: Mapping[str, Sequence[Found]]
    ) -> Sequence[Found]:
        """What one retriever returns for a query, which carries its clock, after the `lists` before it.

        Of an entry with several copies it returns the one that those lists chose.
        """
        kind, settings = RETRIEVER_KINDS[name], self.settings(name)
        if kind.aside is not None and not self.scopes.any_of(kind.aside):
            return []
        if name not in self._retrievers:
            self._retrievers[name] = kind.build(self, settings)
        scope = self.scopes.searched(query, kind.aside, settings.filters != "none")
        return same_copies(self._retrievers[name].retrieve(replace(query, filters=scope), depth), lists)

    def score(self, name: str, query: Query, ids: Sequence[str]) -> Floats:
        """What one scorer gives to the candidates of a query."""
        if name not in self._scorers:
            self._scorers[name] = SCORER_KINDS[name].build(self)
        return self._scorers[name].score(query, ids)

    def settings(self, name: str) -> RetrieverConfig:
        """The configuration of a retriever; ConfigError when the system has none of this name."""
        settings = self.config.retrievers.get(name)
        if settings is None:
            raise ConfigError(
                f"strategy {self.config.strategy} uses {name!r}, but {self.config.name} has no such retriever; "
                f"it has {', '.join(self.config.retrievers)} (the system plain has them all)"
            )
        return settings

    # What retrievers and scorers are built from, see `steelyard.retrievers.kinds.Parts`

    @property
    def name(self) -> str:
        """``system:profile``."""
        return self.config.name

    def vectors(self, layer: str) -> list[tuple[Space, QueryVector]]:
        """Where the vectors of a layer are, and how a query is embedded for each; EmbedderError without any."""
        if not self.embedders:
            raise EmbedderError("there is no embedder; give the searcher one")
        asked = self.usable() or self.embedders[:1]
        return [(self._layer(embedder, layer), partial(self._embed, embedder)) for embedder in asked]

    def counted(self, query: Query) -> Filters:
        """The entries whose words TF-IDF counts for a query."""
        return self.scopes.counted(query)

    # Models

    def usable(self) -> list[Embedder]:
        """The embedders of whose vectors the store holds some.

        A configuration that names another model than an embedder's was made for other vectors.
        """
        models = {settings.model for settings in self.config.retrievers.values() if settings.model}
        held = {space for space, _ in self.store.spaces()}
        return [e for e in self.embedders if not models - {e.model} and self._space(e, "text") in held]

    def has_vectors(self) -> bool:
        """Whether queries can be embedded and the store holds vectors to compare them with."""
        return bool(self.usable())

    def keywords_only(self) -> list[str]:
        """The tiers that are searched by keywords alone: they hold no vectors of a usable model."""
        return self.store.without_vectors([self._space(each, "text") for each in self.usable()])

    def recipe(self, layer: str) -> str:
        """The text that the vectors of a layer stand for, empty without an embedder."""
        return self._layer(self.embedders[0], layer).recipe if self.embedders else ""

    @property
    def embedding_calls(self) -> int:
        """How many texts this thread has embedded."""
        calls: int = getattr(self._thread, "calls", 0)
        return calls

    def _space(self, embedder: Embedder, layer: str) -> Space:
        return space_of(embedder, layer, self.reading.recipe)

    def _layer(self, embedder: Embedder, layer: str) -> Space:
        """The space of a layer, or that of the text for an l2 that the store has not."""
        own = self._space(embedder, layer)
        held = layer != "l2" or any(own == space for space, _ in self.store.spaces())
        return own if held else self._space(embedder, "text")

    def _embed(self, embedder: Embedder, text: str) -> Vectors:
        """The vector of a query, float32[dim]; kept until the thread asks for another text."""
        last: dict[int, tuple[str, Vectors]] = self._thread.__dict__.setdefault("last", {})
        known = last.get(id(embedder))
        if known is None or known[0] != text:
            self._thread.calls = self.embedding_calls + 1
            known = last[id(embedder)] = (text, embed_checked(embedder, [text], "query")[0])
        return known[1]


def _models(embedder: Embedder | Sequence[Embedder] | None) -> list[Embedder]:
    """The embedders given, each model and fit once."""
    given = [] if embedder is None else list(embedder) if isinstance(embedder, Sequence) else [embedder]
    return list({space_of(each, "text", ""): each for each in reversed(given)}.values())[::-1]
