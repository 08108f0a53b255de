"""Live search: a searcher combines a store, a configuration and an embedder.

Live search makes a table with one query. A recording is a table with thousands, filled by the same
retrievers. `rank_table` turns either into ranked lists.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from itertools import takewhile

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.base.errors import ConfigError, EmbedderError, LostError, RerankError, SteelyardError
from steelyard.config.search_config import LISTS, SearchConfig, policy_of
from steelyard.embedders.embed import Embedder
from steelyard.feedback.team_draft import Explore, drafted
from steelyard.finish import AtLeast, Ranking, diversified, finish, reranked, stages_without, to_rerank
from steelyard.fusion import Expr, compile_plan, fuse
from steelyard.live.admission import Admission
from steelyard.live.candidates import Candidates
from steelyard.live.notes import approximately, without_vectors
from steelyard.live.sources import KeptLists
from steelyard.memory.entry import Hit
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard.memory.query import Query
from steelyard.memory.text import content
from steelyard.rerank import CrossEncoder, Document
from steelyard.results import SearchResult, hits_of
from steelyard.retrievers import EMBEDDING
from steelyard.stores.base import Readable
from steelyard.stores.federation import plain
from steelyard.systems import find_system
from steelyard.table.join import Part
from steelyard.table.signal_table import RERANK, SignalTable

_log = logging.getLogger(__name__)
_DEGRADED: dict[type[SteelyardError], str] = {
    EmbedderError: "the embedder failed, keywords answer alone",
    LostError: "the search goes on without one of its retrievers",
    RerankError: "the list is shown as it was fused",
}


def _part(error: SteelyardError) -> str:
    """What has failed, so that each failure is logged once."""
    return error.signal if isinstance(error, LostError) else type(error).__name__


def rank_table(table: SignalTable, config: SearchConfig, strategy: Expr) -> tuple[SignalTable, Ranking]:
    """Mask the table to the configuration's depths, fuse and finish; return the masked table and the ranking."""
    masked, _, ranking = _ranked(table, config, strategy)
    return masked, ranking


def _ranked(table: SignalTable, config: SearchConfig, strategy: Expr) -> tuple[SignalTable, Floats, Ranking]:
    """See `rank_table`; with the fused scores between them."""
    masked = table.at_depth(config.depths)
    plan = compile_plan(masked, strategy)
    scores = plan.scores()
    return masked, scores, finish(masked, scores, config.finish, plan.ties(masked))


