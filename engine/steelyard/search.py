"""A searcher binds a store, a configuration and an embedder: candidates, ranking, results, explanation.

Live search is a table with one query; a recording is a table with thousands, filled by the same
retrievers. `rank_table` is the one way from a table to ranked lists.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from steelyard.config import LISTS, SearchConfig
from steelyard.directories import Directories
from steelyard.embed import Embedder
from steelyard.entry import Hit
from steelyard.errors import ConfigError, EmbedderError, SteelyardError, shown
from steelyard.filters import EVERYTHING, Filters
from steelyard.finish import Ranking, finish
from steelyard.fusion import Expr, fuse
from steelyard.identity import identity
from steelyard.join import Lists, join
from steelyard.query import Query, clean_query
from steelyard.results import SearchResult, hits_of
from steelyard.signals import PRIORS
from steelyard.sources import Sources
from steelyard.stores.base import Found, Readable
from steelyard.stores.federation import plain
from steelyard.systems import find_system
from steelyard.table import EMBEDDING, LAYERS, RETRIEVERS, SCORERS, SignalTable

_log = logging.getLogger(__name__)


def rank_table(table: SignalTable, config: SearchConfig, strategy: Expr) -> tuple[SignalTable, Ranking]:
    """Mask the table to the configuration's depths, fuse, finish; the masked table and the lists."""
    masked = table.at_depth(config.depths)
    return masked, finish(masked, fuse(masked, strategy), config.finish)


