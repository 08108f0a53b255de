"""Where the columns of a table come from: the retrievers and scorers of one system over one store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from steelyard.config import RetrieverConfig, SearchConfig
from steelyard.embed import Embedder, Vectors, embed_checked, space_of
from steelyard.errors import ConfigError, EmbedderError, nearest, shown
from steelyard.filters import EVERYTHING, Filters, Rule, valid_at
from steelyard.query import Query
from steelyard.retrievers import Retriever, Scorer
from steelyard.retrievers.bm25 import Bm25Retriever
from steelyard.retrievers.cache import ScopeCache
from steelyard.retrievers.fts import FtsRetriever
from steelyard.retrievers.tfidf import TfidfScorer
from steelyard.retrievers.tsquery import LexicalScorer, TsRetriever
from steelyard.retrievers.vector import (
    CosineScorer,
    EverySpace,
    LayerRetriever,
    SumOfSpaces,
    VectorRetriever,
)
from steelyard.stores.base import Found, Readable, Space, TextSearch
from steelyard.systems.base import System
from steelyard.table import ASIDE, KEYWORD, LAYERS, Floats

_log = logging.getLogger(__name__)
MEMORIES = Filters.of({"kind": "memory"})
UNLIMITED = Filters.all_of((Rule("valid_from", "absent"),), (Rule("valid_until", "absent"),))


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
        visible: Filters = EVERYTHING,
    ) -> None:
        self.store = store
        self.system = system
        self.config = config
        self.embedders = _models(embedder)
        self.visible = visible
        self._thread = threading.local()
        self._retrievers: dict[str, Retriever] = {}
        self._scorers: dict[str, Scorer] = {}
        self._holds = ScopeCache(store, store.count)
        self._covers = ScopeCache(store, store.covers)

    def retrieve(self, name: str, query: Query, depth: int | None) -> list[Found]:
        """What one retriever returns for a query, which carries its clock."""
        if name in ASIDE and not self._holds(MEMORIES):
            return []
        if name not in self._retrievers:
            self._retrievers[name] = self._retriever(name, self.settings(name))
        return self._retrievers[name].retrieve(replace(query, filters=self._scope(name, query)), depth)

    def score(self, name: str, query: Query, ids: Sequence[str]) -> Floats:
        """What one scorer gives to the candidates of a query."""
        if name not in self._scorers:
            self._scorers[name] = self._scorer(name)
        return self._scorers[name].score(query, ids)

    def _scope(self, name: str, query: Query) -> Filters:
        """Which entries a retriever may return: of the system's corpus, or of the memories, what the caller may
        see, what the query asks, what is valid.
        """
        inside = self.visible & (MEMORIES if name in ASIDE else self._corpus())
        return inside if self.settings(name).filters == "none" else inside & self._asked(query)

    def scope(self, query: Query) -> Filters:
        """The entries that may answer a query, which carries its clock."""
        return self.visible & self._corpus() & self._asked(query)

    def _asked(self, query: Query) -> Filters:
        return query.filters & (self._valid(query) if self.system.valid_only else EVERYTHING)

    def _corpus(self) -> Filters:
        """The system's corpus; everything where that is the same, because a scope takes time."""
        corpus = self.system.corpus
        return EVERYTHING if self._covers(corpus) else corpus

    def _valid(self, query: Query) -> Filters:
        """What is valid at the query's clock; everything where no entry has a window."""
        return EVERYTHING if self._covers(UNLIMITED) else valid_at(query.asked_at or 0.0)

    def settings(self, name: str) -> RetrieverConfig:
        """The configuration of a retriever; ConfigError when the system has none of this name."""
        settings = self.config.retrievers.get(name)
        if settings is None:
            raise ConfigError(
                f"strategy {self.config.strategy} uses {name!r}, but {self.config.name} has no such retriever; "
                f"it has {', '.join(self.config.retrievers)} (the system plain has them all)"
            )
        return settings

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

    def _space(self, embedder: Embedder, layer: str) -> Space:
        return space_of(embedder, layer, self.system.recipe)

    def _layer(self, embedder: Embedder, name: str) -> Space:
        """Where a signal reads: its own space, or that of the text for an l2 that the store has not."""
        own = self._space(embedder, name)
        held = name != "l2" or any(own == space for space, _ in self.store.spaces())
        return own if held else self._space(embedder, "text")

    @property
    def embedding_calls(self) -> int:
        """How many texts this thread has embedded."""
        calls: int = getattr(self._thread, "calls", 0)
        return calls

    def embed(self, embedder: Embedder, text: str) -> Vectors:
        """The vector of a query, float32[dim]; kept until the thread asks for another text."""
        last: dict[int, tuple[str, Vectors]] = self._thread.__dict__.setdefault("last", {})
        known = last.get(id(embedder))
        if known is None or known[0] != text:
            self._thread.calls = self.embedding_calls + 1
            known = last[id(embedder)] = (text, embed_checked(embedder, [text], "query")[0])
        return known[1]

    def _retriever(self, name: str, settings: RetrieverConfig) -> Retriever:
        if name in KEYWORD:
            return self._keywords(name, settings)
        if name == "bm25":
            return Bm25Retriever(self.store)
        first = settings.filters != "after_cut"
        made = [self._by_meaning(name, each, first, settings.similarity) for each in self._asked_of()]
        return made[0] if len(made) == 1 else EverySpace(self.store, made, first)

    def _by_meaning(self, name: str, embedder: Embedder, first: bool, similarity: str) -> Retriever:
        embed, space = partial(self.embed, embedder), self._layer(embedder, name if name in LAYERS else "text")
        if name not in LAYERS:
            return VectorRetriever(self.store, space, embed, first, similarity)
        if space.layer != name:
            _log.warning("there are no vectors of the layer %s, so those of the text stand for it", name)
        return LayerRetriever(self.store, space, embed)

    def _asked_of(self) -> list[Embedder]:
        """The embedders that a query is given to; EmbedderError where there is none."""
        if not self.embedders:
            raise EmbedderError("there is no embedder; give the searcher one")
        return self.usable() or self.embedders[:1]

    def _keywords(self, name: str, settings: RetrieverConfig) -> Retriever:
        index = self.system.index
        if isinstance(index, TextSearch):
            self._check_fields(settings, ())
            return TsRetriever(self.store, index.text)
        self._check_fields(settings, index.fields)
        weights = [settings.field_weights.get(field, 1.0) for field in index.fields]
        match = self.system.match if name == "fts" else self.system.match_memory
        return FtsRetriever(self.store, index, match, weights)

    def _check_fields(self, settings: RetrieverConfig, fields: Sequence[str]) -> None:
        unknown = [name for name in settings.field_weights if name not in fields]
        if unknown:
            named = ", ".join(f"{shown(name)}{nearest(name, fields)}" for name in unknown)
            raise ConfigError(f"field_weights of {self.config.name}: unknown field {named}")

    def _scorer(self, name: str) -> Scorer:
        if name == "cosine":
            pairs = [(self._space(each, "text"), partial(self.embed, each)) for each in self._asked_of()]
            made = [CosineScorer(self.store, space, embed) for space, embed in pairs]
            return made[0] if len(made) == 1 else SumOfSpaces(made)
        if name == "lexical":
            if not isinstance(self.system.index, TextSearch):
                raise ConfigError(
                    f"{self.config.name} knows no exclusions, so it has no signal lexical; drop the stage"
                )
            return LexicalScorer(self.store, self.system.index.text)
        return TfidfScorer(self.store, self.system.words, self._words_of)

    def _words_of(self, query: Query) -> Filters:
        """The entries that TF-IDF counts."""
        return self._corpus() & (self._valid(query) if self.system.valid_words else EVERYTHING)


def _models(embedder: Embedder | Sequence[Embedder] | None) -> list[Embedder]:
    """The embedders given, each model and fit once."""
    given = [] if embedder is None else list(embedder) if isinstance(embedder, Sequence) else [embedder]
    return list({space_of(each, "text", ""): each for each in reversed(given)}.values())[::-1]
