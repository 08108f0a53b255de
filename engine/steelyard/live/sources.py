"""Fetches what a strategy ranks: the columns of a table, by the retrievers and scorers of one system."""

import json
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from steelyard.base.arrays import Ints
from steelyard.base.errors import ConfigError, EmbedderError, RetrieverError, SteelyardError
from steelyard.config import LISTS, SearchConfig
from steelyard.embedders.embed import LAYER_RECIPES, Embedder, Vectors, embed_checked, space_of
from steelyard.fusion import Expr
from steelyard.memory.query import EVERYTHING, Filters, Query, Rule, unchanged, valid_at
from steelyard.retrievers import CANDIDATE_RETRIEVERS, DEPENDENT, EMBEDDING, LAYERS, RETRIEVER_KINDS, SCORER_KINDS
from steelyard.retrievers.graph import directories
from steelyard.retrievers.kinds import QueryVector, RetrieverConfig, Scorer
from steelyard.signals import PRIORS
from steelyard.stores.base import COSINE, ReadableStore, ScoredId, Space, same_copies
from steelyard.systems import find_system
from steelyard.systems.base import System
from steelyard.table.join import Ends, ScoreIds, join
from steelyard.table.signal_table import SignalTable

LISTS_KEPT = 2000
"""Lists and their ends: those of recordings with few queries, for which parameters of retrievers are tried."""
UNLIMITED = Filters.all_of((Rule("valid_from", "absent"),), (Rule("valid_until", "absent"),))