class Searcher:
    """Searches one store under one configuration.

    Without an embedder, or when the store holds no vectors of its model, the strategy falls back to
    what keywords can answer. `clock` gives the time (seconds UTC) of queries that carry none. `visible` is
    what the caller may see: no query, filter or strategy reaches beyond it, and no statistics do, those apart
    that are in the embedder, such as LSA fitted on more.
    `rewrite` gives the text that is embedded in place of the one asked. `proceed` is called before each retriever;
    what it raises ends the search.
    Of a federation whose tiers have models of their own `embedder` is all of theirs; tiers that hold
    vectors of none are found by keywords, and each result says so.
    `degraded` counts the searches in which the embedder failed; the first one is logged as a warning.

    Threads may share a searcher, as they may share a vault. What a search reads is one state of the vault
    where its thread holds a snapshot; else an entry that goes while it is being found is a VaultError.
    """

    def __init__(
        self,
        store: Readable,
        config: SearchConfig,
        embedder: Embedder | Sequence[Embedder] | None = None,
        *,
        clock: Callable[[], float] = time.time,
        visible: Filters = EVERYTHING,
        rewrite: Callable[[str], str] | None = None,
        proceed: Callable[[], None] = lambda: None,
    ) -> None:
        if config.system == LISTS:
            raise ConfigError(
                f"{config.strategy} fuses recorded lists of other engines, which live search cannot ask; "
                "fuse them where the lists come from"
            )
        self.store = store.seen_by(visible)
        self.config = config
        self.system = find_system(config.name)
        self._sources = Sources(self.store, self.system, config, embedder)
        self._directories = Directories(self.store, self.system.reading.directory)
        self._clock = clock
        self._rewrite = rewrite
        self._proceed = proceed
        self.degraded = 0
        self._counting = threading.Lock()

    # Searching

    def search(self, query: Query | str, *, semantic: str | bool = "always") -> SearchResult:
        """Search one query. `semantic` is always, auto (only if the model is warm) or never.

        Raises ConfigError for an empty query, or a strategy that cannot do without vectors; EmbedderError
        when such a strategy has vectors to search and the embedder fails.
        """
        asked = self._admit(Query(query) if isinstance(query, str) else query)
        calls = self._sources.embedding_calls
        vectors = self._wants_vectors(semantic)
        strategy = self._available(vectors)
        degraded = False
        seconds: dict[str, float] = {}
        begin = time.perf_counter()
        try:
            table = self._candidates(asked, strategy, vectors, seconds)
        except self.system.searching.survives as error:
            if self.config.without(EMBEDDING) is None:
                raise
            degraded = True
            self._count(error)
            strategy = self._available(False)
            table = self._candidates(asked, strategy, False, seconds)
        masked, ranking = rank_table(table, self.config, strategy)
        hits = hits_of(self.store, masked, ranking, strategy)
        return SearchResult(
            hits,
            masked,
            ranking,
            strategy,
            self._sources.embedding_calls - calls,
            degraded,
            () if degraded else self._notes(strategy, vectors, semantic),
            asked,
            seconds | {"search": time.perf_counter() - begin},
        )

    def candidates(self, query: Query, strategy: Expr, vectors: bool = True) -> SignalTable:
        """The table of one query, fetching only what the strategy turns out to need.

        It carries facts only when the strategy computes signals from them. Without `vectors` none are
        searched, also where the strategy names no retriever and would rank what all of them find.
        """
        return self._candidates(self._timed(query), strategy, vectors, {})

    def _candidates(self, query: Query, strategy: Expr, vectors: bool, seconds: dict[str, float]) -> SignalTable:
        """See `candidates`; `seconds` takes the time of each retriever."""
        lists: dict[str, Sequence[Found]] = {}
        scorers: list[str] = []
        facts = bool(strategy.signals() & PRIORS.keys())
        table = self._table([query], [lists], scorers, facts)
        while wanted := self._wanted(table, strategy, vectors):
            for name in wanted:
                if name in SCORERS:
                    scorers.append(name)
                else:
                    self._proceed()
                    begin = time.perf_counter()
                    lists[name] = self._sources.retrieve(name, query, self._sources.settings(name).depth, lists)
                    seconds[name] = time.perf_counter() - begin
            table = self._table([query], [lists], scorers, facts)
        return table

    def context(
        self,
        text: str,
        filters: Filters = EVERYTHING,
        *,
        semantic: str | bool | None = None,
        topup_recent: bool | None = None,
    ) -> tuple[list[Hit], int]:
        """Relevant entries filled up with recent ones to the limit; only recent ones for a text that asks nothing.

        `semantic` and `topup_recent` are the configuration's by default, else the system's own. Recent entries
        carry no score, obey the same filters and never repeat. Returns the hits and how many entries the
        filters admit in all. Source: EchoVault's document, context retrieval.
        """
        own, configured = self.system.contexts, self.config.context
        if topup_recent is None:
            topup_recent = configured.topup_recent
        topup = own.topup_recent if topup_recent is None else topup_recent
        mode = configured.semantic or own.semantic if semantic is None else semantic
        limit = self.config.limit
        hits: list[Hit] = []
        asked = self._timed(Query(text, filters=filters))
        scope = self._sources.scopes.answers(asked)
        nothing = own.no_query(text)
        if not nothing:
            hits = list(self.search(asked, semantic=mode).hits)
        if topup or nothing:
            seen = {hit.entry.id for hit in hits}
            newest = map(plain, self.store.recent(scope, limit))
            fresh = [entry for entry in newest if entry.id not in seen]
            hits += [Hit(rank, None, entry) for rank, entry in enumerate(fresh, len(hits) + 1)]
        return hits[:limit], self.store.count(scope)

    # Recording

    def record(
        self,
        queries: Sequence[Query],
        signals: Iterable[str],
        max_depth: int | None,
        corpus: str,
        progress: Callable[[Sequence[Query]], Iterable[Query]] = iter,
    ) -> SignalTable:
        """The table of many queries with every list down to `max_depth` (None: whole) and every scorer filled.

        `corpus` is the hash of what was indexed; it goes into the fingerprint. EmbedderError says how many
        queries were done when the embedder failed: a recording is never half keywords.
        """
        names = sorted(signals)
        depths = {name: None if name in LAYERS else max_depth for name in names if name in RETRIEVERS}
        lists: list[Lists] = []
        try:
            admitted = [self._admit(query) for query in queries]
            for query in progress(admitted):
                own: dict[str, Sequence[Found]] = {}
                for name, depth in depths.items():
                    own[name] = self._sources.retrieve(name, query, depth, own)
                lists.append(own)
            table = self._table(admitted, lists, [name for name in names if name in SCORERS], True)
        except EmbedderError as error:
            raise EmbedderError(f"{error}; {len(lists)} of {len(queries)} queries were done") from None
        return replace(table, fingerprint=self.fingerprint(corpus, {k: v for k, v in depths.items() if v}))

    def fingerprint(self, corpus: str, max_depth: Mapping[str, int]) -> dict[str, Any]:
        """What a replay of a recording cannot change, as JSON values."""
        embedders = self._sources.embedders
        layers = [name for name in LAYERS if name in EMBEDDING & self.config.retrievers.keys() and embedders]
        return {
            **identity(self.config),
            "corpus": corpus,
            "model": embedders[0].model if embedders else "",
            "recipe": self._sources.recipe("text"),
            "layers": {name: self._sources.recipe(name) for name in layers},
            "max_depth": dict(max_depth),
        }

    # Inside

    def _count(self, error: SteelyardError) -> None:
        """A degraded search: counted every time, told the first time."""
        with self._counting:
            self.degraded += 1
            first = self.degraded == 1
        if first:
            _log.warning("the embedder failed, keywords answer alone: %s", error)

    def _notes(self, strategy: Expr, vectors: bool, semantic: str | bool) -> tuple[str, ...]:
        """What was searched by keywords alone although vectors were asked for."""
        if not vectors:
            asked = self.system.searching.mode(semantic) == "always" and strategy != self.config.effective
            return ("the vault has no vectors of the configured model; keywords answered alone",) if asked else ()
        if not strategy.signals() & EMBEDDING:
            return ()
        return tuple(
            f"the tier {shown(name)} has no vectors of the configured model; keywords alone found its entries"
            for name in self._sources.keywords_only()
        )

    def _wanted(self, table: SignalTable, strategy: Expr, vectors: bool) -> list[str]:
        needs = dict(strategy.needs(table, self._retrievable(vectors)))
        needs |= dict.fromkeys(sorted(self.config.needs), np.ones(len(table.queries), dtype=bool))
        return [name for name, queries in needs.items() if name not in table.columns and queries.any()]

    def _retrievable(self, vectors: bool) -> list[str]:
        """The system's retrievers; those that need vectors only where they are wanted and there are any."""
        possible = vectors and self._sources.has_vectors()
        return [name for name in self.config.retrievers if possible or name not in EMBEDDING]

    def _timed(self, query: Query) -> Query:
        """The query with its clock."""
        return query if query.asked_at is not None else replace(query, asked_at=self._clock())

    def _admit(self, query: Query) -> Query:
        """The query with its clock and the text that keywords match.

        Every query passes here once, so what rewrites a text or reads an intent from it belongs here.
        Raises ConfigError for an empty one, also where no retriever reads the words.
        """
        matched = clean_query(query.text if query.matched is None else query.matched)
        intent = query.intent or self.system.reading.classify(query.text)
        rewritten = query.rewritten
        if rewritten is None and self._rewrite is not None:
            rewritten = self._rewrite(query.text)
        return replace(self._timed(query), matched=matched, intent=intent, rewritten=rewritten)

    def _wants_vectors(self, semantic: str | bool) -> bool:
        mode = self.system.searching.mode(semantic)
        if mode == "never" or not self._sources.has_vectors():
            return False
        return mode == "always" or all(embedder.warm() for embedder in self._sources.usable())

    def _available(self, vectors: bool) -> Expr:
        """The strategy, or what is left of it without vectors."""
        whole = self.config.effective
        left = whole if vectors else self.config.without(EMBEDDING)
        if left is None:
            raise ConfigError(
                f"strategy {whole} needs vectors, and there are none (no embedder, or none of its vectors in "
                "the vault); index the vault with an embedder, or choose a keyword strategy"
            )
        return left

    def _table(
        self, queries: Sequence[Query], lists: Sequence[Lists], scorers: Sequence[str], facts: bool
    ) -> SignalTable:
        clocks = [query.asked_at or 0.0 for query in queries]
        score = {name: partial(self._sources.score, name) for name in scorers}
        layered = any(name in LAYERS for own in lists for name in own)
        homes = self._directories.of if layered else None
        return join(queries, clocks, lists, score, self.store.get if facts else None, homes)
