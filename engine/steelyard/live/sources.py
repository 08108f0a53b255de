"""Computes the columns of a table, by the retrievers and scorers of one system over one store."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, EmbedderError, LostError, SteelyardError
from steelyard.config.search_config import SearchConfig
from steelyard.embedders.embed import LAYER_RECIPES, Embedder, Vectors, embed_checked, space_of
from steelyard.live.scopes import Scopes
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard.memory.query import Query
from steelyard.retrievers import RETRIEVER_KINDS, SCORER_KINDS, RetrieverConfig, Scorer
from steelyard.retrievers.cache import ScopeCache
from steelyard.retrievers.kinds import Bounded, Foreseeing, QueryVector
from steelyard.stores.base import COSINE, Found, Readable, Space
from steelyard.stores.federation import same_copies
from steelyard.systems.base import System

T = TypeVar("T")
KEPT = 2000
"""Lists and their ends: those of recordings with few queries, for which parameters of retrievers are tried."""


class KeptLists:
    """What recordings of one store found last, for others of which some retrievers search in the same way."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}
        self._revision = -1

    def at(self, revision: int) -> KeptLists:
        """The same, without what was found at another revision of the store."""
        if revision != self._revision:
            self._revision, self._found = revision, {}
        return self

    def get(self, key: Hashable, find: Callable[[], T]) -> T:
        """What was found under a key, or is found now."""
        if key not in self._found:
            self._found[key] = find()
            while len(self._found) > KEPT:
                del self._found[next(iter(self._found))]
        value: T = self._found[key]
        return value

    def first(self, key: Hashable, depth: int, find: Callable[[], list[Found]]) -> list[Found]:
        """The first places of what was found under a key as deep or deeper, or is found now."""
        if self._found.get(key, (0, []))[0] < depth:
            self._found.pop(key, None)
        whole = self.get(key, lambda: (depth, find()))[1]
        return [item for item in whole if item.position <= depth]


