"""Where the columns of a table come from: the retrievers and scorers of one system over one store."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

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
from steelyard.retrievers.vector import CosineScorer, LayerRetriever, VectorRetriever
from steelyard.stores.base import Found, Readable, Space, TextSearch
from steelyard.systems.base import System
from steelyard.table import ASIDE, KEYWORD, Floats

_log = logging.getLogger(__name__)
MEMORIES = Filters.of({"kind": "memory"})
UNLIMITED = Filters.all_of((Rule("valid_from", "absent"),), (Rule("valid_until", "absent"),))


class Sources:
    """Builds each retriever and scorer once, and embeds each query once, whoever asks."""

    def __init__(
        self,
        store: Readable,
        system: System,
        config: SearchConfig,
        embedder: Embedder | None,
        visible: Filters = EVERYTHING,
    ) -> None:
        self.store = store
        self.system = system
        self.config = config
        self.embedder = embedder
        self.visible = visible
        self.embedding_calls = 0
        self._last: tuple[str, Vectors] | None = None
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

    def space(self, layer: str) -> Space:
        """Where the vectors of a layer live; EmbedderError without an embedder."""
        if self.embedder is None:
            raise EmbedderError("there is no embedder; give the searcher one")
        return space_of(self.embedder, layer, self.system.recipe)

    def layer(self, name: str) -> Space:
        """Where a layered signal reads: its own space, or that of the text for an l2 that the store has not."""
        own = self.space(name)
        return own if name != "l2" or self._has(own) else self.space("text")

    def has_vectors(self) -> bool:
        """Whether queries can be embedded and the store holds vectors to compare them with.

        A configuration that names another model than the embedder's was made for other vectors.
        """
        models = {settings.model for settings in self.config.retrievers.values() if settings.model}
        if self.embedder is None or models - {self.embedder.model}:
            return False
        return self._has(self.space("text"))

    def _has(self, space: Space) -> bool:
        return any(space == known for known, _ in self.store.spaces())

    def embed(self, text: str) -> Vectors:
        """The vector of a query, float32[dim]."""
        if self._last is None or self._last[0] != text:
            if self.embedder is None:
                raise EmbedderError("there is no embedder; give the searcher one")
            self.embedding_calls += 1
            self._last = (text, embed_checked(self.embedder, [text], "query")[0])
        return self._last[1]

    def _retriever(self, name: str, settings: RetrieverConfig) -> Retriever:
        if name in KEYWORD:
            return self._keywords(name, settings)
        if name == "bm25":
            return Bm25Retriever(self.store)
        if name == "vector":
            late = settings.filters == "after_cut"
            return VectorRetriever(self.store, self.space("text"), self.embed, not late, settings.similarity)
        space = self.layer(name)
        if space.layer != name:
            _log.warning("there are no vectors of the layer %s, so those of the text stand for it", name)
        return LayerRetriever(self.store, space, self.embed)

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
            return CosineScorer(self.store, self.space("text"), self.embed)
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