class RetrieverPool:
    """Builds each retriever and scorer once, and embeds each query once for each model.

    The parameters are those of `Searcher`. A federation whose tiers use different models needs several embedders:
    in each tier a query is compared with the vectors of that tier's model. Threads may share it.
    """

    def __init__(
        self,
        store: ReadableStore,
        system: System,
        config: SearchConfig,
        embedder: Embedder | Sequence[Embedder] | None,
        proceed: Callable[[], None] = lambda: None,
    ) -> None:
        if config.system == LISTS:
            raise ConfigError(
                f"{config.strategy} fuses recorded lists of other engines, which live search cannot query; "
                "fuse them where the lists come from"
            )
        self.store, self.config, self.reading, self.proceed = store, config, system.reading, proceed
        self.name, self._searching = config.name, system.searching
        given = [] if embedder is None else list(embedder) if isinstance(embedder, Sequence) else [embedder]
        unique = {space_of(each, "text", ""): each for each in reversed(given)}  # of each model and fit the first
        self.embedders = list(unique.values())[::-1]
        self._thread = threading.local()
        self._retrievers: dict[str, Any] = {}
        self._scorers: dict[str, Scorer] = {}
        self._settings: dict[str, str] = {}
        self._spaces: dict[tuple[int, str], Space] = {}

    # The table of one query

    def fetch(
        self,
        query: Query,
        config: SearchConfig,
        vectors: bool,
        seconds: dict[str, float],
        fixed: Expr | None = None,
    ) -> tuple[SignalTable, Expr, frozenset[str], list[SteelyardError]]:
        """The table of one query, with the signals that its strategy needs; `seconds` takes the times of lists.

        Without a `fixed` strategy it is what is left of the configuration's without the signals that are missing,
        because there are no vectors or they failed; it is given, too, with these signals and failures.
        """
        missing = frozenset() if vectors else EMBEDDING
        if fixed is None and self._left(config, missing) is None and not self.store.count():
            missing = frozenset()  # where nothing is visible nothing lacks a vector
        lost: list[SteelyardError] = []
        while (strategy := fixed or self._left(config, missing)) is not None:
            try:
                return self._table(query, config, strategy, missing, seconds), strategy, missing, lost
            except SteelyardError as error:
                gone = frozenset({error.signal}) if isinstance(error, RetrieverError) else EMBEDDING
                survives = fixed is None and isinstance(error, (RetrieverError, *self._searching.survives))
                if not survives or gone <= missing or self._left(config, missing | gone) is None:
                    raise
                missing |= gone
                lost.append(error)
        raise ConfigError(
            f"strategy {config.effective} needs vectors, and there are none (no embedder, or none of its "
            "vectors in the vault); index the vault with an embedder, or choose a keyword strategy"
        )

    def _table(
        self,
        query: Query,
        config: SearchConfig,
        strategy: Expr,
        missing: frozenset[str],
        seconds: dict[str, float],
    ) -> SignalTable:
        """The table of one query: what it holds decides what else the strategy needs, until it needs no more."""
        read = strategy.signals.union(*(stage.signals for stage in config.finish))
        read_ends = strategy.reads_ends.union(*(stage.reads_ends for stage in config.finish))
        get = self.store.get if read & PRIORS.keys() else None
        possible = config.retrievers.keys() - (missing if self.usable() else missing | EMBEDDING)
        lists: dict[str, Sequence[ScoredId]] = {}
        scorers: dict[str, ScoreIds] = {}
        finders = () if strategy.retrievers else CANDIDATE_RETRIEVERS & possible
        always = strategy.signals.difference(PRIORS).union(finders) if strategy.fixed else frozenset[str]()
        while True:
            if always <= lists.keys() | scorers.keys():
                ends = [self.ends(sorted(lists.keys() & read_ends), query)]
                table = join([query], [query.asked_at or 0.0], [lists], scorers, get, self.homes(lists), ends)
            names = set(always) or {name for name, by in strategy.needs(table, possible).items() if by.any()}
            names |= config.needs - missing
            for name in names & DEPENDENT & config.retrievers.keys():
                starts = (self._stands_in(other, other not in missing) for other in config.before(name))
                names |= possible.intersection(starts)
            if not (wanted := names - lists.keys() - scorers.keys()):
                return table
            scorers |= {name: self.scorer(name) for name in wanted & SCORER_KINDS.keys()}
            # A retriever stands behind those that it starts from.
            for name in sorted(wanted - scorers.keys(), key=lambda name: (name in DEPENDENT, name)):
                self.proceed()
                begin = time.perf_counter()
                lists[name] = self.retrieve(name, query, self.settings(name).depth, lists)
                seconds[name] = time.perf_counter() - begin

    def _left(self, config: SearchConfig, missing: frozenset[str]) -> Expr | None:
        """The strategy that is left without these signals; others stand in for some."""
        instead = {lost: other for lost, other in self._searching.instead.items() if lost in missing}
        config = config.with_substitutes(instead) if instead else config
        return config.without(missing) if missing else config.effective

    # Columns

    def retrieve(
        self,
        name: str,
        query: Query,
        depth: int | None,
        lists: Mapping[str, Sequence[ScoredId]],
        keep: bool = False,
    ) -> Sequence[ScoredId]:
        """Retrieve at most `depth` places of one retriever's list, or all, for a query with its clock.

        Of an entry with several copies, the copy in the `lists` retrieved before is returned. With `keep` the list
        is kept for other recordings, and those of earlier ones are used.
        """
        kind, cache = RETRIEVER_KINDS[name], self.store.cache
        if kind.separate_scope is not None and not self.store.count(kind.separate_scope):
            return []
        try:
            scoped, retriever = self._in_its_scope(name, query), self._retriever(name)
            if kind.after:
                starts = (self._stands_in(other, other in lists) for other in self.config.before(name))
                before = {other: lists[other] for other in starts if other in lists}
                known: dict[str, Any] = cache.get("edges", scoped.filters, dict) if keep else {}
                found: Sequence[ScoredId] = retriever.follow(scoped, depth, before, known)
            elif not keep or depth is None:
                found = retriever.retrieve(scoped, depth)
            else:
                deepest: dict[str, Any] = cache.get("lists", self._key(name, scoped), dict, most=LISTS_KEPT)
                cut, found = deepest.get(name, (-1, []))
                if cut < depth:
                    _, found = deepest[name] = depth, retriever.retrieve(scoped, depth)
                found = [item for item in found if item.position <= depth]
            return same_copies(found, lists) if lists else found
        except SteelyardError as error:
            if name not in self._searching.dispensable or isinstance(error, (ConfigError, EmbedderError)):
                raise
            raise RetrieverError(name, error) from None

    def _stands_in(self, name: str, there: bool) -> str:
        """The signal itself where it is there, else what stands in for it."""
        return name if there else self._searching.instead.get(name, name)

    def ends(self, names: Iterable[str], query: Query, keep: bool = False) -> Ends:
        """Between which ends the scores of these retrievers can lie for a query, where their formulas say.

        With `keep` as in `retrieve`.
        """
        ends: dict[str, tuple[float, float]] = {}
        for name in names:
            retriever = self._retriever(name)
            if hasattr(retriever, "ends") and RETRIEVER_KINDS[name].separate_scope is None:
                scoped = self._in_its_scope(name, query)
                find, key = partial(retriever.ends, scoped), self._key(name, scoped) if keep else None
                ends[name] = self.store.cache.get("ends", key, find, most=LISTS_KEPT) if keep else find()
        return ends

    def scorer(self, name: str) -> ScoreIds:
        """What scores the candidates of a query, float64[len(ids)]."""
        if name not in self._scorers:
            self._scorers[name] = SCORER_KINDS[name].build(self)
        return self._scorers[name]

    def homes(self, names: Iterable[str]) -> Callable[[tuple[str, ...]], Ints | None] | None:
        """What gives the place of each entry's directory, where layers are among these signals."""
        return None if set(LAYERS).isdisjoint(names) else partial(directories, self.store, self.reading.directory)

    def expect(self, names: Collection[str], queries: Sequence[Query]) -> None:
        """Prepare these retrievers for queries that come next from this thread."""
        if any(RETRIEVER_KINDS[name].layer for name in names):
            texts = list(dict.fromkeys(query.embedded for query in queries))
            pairs = [(embedder, row) for embedder in self.usable() for row in embedded(embedder, texts)]
            self._thread.vectors = {(id(embedder), text): row for embedder, (text, row) in pairs}
        for name in names:
            retriever = self._retriever(name)
            if hasattr(retriever, "expect"):
                retriever.expect(queries)

    def _key(self, name: str, scoped: Query) -> Hashable:
        """A retriever, all that configures it but its depth, and what is asked."""
        if name not in self._settings:
            settings, models = replace(self.settings(name), depth=None).to_json(), sorted(self.config.models)
            self._settings[name] = json.dumps([self.config.name, settings, models], sort_keys=True)
        return self._settings[name], name, tuple(self._space(each, "text") for each in self.embedders), scoped

    def _retriever(self, name: str) -> Any:  # noqa: ANN401 -- a Retriever, or what follows others
        if name not in self._retrievers:
            self._retrievers[name] = RETRIEVER_KINDS[name].build(self, self.settings(name))
        return self._retrievers[name]

    def settings(self, name: str) -> RetrieverConfig:
        """Return the configuration of a retriever; ConfigError when the system has no such retriever."""
        settings = self.config.retrievers.get(name)
        if settings is None:
            raise ConfigError(
                f"strategy {self.config.strategy} uses {name!r}, but {self.config.name} has no such retriever; "
                f"it has {', '.join(self.config.retrievers)} (the system plain has them all)"
            )
        return settings

    # Scopes: what the system searches, with the filters of the query

    def answers(self, query: Query) -> Filters:
        """Return the scope of the entries that may answer a query, which needs its clock."""
        return self._limited(self.reading.corpus) & query.filters & self._valid(query, self.reading.valid_only)

    def word_scope(self, query: Query) -> Filters:
        """Return the scope of the entries whose words TF-IDF counts for a query."""
        return self._limited(self.reading.corpus) & self._valid(query, self.reading.valid_words)

    def _in_its_scope(self, name: str, query: Query) -> Query:
        inside = RETRIEVER_KINDS[name].separate_scope
        if inside is None:
            hidden = self.reading.hidden.get(name, EVERYTHING)
            inside = self._limited(self.reading.corpus) & self._limited(hidden)
        if self.settings(name).filters != "none":
            inside = inside & query.filters & self._valid(query, self.reading.valid_only)
        return query if inside == query.filters else replace(query, filters=inside)

    def _valid(self, query: Query, only: bool) -> Filters:
        return valid_at(query.asked_at or 0.0) if only and self._limited(UNLIMITED) else EVERYTHING

    def _limited(self, scope: Filters) -> Filters:
        """The scope, or `EVERYTHING` where it excludes nothing, because filtering takes time."""
        return EVERYTHING if not scope or self.store.covers(scope) else scope

    # Models and their vectors; `kinds.BuildContext` is what retrievers and scorers are built from.

    def usable(self) -> list[Embedder]:
        """Return the embedders whose vectors the store has, and whose model the configuration does not exclude."""
        models, held = self.config.models, self.spaces()
        able = [embedder for embedder in self.embedders if held and not models - {embedder.model}]
        return [one for one in able if any(self._space(one, layer) in held for layer in ("text", *LAYER_RECIPES))]

    def spaces(self) -> set[Space]:
        """The spaces of vectors that the store has."""
        return {space for space, _ in self.store.spaces()}

    def without_vectors(self) -> list[str]:
        """What is searched by keywords alone, having no vectors of a usable model; see `Readable`."""
        return self.store.without_vectors([self._space(each, "text") for each in self.usable()])

    def vectors(self, layer: str) -> list[tuple[Space, QueryVector]]:
        """List the spaces of a layer's vectors, each with its embedder of queries; see `Parts.vectors`."""
        if not self.embedders:
            raise EmbedderError("there is no embedder; give the searcher one")
        asked = self.usable() or self.embedders[:1]
        return [(self.layer(embedder, layer), partial(self._embed, embedder)) for embedder in asked]

    def approximate(self, names: Iterable[str]) -> str:
        """How the store finds what is near for these retrievers, where that may miss some; see `ReadableStore`."""
        configs = self.config.retrievers
        kinds = [RETRIEVER_KINDS[name] for name in names if name in configs and configs[name].similarity == COSINE]
        layers = [kind.layer for kind in kinds if kind.compares and self.embedders]
        spaces = [space for layer in layers for space, _ in self.vectors(layer)]
        return self.store.approximate(spaces) if spaces else ""

    def stored(self, ids: Sequence[str]) -> Vectors:
        """The stored vectors of entries, float32[len(ids), dim], zeros where there is none.

        Raises ConfigError where tiers have vectors of several models, which cannot be compared.
        """
        spaces = [space for space, _ in self.vectors("text")]
        if len(spaces) > 1:
            raise ConfigError(f"mmr needs vectors of one model, not {len(spaces)}; index the tiers with --rebuild")
        known = self.store.vectors_of(spaces[0], ids)
        none = np.zeros(len(next(iter(known.values()), ())), dtype=np.float32)
        return np.array([known.get(id_, none) for id_ in ids], dtype=np.float32).reshape(len(ids), len(none))

    @property
    def embedding_calls(self) -> int:
        """The number of texts that this thread has embedded."""
        return int(getattr(self._thread, "calls", 0))

    def layer(self, embedder: Embedder, layer: str) -> Space:
        """The space of a layer, or that of the text when the store lacks l2."""
        wanted = self._space(embedder, layer)
        return wanted if layer != "l2" or wanted in self.spaces() else self._space(embedder, "text")

    def _space(self, embedder: Embedder, layer: str) -> Space:
        kept, key = self._spaces, (id(embedder), layer)
        return kept.get(key) or kept.setdefault(key, space_of(embedder, layer, self.reading.recipe))

    def _embed(self, embedder: Embedder, text: str) -> Vectors:
        """The vector of a query, float32[dim], kept until the thread embeds another text; see `expect`, too."""
        vectors: dict[tuple[int, str], Vectors] = self._thread.__dict__.setdefault("vectors", {})
        key = id(embedder), text
        if key not in vectors:
            self._thread.calls = self.embedding_calls + 1
            row = embed_checked(embedder, [text], "query")[0]
            vectors = {other: kept for other, kept in vectors.items() if other[0] != key[0]} | {key: row}
            self._thread.vectors = vectors
        return vectors[key]