class Searcher:
    """Searches one store with one configuration.

    `degraded` counts the searches in which the embedder, the re-ranker, or a retriever that the system can do
    without failed; the first of each is logged as a warning.

    Threads may share a searcher and its vault. A search reads a single state of the vault when its thread
    has opened a snapshot; without one, an entry that is deleted during the search is a VaultError.

    Parameters
    ----------
    store : Readable
        The vault, or a federation of several.
    config : SearchConfig
        How to search.
    embedder : Embedder, sequence of Embedder or None
        Embeds the queries; for a federation whose tiers use different models, the embedders of all. Without
        one, or when the store has no vectors of its model, the strategy falls back to keywords. Tiers
        without vectors of any embedder are searched by keywords, and a note of the result lists them.
    clock : callable
        The time (seconds UTC) of queries that have none.
    visible : Filters
        What the caller may see: no query, filter or strategy returns anything else, and no statistics are
        computed from anything else, except those in the embedder, such as LSA fitted on more.
    rewriter : callable or None
        Gives the text that is embedded in place of the one asked.
    proceed : callable
        Called before each retriever; what it raises ends the search.
    explore : Explore or None
        Interleaves another ranking in a share of the searches, for logs that more can be learned from.

    Attributes
    ----------
    degraded : int
        The number of degraded searches, as above.

    Raises
    ------
    ConfigError
        For a configuration over recorded lists, which cannot be searched live.
    """

    def __init__(
        self,
        store: Readable,
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
        if config.system == LISTS:
            raise ConfigError(
                f"{config.strategy} fuses recorded lists of other engines, which live search cannot query; "
                "fuse them where the lists come from"
            )
        self.store = store.seen_by(visible)
        self.config = config
        self.system = find_system(config.name)
        self._candidates = Candidates(self.store, self.system, config, embedder, proceed)
        self._sources = self._candidates.sources
        self._admission = Admission(self.system.reading, config, clock, rewriter)
        self._explore = explore
        self._embedder, self._proceed = embedder, proceed
        self._rivals: dict[str, Searcher] = {}
        self.reranker = reranker
        self.degraded = 0
        self._told: set[str] = set()
        fused = takewhile(lambda stage: not stage.RESCORES, config.finish)  # later scores are those of a stage
        for stage in fused if not config.effective.absolute else ():
            if isinstance(stage, AtLeast):
                _log.warning(
                    "%s drops by scores of %s, which follow what else was found: it cuts by rank or not at all; "
                    "use floor(...), which has a scale of its own",
                    stage,
                    config.strategy,
                )
        self._counting = threading.Lock()

    def with_config(self, config: SearchConfig) -> Searcher:
        """A searcher with another strategy, finish or limit that shares what this one has read of the store.

        Raises ConfigError for a configuration that retrieves in another way.
        """
        if (config.name, config.retrievers) != (self.config.name, self.config.retrievers):
            raise ConfigError(f"{config.name} retrieves in another way than this searcher; make a searcher of it")
        other = copy(self)
        other.config, other._candidates = config, self._candidates.with_config(config)
        other._admission = replace(self._admission, config=config)
        return other

    def knows(self, intent: str) -> bool:
        """See Admission.knows."""
        return self._admission.knows(intent)

    def admitted(self, query: Query) -> Query:
        """See Admission.of; ConfigError for an empty query, and for an intent that the system does not know."""
        return self._admission.of(query)

    # Searching

    def search(self, query: Query | str, *, semantic: str | bool = "always") -> SearchResult:
        """Search for one query.

        Parameters
        ----------
        query : Query or str
            What to search for.
        semantic : str or bool
            When vectors are used: always, auto (only if the model is loaded) or never.

        Raises
        ------
        ConfigError
            For an empty query, and for a strategy that needs vectors when there are none.
        EmbedderError
            When the embedder fails and the strategy cannot do without vectors.
        """
        query = Query(query) if isinstance(query, str) else query
        asked = self.admitted(query)
        calls = self._sources.embedding_calls
        mode = self.system.searching.mode(semantic)
        vectors = self._wants_vectors(mode)
        seconds: dict[str, float] = {}
        begin = time.perf_counter()
        table, strategy, missing, lost = self._candidates.surviving(asked, vectors, seconds)
        table, config, failed = self._rescored(asked, table, strategy, missing)
        lost += failed
        if lost:
            self._count(lost)
        notes = without_vectors(self._sources, self.config, config, strategy, vectors, mode)
        masked, scores, ranking = _ranked(table, config, strategy)
        hits = hits_of(self.store, masked, ranking, strategy, scores)
        result = SearchResult(
            hits,
            masked,
            ranking,
            strategy,
            self._sources.embedding_calls - calls,
            bool(lost),
            (*(map(str, lost) if lost else notes), *approximately(self._sources, seconds)),
            config.finish,
            asked,
            seconds | {"search": time.perf_counter() - begin},
        )
        other = self._explore.draw(self.config) if self._explore is not None else None
        return result if other is None else self._drafted(result, other, query, semantic)

    def _drafted(self, own: SearchResult, other: SearchConfig, query: Query, semantic: str | bool) -> SearchResult:
        """The list with that of another configuration drafted in; without it where that one cannot search."""
        try:
            theirs = self._rival(other).search(replace(query, asked_at=own.query.asked_at), semantic=semantic)
        except SteelyardError as error:
            _log.warning("a list was not interleaved: %s", error)
            return own
        if self._explore is None or theirs.degraded != own.degraded:  # a failure of now decides nothing
            return own
        return drafted(own, theirs, self.config, other, self._explore.coin)

    def _rival(self, other: SearchConfig) -> Searcher:
        """A searcher of the other configuration, which shares with this one what it can, or is kept."""
        if (other.name, other.retrievers) == (self.config.name, self.config.retrievers):
            rival = self.with_config(other)
            rival._explore = None
            return rival
        name = policy_of(other)
        if name not in self._rivals:
            parts, reads = (self.store, other, self._embedder), self._admission
            self._rivals[name] = Searcher(
                *parts, clock=reads.clock, rewriter=reads.rewriter, proceed=self._proceed, reranker=self.reranker
            )
        return self._rivals[name]

    def _rescored(
        self, query: Query, table: SignalTable, strategy: Expr, missing: frozenset[str]
    ) -> tuple[SignalTable, SearchConfig, list[SteelyardError]]:
        """The table with a re-ranker's scores; without a re-ranker, or when it fails, the stage is left out."""
        config = (
            replace(self.config, finish=stages_without(self.config.finish, missing)) if missing else self.config
        )
        if diversified(config.finish):
            table = self.with_vectors(table)
        if reranked(config.finish) is None:
            return table, config, []
        masked = table.at_depth(config.depths)
        rows = to_rerank(masked, fuse(masked, strategy), config.finish)
        try:
            return self.rerank([query], table, rows), config, []
        except RerankError as error:
            return table, replace(config, finish=stages_without(config.finish, {RERANK})), [error]

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
            known = [(row, id_) for row, id_ in zip(chosen, ids, strict=True) if id_ in texts]
            documents = [Document(id_, texts[id_]) for _, id_ in known]
            if documents:
                scores[[row for row, _ in known]] = self.reranker.score(query.text, documents)
        return replace(table, columns={**table.columns, RERANK: scores})

    def candidates(self, query: Query, strategy: Expr, vectors: bool = True) -> SignalTable:
        """Build the table of one query, fetching only the signals that the strategy turns out to need.

        It contains facts only when the strategy computes signals from them. Without `vectors` no vectors are
        searched, even when the strategy names no retriever and would rank what all of them find.
        """
        timed, missing = self._admission.timed(query), frozenset() if vectors else EMBEDDING
        return self._candidates.of(timed, strategy, missing, {})

    def context(
        self,
        text: str,
        filters: Filters = EVERYTHING,
        *,
        semantic: str | bool | None = None,
        topup_recent: bool | None = None,
    ) -> tuple[list[Hit], int]:
        """Return relevant entries, filled up with recent ones to the limit.

        For a text that counts as no query, all are recent ones. Recent entries have no score, pass the same
        filters and are not repeated. Source: EchoVault's document, context retrieval.

        Parameters
        ----------
        semantic, topup_recent : optional
            As in `ContextConfig`; by default those of the configuration, else the system's own.

        Returns
        -------
        tuple of list of Hit and int
            The hits, and the number of entries that pass the filters.
        """
        usual, configured = self.system.contexts, self.config.context
        if topup_recent is None:
            topup_recent = configured.topup_recent
        topup = usual.topup_recent if topup_recent is None else topup_recent
        mode = configured.semantic or usual.semantic if semantic is None else semantic
        limit = self.config.limit
        hits: list[Hit] = []
        asked = self._admission.timed(Query(text, filters=filters))
        scope = self._sources.scopes.answers(asked)
        nothing = usual.no_query(text)
        if not nothing:
            result = self.search(asked, semantic=mode)
            hits = list(result.hits)
            if result.emptied:
                _log.info("nothing found: %s", result.emptied)
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
        parts: Sequence[Part] | None = None,
        kept: KeptLists | None = None,
    ) -> SignalTable:
        """Build the table of many queries, with the complete column of every signal.

        Parameters
        ----------
        signals : iterable of str
            The retrievers and scorers to record.
        max_depth : int or None
            The length of each retriever's list; None for all.
        corpus : str
            The hash of what was indexed, for the fingerprint.
        progress : callable
            Wraps the queries, for example to draw a progress bar.
        parts : sequence of Part, optional
            What `part` gave for these queries, in their order, perhaps in other processes; made here by default.
        kept : KeptLists, optional
            Lists of earlier recordings of this store by its embedder.

        Raises
        ------
        EmbedderError
            When the embedder fails, with the number of queries that were done; a recording never falls back
            to keywords.
        """
        admitted = [self.admitted(query) for query in queries]
        if parts is None:
            parts = [self._candidates.part(admitted, signals, max_depth, progress, kept)]
        return self._candidates.record(parts, admitted, signals, max_depth, corpus)

    def part(self, queries: Sequence[Query], signals: Iterable[str], max_depth: int | None) -> Part:
        """The rows of a recording of some queries, for `record`, which has the parameters."""
        return self._candidates.part([self.admitted(query) for query in queries], signals, max_depth)

    # Inside

    def _count(self, lost: Sequence[SteelyardError]) -> None:
        """A degraded search: counted every time, and each kind of it told the first time."""
        with self._counting:
            self.degraded += 1
            new = [error for error in lost if _part(error) not in self._told]
            self._told |= set(map(_part, lost))
        for error in new:
            _log.warning("%s: %s", _DEGRADED.get(type(error), _DEGRADED[EmbedderError]), error)

    def _wants_vectors(self, mode: str) -> bool:
        if mode == "never" or not self._sources.has_vectors():
            return False
        return mode == "always" or all(embedder.warm() for embedder in self._sources.usable())
