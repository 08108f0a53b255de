"""Live search: a searcher combines a store, a configuration and an embedder.

Live search makes a table with one query. A recording is a table with thousands, filled by the same
retrievers. `rank_table` turns either into ranked lists.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import takewhile

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.base.errors import ConfigError, EmbedderError, RerankError, RetrieverError, SteelyardError, quote
from steelyard.config import SearchConfig, policy_of
from steelyard.embedders.embed import Embedder, missing_model_hint
from steelyard.feedback import Explore, drafted
from steelyard.finish import (
    AtLeast,
    CrossEncoder,
    Document,
    Floor,
    Mmr,
    Ranking,
    finish,
    reranked,
    stages_without,
    to_rerank,
)
from steelyard.fusion import Expr, compile_plan, fuse
from steelyard.live.sources import RetrieverPool, identity
from steelyard.memory.entry import Hit
from steelyard.memory.query import EVERYTHING, Filters, Query, clean_query
from steelyard.memory.text import content
from steelyard.results import SearchResult, hits_of
from steelyard.retrievers import DEPENDENT, EMBEDDING, LAYERS, RETRIEVERS, SCORERS
from steelyard.stores.base import ReadableStore, ScoredId, plain
from steelyard.systems import find_system
from steelyard.systems.base import SEMANTIC
from steelyard.table.join import Ends, Lists, Part, complete, part
from steelyard.table.signal_table import RERANK, SignalTable

_log = logging.getLogger(__name__)
_DEGRADED: dict[type[SteelyardError], str] = {
    EmbedderError: "the embedder failed, keywords answer alone",
    RetrieverError: "the search goes on without one of its retrievers",
    RerankError: "the list is shown as it was fused",
}
_LEFT_OUT = {Floor: "its scale is another one", Mmr: "it has nothing to compare"}
"""Why a stage is left out without vectors or what else it reads."""
QUERIES_PER_BLOCK = 128
"""Queries of a recording that are prepared together."""


def rank_table(table: SignalTable, config: SearchConfig, strategy: Expr) -> tuple[SignalTable, Ranking, Floats]:
    """Mask the table to the configuration's depths, fuse and finish: masked table, ranking, fused scores."""
    masked = table.at_depth(config.depths)
    plan = compile_plan(masked, strategy)
    scores = plan.scores()
    return masked, finish(masked, scores, config.finish, plan.ties(masked)), scores


