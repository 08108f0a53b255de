"""Where the columns of a table come from: the retrievers and scorers of one system over one store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from steelyard.config import SearchConfig
from steelyard.embed import Embedder, Vectors, embed_checked, space_of
from steelyard.errors import ConfigError, EmbedderError
from steelyard.filters import EVERYTHING, Filters
from steelyard.query import Query
from steelyard.retrievers import RETRIEVER_KINDS, SCORER_KINDS, Retriever, RetrieverConfig, Scorer
from steelyard.scopes import Scopes
from steelyard.stores.base import Found, Readable, Space
from steelyard.stores.federation import same_copies
from steelyard.systems.base import System
from steelyard.table import Floats


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
        self.reading = system.reading
        self.config = config
        self.embedder = embedder
        self.scopes = Scopes(store, system.reading, visible)
        self.embedding_calls = 0
        self._last: tuple[str, Vectors] | None = None
        self._retrievers: dict[str, Retriever] = {}
        self._scorers: dict[str, Scorer] = {}

    # Columns

    def retrieve(
        self, name: str, query: Query, depth: int | None, lists: Mapping[str, Sequence[Found]]
    ) -> list[Found]:
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

    def space(self, layer: str) -> Space:
        """Where the vectors of a layer live; EmbedderError without an embedder."""
        if self.embedder is None:
            raise EmbedderError("there is no embedder; give the searcher one")
        return space_of(self.embedder, layer, self.reading.recipe)

    def layer(self, name: str) -> Space:
        """Where a layered signal reads: its own space, or that of the text for an l2 that the store has not."""
        own = self.space(name)
        return own if name != "l2" or self._has(own) else self.space("text")

    def embed(self, text: str) -> Vectors:
        """The vector of a query, float32[dim]."""
        if self._last is None or self._last[0] != text:
            if self.embedder is None:
                raise EmbedderError("there is no embedder; give the searcher one")
            self.embedding_calls += 1
            self._last = (text, embed_checked(self.embedder, [text], "query")[0])
        return self._last[1]

    def counted(self, query: Query) -> Filters:
        """The entries whose words TF-IDF counts for a query."""
        return self.scopes.counted(query)

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