def embedded(embedder: Embedder, texts: Sequence[str]) -> Iterable[tuple[str, Vectors]]:
    """Texts with their vectors: all in one call where the embedder remembers them, else one by one.

    Where it remembers them, a later call for one of them gives the same bits.
    """
    if getattr(embedder, "remembers", False) and texts:
        return zip(texts, embed_checked(embedder, list(texts), "query"), strict=True)
    return ((text, embed_checked(embedder, [text], "query")[0]) for text in texts)


def identity(config: SearchConfig) -> dict[str, object]:
    """Return how a configuration's retrievers find their lists, as JSON values for a recording's fingerprint.

    Configurations of which it is the same can share a recording. Depths are not part of it: a replay cuts the
    lists. The parameters of a retriever are stored under its name, those at their defaults included but for the
    quiet ones. Raises ConfigError for a parameter out of range.
    """
    reading, retrievers = find_system(config.name).reading, config.retrievers
    used = config.effective.signals
    kinds = {name: RETRIEVER_KINDS[name] for name in retrievers if name in RETRIEVER_KINDS}  # the others are lists
    starts = {name: config.before(name) if name in used else retrievers[name].after for name in kinds}
    return {
        **reading.identity(),
        "embedded": reading.recipe,
        "rewritten": reading.rewrite.__name__ if config.rewrite and reading.rewrite != unchanged else "as_asked",
        **{name: kind.recorded(retrievers[name]) for name, kind in kinds.items() if kind.parameters},
        "field_weights": {name: dict(settings.field_weights) for name, settings in retrievers.items()},
        "filters": {name: settings.filters for name, settings in retrievers.items()},
        "after": {name: list(starts[name]) for name, kind in kinds.items() if kind.after},
        "similarity": {name: settings.similarity for name, settings in retrievers.items() if name in EMBEDDING},
    }