class Searcher:
    """Searches one store with one configuration.

    Threads may share a searcher and its vault. A search reads a single state of the vault when its thread
    has opened a snapshot; without one, an entry that is deleted during the search is a VaultError.

    `store` is the vault, or a federation of several. `embedder` embeds the queries; for a federation whose tiers
    use different models they are several. Without one, or when the store has no vectors of its model, the
    strategy falls back to keywords. Tiers without vectors of any embedder are searched by keywords, and a note
    of the result lists them. `clock` gives the time (seconds UTC) of queries that have none. `visible` is what
    the caller may see: no query, filter or strategy returns anything else, and no statistics are computed from
    anything else, except those in the embedder, such as LSA fitted on more. `rewriter` gives the text that is
    embedded in place of the one asked. `proceed` is called before each retriever; what it raises ends the
    search. `explore` interleaves another ranking in a share of the searches, for logs that more can be learned
    from.

    `degraded` counts the searches in which the embedder, the re-ranker, or a retriever that the system can do
    without failed; the first of each is logged as a warning. Raises ConfigError for a configuration over recorded
    lists, which cannot be searched live.
    """

    def __init__(
        self,
        store: ReadableStore,
        config: SearchConfig,
        embedder: Embedder | Sequence[Embedder] | None = None,
        *,
        clock: Callable[[], float] = time.time,
        visible: Filters = EVERYTHING,
        rewriter: Callable[[str], str] | None = None,
        proceed: Callable[[], None] = lambda: None,
        reranker: CrossEncoder | None = None,
        explore: Explore | None = None,
    ) -> None:
        self.store = store.seen_by(visible)
        self.config = config
        self.system = find_system(config.name)
        self.reranker = reranker
        self.degraded = 0
        self._sources = RetrieverPool(self.store, self.system, config, embedder, proceed)
        self._clock, self._rewriter, self._explore = clock, rewriter, explore
        self._rivals: dict[str, Searcher] = {}
        self._moved_by = ""
        self._told: set[str] = set()
        self._counting = threading.Lock()
        fused = takewhile(lambda stage: not stage.RESCORES, config.finish)  # later scores are those of a stage
        for stage in fused:
            if isinstance(stage, AtLeast) and not config.effective.absolute:
                _log.warning(
                    f"{stage} drops by scores of {config.strategy}, which follow what else was found: it cuts "
                    "by rank or not at all; use floor(...), which has a scale of its own"
                )

    def with_config(self, config: SearchConfig, moved_by: str = "") -> "Searcher":
        """A searcher with another configuration; its results and explanations say what moved its weights, if told.

        It shares what this one has read of the store where both retrieve in the same way.
        """
        other, own = copy(self), self._sources
        other.config, other._moved_by = config, moved_by
        if (config.name, config.retrievers) != (self.config.name, self.config.retrievers):
            other.system = find_system(config.name)
            other._sources = RetrieverPool(self.store, other.system, config, own.embedders, own.proceed)
        return other

    # What a query gets before anything is searched

    def knows(self, intent: str) -> bool:
        """Whether a query may name this intent: any where the system classifies nothing, else its own words."""
        known = self.system.reading.intents
        return not known or intent in known or intent in self.config.intents

    def admitted(self, query: Query) -> Query:
        """The query with its clock, its intent, and the texts that keywords match and that is embedded.

        Every query passes through here once. Raises ConfigError for an empty query, even when no retriever
        matches words, and for an intent that the system does not know.
        """
        reading = self.system.reading
        if query.intent and not self.knows(query.intent):
            raise ConfigError(
                f"{self.config.name} has no intent {quote(query.intent)}; valid: {', '.join(reading.intents)}"
            )
        text = clean_query(query.text if query.matched is None else query.matched)
        if query.matched is None and self.config.rewrite and (other := reading.rewrite(text)) != text:
            text = clean_query(other)
        intent, sure = query.intent, query.confidence
        if not intent:
            intent, sure, _ = reading.classify(query.text)
        embedded = query.rewritten
        free = all(one.recipe is None for one in self._sources.embedders)  # else queries were recorded as asked
        if embedded is None and (rewriter := self._rewriter or (reading.embeds if free else None)):
            embedded = rewriter(query.text)
        return replace(self._timed(query), matched=text, intent=intent, confidence=sure, rewritten=embedded)

    def _timed(self, query: Query) -> Query:
        return query if query.asked_at is not None else replace(query, asked_at=self._clock())

    # Searching

    def search(self, query: Query | str, *, semantic: str | bool = "always") -> SearchResult:
        """Search for one query.

        `semantic` says when vectors are used: always, auto (only if the model is loaded) or never. Raises
        ConfigError for an empty query, and for a strategy that needs vectors when there are none; EmbedderError
        when the embedder fails and the strategy cannot do without vectors.
        """
        query = Query(query, asked_at=self._clock()) if isinstance(query, str) else query
        asked = self.admitted(query)
        sources, config = self._sources, self.config
        mode = str(semantic) if semantic in SEMANTIC else self.system.searching.mode(semantic)
        calls = sources.embedding_calls
        usable = sources.usable() if mode != "never" else []
        vectors = bool(usable) and (mode == "always" or all(embedder.warm() for embedder in usable))
        seconds: dict[str, float] = {}
        begin = time.perf_counter()
        table, strategy, missing, lost = sources.fetch(asked, config, vectors, seconds)
        if missing:
            config = replace(config, finish=stages_without(config.finish, missing))
        if any(isinstance(stage, Mmr) for stage in config.finish):
            table = self.with_vectors(table)
        if reranked(config.finish) is not None:
            masked = table.at_depth(config.depths)
            rows = to_rerank(masked, fuse(masked, strategy), config.finish)
            try:
                table = self.rerank([asked], table, rows)
            except RerankError as error:
                config = replace(config, finish=stages_without(config.finish, {RERANK}))
                lost.append(error)
        if lost:
            self._count(lost)
        notes = [*map(str, lost), *self._notes(config, strategy, missing, vectors, mode)]
        notes += [f"{self._moved_by}: {strategy}"] if self._moved_by else []
        if how := sources.approximate(seconds):
            notes.append(f"vectors were searched by {how}, which may miss some of the nearest")
        masked, ranking, scores = rank_table(table, config, strategy)
        result = SearchResult(
            hits_of(self.store, masked, ranking, strategy, scores),
            masked,
            ranking,
            strategy,
            scores,
            sources.embedding_calls - calls,
            bool(lost),
            tuple(notes),
            config.finish,
            asked,
            seconds | {"search": time.perf_counter() - begin},
            moved_by=self._moved_by,
        )
        other = self._explore.draw(self.config) if self._explore is not None else None
        return result if other is None else self._drafted(result, other, query, semantic)

    def _notes(
        self, used: SearchConfig, strategy: Expr, missing: frozenset[str], vectors: bool, mode: str
    ) -> Iterator[str]:
        """What keywords alone found although vectors were asked for, and the stages left out of `used`."""
        if not vectors:
            if mode == "always" and strategy != self.config.effective:
                own = {space.model for space in self._sources.spaces()}
                own |= {model.partition(":")[0] for model in own}  # lsa:FIT is lsa
                lacked, vault = min(self.config.models - own, default=""), getattr(self.store, "path", "")
                what = f"of {quote(lacked)}" if lacked else "for this search"
                hint = missing_model_hint(lacked, vault, own) or "; add them: steelyard index [--weights FILE]"
                yield f"the vault has no vectors {what}, so keywords answered alone{hint}"
        elif strategy.signals & EMBEDDING:
            for lacks in self._sources.without_vectors():
                yield f"{lacks} no vectors of the model, so keywords alone find these (run steelyard index)"
        for stage in self.config.finish:
            if stage not in used.finish and type(stage) in _LEFT_OUT:
                gone = {"vectors" if name in EMBEDDING else name for name in stage.signals & missing}
                names = " and ".join(sorted(gone)) or "vectors"
                yield f"{stage} was left out: without {names} {_LEFT_OUT[type(stage)]}"

    def _drafted(self, own: SearchResult, other: SearchConfig, query: Query, semantic: str | bool) -> SearchResult:
        """The list with that of another configuration drafted in; without it where that one cannot search."""
        name, query = policy_of(other), replace(query, asked_at=own.query.asked_at)
        try:
            alike = (other.name, other.retrievers) == (self.config.name, self.config.retrievers)
            kept = {} if alike else self._rivals  # weights that are drawn are new each time
            rival = kept.get(name) or kept.setdefault(name, self.with_config(other))
            rival._explore = None
            theirs = rival.search(query, semantic=semantic)
        except SteelyardError as error:
            _log.warning("a list was not interleaved: %s", error)
            return own
        if self._explore is None or theirs.degraded != own.degraded:  # a failure of now decides nothing
            return own
        return drafted(own, theirs, self.config, other, self._explore.coin)

    def _count(self, lost: Sequence[SteelyardError]) -> None:
        """A degraded search: counted every time, and each kind of it told the first time."""
        parts = [error.signal if isinstance(error, RetrieverError) else type(error).__name__ for error in lost]
        with self._counting:
            self.degraded += 1
            new = [error for error, part in zip(lost, parts, strict=True) if part not in self._told]
            self._told |= set(parts)
        for error in new:
            _log.warning("%s: %s", _DEGRADED.get(type(error), _DEGRADED[EmbedderError]), error)

    def with_vectors(self, table: SignalTable) -> SignalTable:
        """The table with the stored vectors of its entries, for stages that compare entries."""
        return replace(table, vectors=self._sources.stored(table.entries))

    def rerank(self, queries: Sequence[Query], table: SignalTable, rows: Bools) -> SignalTable:
        """The table with the re-ranker's scores of these rows (bool[N]); RerankError when it fails."""
        if self.reranker is None:
            raise RerankError("there is no re-ranker; give the searcher one, or leave out the stage rerank")
        scores = np.full(len(table), np.nan)
        for i, query in enumerate(queries):
            chosen = np.flatnonzero(rows[table.offsets[i] : table.offsets[i + 1]]) + table.offsets[i]
            ids = [table.entries[table.entry[row]] for row in chosen]
            texts = {entry.id: content(entry) for entry in self.store.get(ids)}
            if documents := [Document(id_, texts[id_]) for id_ in ids if id_ in texts]:
                scores[chosen[[id_ in texts for id_ in ids]]] = self.reranker.score(query.text, documents)
        return replace(table, columns={**table.columns, RERANK: scores})

    def candidates(self, query: Query, strategy: Expr, vectors: bool = True) -> SignalTable:
        """Build the table of one query, fetching only the signals that the strategy turns out to need.

        It contains facts only when the strategy computes signals from them. Without `vectors` no vectors are
        searched, even when the strategy names no retriever and would rank what all of them find.
        """
        return self._sources.fetch(self._timed(query), self.config, vectors, {}, strategy)[0]

    def context(
        self,
        text: str,
        filters: Filters = EVERYTHING,
        *,
        semantic: str | bool | None = None,
        topup_recent: bool | None = None,
    ) -> tuple[list[Hit], int]:
        """Return relevant entries, filled up with recent ones to the limit, and how many pass the filters.

        For a text that counts as no query, all are recent ones. Recent entries have no score, pass the same
        filters and are not repeated. `semantic` and `topup_recent` are as in `ContextConfig`; by default those of
        the configuration, else the system's own. Source: EchoVault's document, context retrieval.
        """
        usual, configured, limit = self.system, self.config.context, self.config.limit
        choices = (usual.no_query(text) or topup_recent, configured.topup_recent, usual.topup_recent)
        topup = next(choice for choice in choices if choice is not None)
        hits: list[Hit] = []
        asked = self._timed(Query(text, filters=filters))
        scope = self._sources.answers(asked)
        if not usual.no_query(text):
            mode = configured.semantic or usual.semantic if semantic is None else semantic
            result = self.search(asked, semantic=mode)
            hits = list(result.hits)
            if result.emptied:
                _log.info("nothing found: %s", result.emptied)
        if topup:
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
        parts: Sequence[Part] | None = None,
        keep: bool = False,
    ) -> SignalTable:
        """Build the table of many queries, with the complete column of every signal.

        `signals` are the retrievers and scorers to record, `max_depth` is the length of each retriever's list,
        None for all, and `corpus` the hash of what was indexed, for the fingerprint. `progress` wraps the queries.
        `parts` are what `part` gave for these queries, in their order, perhaps in other processes. They are made
        here by default; with `keep` their lists are kept for later recordings of this store, until it changes.

        Raises EmbedderError when the embedder fails, with the number of queries that were done; a recording never
        falls back to keywords.
        """
        names = set(signals)
        admitted = [self.admitted(query) for query in queries]
        clocks = [query.asked_at or 0.0 for query in admitted]
        if parts is None:
            parts = [self.part(admitted, names, max_depth, progress, keep)]
        table = complete(parts, admitted, clocks, self.store.get, self._sources.homes(names))
        cut = {name: max_depth for name in names & RETRIEVERS - set(LAYERS) if max_depth}
        return replace(table, fingerprint=self.fingerprint(corpus, cut))

    def part(
        self,
        queries: Sequence[Query],
        signals: Iterable[str],
        max_depth: int | None,
        progress: Callable[[Sequence[Query]], Iterable[Query]] = iter,
        keep: bool = False,
    ) -> Part:
        """The rows of a recording of some queries that are `admitted`, for `record`, which has the parameters."""
        sources = self._sources
        names = sorted(signals, key=lambda name: (name in DEPENDENT, name))
        if how := sources.approximate(names):
            raise ConfigError(f"cannot record an approximate search ({how}); open the store without hnsw")
        depths = {name: None if name in LAYERS else max_depth for name in names if name in RETRIEVERS}
        scorers = {name: sources.scorer(name) for name in names if name in SCORERS}
        lists: list[Lists] = []
        ends: list[Ends] = []
        try:
            for i, query in enumerate(progress(queries)):
                if i % QUERIES_PER_BLOCK == 0:
                    sources.expect(depths.keys(), queries[i : i + QUERIES_PER_BLOCK])
                retrieved: dict[str, Sequence[ScoredId]] = {}
                for name, depth in depths.items():
                    retrieved[name] = sources.retrieve(name, query, depth, retrieved, keep)
                lists.append(retrieved)
                ends.append(sources.ends(retrieved, query, keep))
            return part(queries, lists, scorers, ends)
        except EmbedderError as error:
            raise EmbedderError(f"{error}; {len(lists)} of {len(queries)} queries were done") from None

    def fingerprint(self, corpus: str, max_depth: Mapping[str, int]) -> dict[str, object]:
        """Return what a replay of a recording cannot change, as JSON values."""
        sources, used = self._sources, EMBEDDING & self.config.retrievers.keys()
        own = next(iter(sources.embedders), None)
        return {
            **identity(self.config),
            "corpus": corpus,
            "model": own.model if own else "",
            "recipe": sources.layer(own, "text").recipe if own else "",
            "layers": {name: sources.layer(own, name).recipe for name in LAYERS if own and name in used},
            "max_depth": dict(max_depth),
        }