class Sources:
    """Builds each retriever and scorer once, and embeds each query once for each model.

    A federation whose tiers use different models needs several embedders: in each tier a query is compared
    with the vectors of that tier's model. Threads may share it.

    Parameters
    ----------
    embedder : Embedder, sequence of Embedder or None
        None to search by keywords alone.
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
        self.dispensable = system.searching.dispensable
        self.instead = system.searching.instead
        self.config = config
        self.embedders = _models(embedder)
        self.scopes = Scopes(store, system.reading)
        self._thread = threading.local()
        self._retrievers: dict[str, object] = {}
        self._scorers: dict[str, Scorer] = {}
        self._settings: dict[str, str] = {}
        self._usable = ScopeCache(store, lambda _: self._with_vectors())
        self._lacking = ScopeCache(
            store, lambda _: store.without_vectors([self._space(each, "text") for each in self.usable()])
        )

    # Columns

    def retrieve(
        self,
        name: str,
        query: Query,
        depth: int | None,
        lists: Mapping[str, Sequence[Found]],
        kept: KeptLists | None = None,
    ) -> Sequence[Found]:
        """Retrieve the list of one retriever.

        Parameters
        ----------
        query : Query
            With its clock set.
        depth : int or None
            How many to return at most; None for all.
        lists : mapping
            The lists retrieved before; of an entry with several copies, the copy in them is returned.
        kept : KeptLists or None
            Where lists of earlier recordings are, and where this one is put.
        """
        kind = RETRIEVER_KINDS[name]
        if kind.aside is not None and not self.scopes.any_of(kind.aside):
            return []
        try:
            scoped = self._scoped(name, query)
            find = partial(self._find, name, scoped, depth, lists)
            if kept is None or kind.after or depth is None:
                return same_copies(find(), lists)
            return same_copies(kept.first(self._key(name, scoped), depth, find), lists)
        except EmbedderError:
            raise
        except SteelyardError as error:
            if name not in self.dispensable or isinstance(error, ConfigError):
                raise
            raise LostError(name, error) from None

    def ends(
        self, names: Iterable[str], query: Query, kept: KeptLists | None = None
    ) -> dict[str, tuple[float, float]]:
        """Between which ends the scores of these retrievers can lie for a query, where their formulas say."""
        bounded = ((name, self._retriever(name)) for name in names if RETRIEVER_KINDS[name].aside is None)
        ends: dict[str, tuple[float, float]] = {}
        for name, retriever in bounded:
            if isinstance(retriever, Bounded):
                scoped = self._scoped(name, query)
                find = partial(retriever.ends, scoped)
                ends[name] = find() if kept is None else kept.get(self._key(name, "ends", scoped), find)
        return ends

    def _scoped(self, name: str, query: Query) -> Query:
        """The query in the scope that a retriever searches."""
        filtered = self.settings(name).filters != "none"
        searched = self.scopes.searched(query, name, RETRIEVER_KINDS[name].aside, filtered)
        return query if searched == query.filters else replace(query, filters=searched)

    def expect(self, names: Iterable[str], queries: Sequence[Query]) -> None:
        """Prepare these retrievers for queries that come next from this thread."""
        names = list(names)
        if any(RETRIEVER_KINDS[name].layer for name in names):
            texts = list(dict.fromkeys(query.embedded for query in queries))
            pairs = [(embedder, row) for embedder in self.usable() for row in embedded(embedder, texts)]
            self._thread.ahead = {(id(embedder), text): row for embedder, (text, row) in pairs}
        for name in names:
            retriever = self._retriever(name)
            if isinstance(retriever, Foreseeing):
                retriever.expect(queries)

    def _key(self, *what: Hashable) -> Hashable:
        """A retriever, all that configures it but its depth, and what is asked."""
        name = str(what[0])
        if name not in self._settings:
            settings, models = replace(self.settings(name), depth=None).to_json(), sorted(self.config.models)
            self._settings[name] = json.dumps([self.config.name, settings, models], sort_keys=True)
        return (self._settings[name], *what)

    def _retriever(self, name: str) -> Any:  # noqa: ANN401 -- a Retriever, or what follows others
        if name not in self._retrievers:
            self._retrievers[name] = RETRIEVER_KINDS[name].build(self, self.settings(name))
        return self._retrievers[name]

    def _find(
        self, name: str, query: Query, depth: int | None, lists: Mapping[str, Sequence[Found]]
    ) -> list[Found]:
        retriever = self._retriever(name)
        if not RETRIEVER_KINDS[name].after:
            retrieved: list[Found] = retriever.retrieve(query, depth)
            return retrieved
        starts = [other if other in lists else self.instead.get(other, "") for other in self.config.before(name)]
        before = {other: lists[other] for other in starts if other in lists}
        followed: list[Found] = retriever.follow(query, depth, before)
        return followed

    def score(self, name: str, query: Query, ids: Sequence[str]) -> Floats:
        """Compute the scores of one scorer for the candidates of a query; float64[len(ids)]."""
        if name not in self._scorers:
            self._scorers[name] = SCORER_KINDS[name].build(self)
        return self._scorers[name].score(query, ids)

    def settings(self, name: str) -> RetrieverConfig:
        """Return the configuration of a retriever; ConfigError when the system has no such retriever."""
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
        """The system and profile as ``system:profile``."""
        return self.config.name

    def vectors(self, layer: str) -> list[tuple[Space, QueryVector]]:
        """List the spaces of a layer's vectors, each with its embedder of queries; see `Parts.vectors`."""
        if not self.embedders:
            raise EmbedderError("there is no embedder; give the searcher one")
        asked = self.usable() or self.embedders[:1]
        return [(self._layer(embedder, layer), partial(self._embed, embedder)) for embedder in asked]

    def approximate(self, names: Iterable[str]) -> str:
        """How the store finds what is near for these retrievers, where that may miss some; see `Readable`."""
        configs = self.config.retrievers
        kinds = [RETRIEVER_KINDS[name] for name in names if name in configs and configs[name].similarity == COSINE]
        layers = [kind.layer for kind in kinds if kind.compares and self.embedders]
        return self.store.approximate([space for layer in layers for space, _ in self.vectors(layer)])

    def stored(self, ids: Sequence[str]) -> Vectors:
        """The stored vectors of entries, float32[len(ids), dim], zeros where there is none.

        Raises ConfigError where tiers have vectors of several models, which cannot be compared.
        """
        spaces = [space for space, _ in self.vectors("text")]
        if len(spaces) > 1:
            raise ConfigError(
                f"mmr compares entries by one model, and the tiers have vectors of {len(spaces)}; "
                "index them with --rebuild"
            )
        known = self.store.vectors_of(spaces[0], ids)
        none = np.zeros(len(next(iter(known.values()), ())), dtype=np.float32)
        return np.array([known.get(id_, none) for id_ in ids], dtype=np.float32).reshape(len(ids), len(none))

    def counted(self, query: Query) -> Filters:
        """Return the scope of the entries whose words TF-IDF counts for a query."""
        return self.scopes.counted(query)

    # Models

    def usable(self) -> list[Embedder]:
        """Return the embedders whose vectors the store has, and whose model the configuration does not exclude."""
        return self._usable(EVERYTHING)

    def _with_vectors(self) -> list[Embedder]:
        models, held = self.config.models, {space for space, _ in self.store.spaces()}
        return [e for e in self.embedders if not models - {e.model} and held & self._searched(e)]

    def has_vectors(self) -> bool:
        """Whether queries can be embedded and the store has vectors to compare them with."""
        return bool(self.usable())

    def keywords_only(self) -> list[str]:
        """Return the tiers that are searched by keywords alone, having no vectors of a usable model."""
        return self._lacking(EVERYTHING)

    def recipe(self, layer: str) -> str:
        """Return the template of the text embedded for a layer; empty without an embedder."""
        return self._layer(self.embedders[0], layer).recipe if self.embedders else ""

    @property
    def embedding_calls(self) -> int:
        """The number of texts that this thread has embedded."""
        calls: int = getattr(self._thread, "calls", 0)
        return calls

    def _searched(self, embedder: Embedder) -> set[Space]:
        """The spaces of which any one makes the embedder worth asking: the text's, and those of the layers."""
        return {self._space(embedder, layer) for layer in ("text", *LAYER_RECIPES)}

    def _space(self, embedder: Embedder, layer: str) -> Space:
        return space_of(embedder, layer, self.reading.recipe)

    def _layer(self, embedder: Embedder, layer: str) -> Space:
        """The space of a layer, or that of the text when the store lacks l2."""
        wanted = self._space(embedder, layer)
        held = layer != "l2" or any(wanted == space for space, _ in self.store.spaces())
        return wanted if held else self._space(embedder, "text")

    def _embed(self, embedder: Embedder, text: str) -> Vectors:
        """The vector of a query, float32[dim], cached until the thread embeds another text."""
        last: dict[int, tuple[str, Vectors]] = self._thread.__dict__.setdefault("last", {})
        known = last.get(id(embedder))
        ahead: dict[tuple[int, str], Vectors] = getattr(self._thread, "ahead", {})
        if (id(embedder), text) in ahead:
            return ahead[id(embedder), text]
        if known is None or known[0] != text:
            self._thread.calls = self.embedding_calls + 1
            known = last[id(embedder)] = (text, embed_checked(embedder, [text], "query")[0])
        return known[1]


def embedded(embedder: Embedder, texts: Sequence[str]) -> Iterable[tuple[str, Vectors]]:
    """Texts with their vectors: all in one call where the embedder remembers them, so that a later call for one of
    them gives the same bits, else one by one.
    """
    if getattr(embedder, "remembers", False) and texts:
        return zip(texts, embed_checked(embedder, list(texts), "query"), strict=True)
    return ((text, embed_checked(embedder, [text], "query")[0]) for text in texts)


def _models(embedder: Embedder | Sequence[Embedder] | None) -> list[Embedder]:
    """The embedders as a list, without repetition of a model and fit."""
    given = [] if embedder is None else list(embedder) if isinstance(embedder, Sequence) else [embedder]
    return list({space_of(each, "text", ""): each for each in reversed(given)}.values())[::-1]
