"""Fetches what a strategy ranks: the table of one query as far as it is needed, or that of many in full."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np

from steelyard.base.errors import ConfigError, EmbedderError, LostError, SteelyardError
from steelyard.config.search_config import SearchConfig
from steelyard.embedders.embed import Embedder
from steelyard.fusion import Expr
from steelyard.live.identity import identity
from steelyard.live.sources import KeptLists, Sources
from steelyard.memory.query import Query
from steelyard.retrievers import DEPENDENT, EMBEDDING, LAYERS, RETRIEVERS, SCORERS
from steelyard.retrievers.directories import Directories
from steelyard.signals import PRIORS
from steelyard.stores.base import Found, Readable
from steelyard.systems.base import System
from steelyard.table.join import Ends, Lists, Part, ScoreIds, complete, join, part
from steelyard.table.signal_table import SignalTable

NOTHING = part([Query("")], [{}], {})
"""The rows of a query of which nothing has been asked yet."""
BLOCK = 128
"""Queries of a recording that are prepared together."""


class Candidates:
    """The candidates of one system over what a caller sees of a store; the parameters are those of `Searcher`."""

    def __init__(
        self,
        store: Readable,
        system: System,
        config: SearchConfig,
        embedder: Embedder | Sequence[Embedder] | None,
        proceed: Callable[[], None],
    ) -> None:
        self._store, self._system, self._config, self._proceed = store, system, config, proceed
        self.sources = Sources(store, system, config, embedder)
        self._directories = Directories(store, system.reading.directory)

    def with_config(self, config: SearchConfig) -> Candidates:
        """The same for a configuration that retrieves in the same way; what was read of the store is shared."""
        other = copy(self)
        other._config = config
        return other

    # Of one query

    def surviving(
        self, query: Query, vectors: bool, seconds: dict[str, float]
    ) -> tuple[SignalTable, Expr, frozenset[str], list[SteelyardError]]:
        """The candidates by the strategy that is left without what fails; what is missing, what failed."""
        missing = frozenset() if vectors else EMBEDDING
        if self._left(missing) is None and not self._store.count():
            missing = frozenset()  # where nothing is visible nothing lacks a vector
        lost: list[SteelyardError] = []
        while True:
            strategy = self._available(missing)
            try:
                return self.of(query, strategy, missing, seconds), strategy, missing, lost
            except SteelyardError as error:
                if not isinstance(error, (LostError, *self._system.searching.survives)):
                    raise
                gone = frozenset({error.signal}) if isinstance(error, LostError) else EMBEDDING
                if gone <= missing or self._left(missing | gone) is None:
                    raise
                missing |= gone
                lost.append(error)

    def of(self, query: Query, strategy: Expr, missing: frozenset[str], seconds: dict[str, float]) -> SignalTable:
        """The table of one query with the signals that its strategy needs; `seconds` takes the times of lists."""
        lists: dict[str, Sequence[Found]] = {}
        scorers: list[str] = []
        facts, ends = self._read(strategy)
        table, possible = self._table(query, lists, scorers, facts, ends), self._retrievable(missing)
        while wanted := self._wanted(table, strategy, missing, possible):
            for name in wanted:
                if name in SCORERS:
                    scorers.append(name)
                else:
                    self._proceed()
                    begin = time.perf_counter()
                    lists[name] = self.sources.retrieve(name, query, self.sources.settings(name).depth, lists)
                    seconds[name] = time.perf_counter() - begin
            table = self._table(query, lists, scorers, facts, ends)
        return table

    def _read(self, strategy: Expr) -> tuple[bool, frozenset[str]]:
        """Whether a strategy and the stages read facts of entries, and the retrievers whose ends they read."""
        facts = bool((strategy.signals() & PRIORS.keys()) | self._config.finish_facts)
        return facts, strategy.reads_ends | self._config.finish_ends

    def _wanted(
        self, table: SignalTable, strategy: Expr, missing: frozenset[str], possible: Sequence[str]
    ) -> list[str]:
        """What has to be fetched next; a retriever stands behind those that it starts from."""
        instead = self._system.searching.instead
        needs = dict(strategy.needs(table, possible))
        needs |= dict.fromkeys(sorted(self._config.needs - missing), np.ones(len(table.queries), dtype=bool))
        names = {name for name, queries in needs.items() if queries.any()}
        for name in names & DEPENDENT & self._config.retrievers.keys():
            starts = self._config.before(name)
            names |= {instead.get(other, other) if other in missing else other for other in starts} & set(possible)
        return sorted(names - table.columns.keys(), key=lambda name: (name in DEPENDENT, name))

    def _retrievable(self, missing: frozenset[str]) -> list[str]:
        """The system's retrievers that are not missing; those that need vectors only where there are any."""
        lost = missing if self.sources.has_vectors() else missing | EMBEDDING
        return [name for name in self._config.retrievers if name not in lost]

    def _left(self, missing: frozenset[str]) -> Expr | None:
        """The strategy that is left without these signals; others stand in for some."""
        instead = {lost: other for lost, other in self._system.searching.instead.items() if lost in missing}
        config = self._config.with_substitutes(instead) if instead else self._config
        return config.without(missing) if missing else config.effective

    def _available(self, missing: frozenset[str]) -> Expr:
        """The strategy, or what is left of it without these signals."""
        left = self._left(missing)
        if left is None:
            raise ConfigError(
                f"strategy {self._config.effective} needs vectors, and there are none "
                "(no embedder, or none of its vectors in the vault); index the vault with an embedder, or choose "
                "a keyword strategy"
            )
        return left

    # Of many queries

    def record(
        self,
        parts: Sequence[Part],
        queries: Sequence[Query],
        signals: Iterable[str],
        max_depth: int | None,
        corpus: str,
    ) -> SignalTable:
        """See Searcher.record; the queries are admitted already."""
        names = set(signals)
        clocks = [query.asked_at or 0.0 for query in queries]
        homes = self._directories.places if names & set(LAYERS) else None
        table = complete(parts, queries, clocks, self._store.get, homes)
        cut = {name: max_depth for name in names & RETRIEVERS - set(LAYERS) if max_depth}
        return replace(table, fingerprint=self.fingerprint(corpus, cut))

    def part(
        self,
        queries: Sequence[Query],
        signals: Iterable[str],
        max_depth: int | None,
        progress: Callable[[Sequence[Query]], Iterable[Query]] = iter,
        kept: KeptLists | None = None,
    ) -> Part:
        """See Searcher.part; the queries are admitted already."""
        names = sorted(signals, key=lambda name: (name in DEPENDENT, name))
        if how := self.sources.approximate(names):
            raise ConfigError(f"a recording is exact, and this store is searched by {how}; open it without hnsw")
        depths = {name: None if name in LAYERS else max_depth for name in names if name in RETRIEVERS}
        lists: list[Lists] = []
        ends: list[Ends] = []
        kept = None if kept is None else kept.at(self._store.revision())
        try:
            for i, query in enumerate(progress(queries)):
                if i % BLOCK == 0:
                    self.sources.expect(depths, queries[i : i + BLOCK])
                retrieved: dict[str, Sequence[Found]] = {}
                for name, depth in depths.items():
                    retrieved[name] = self.sources.retrieve(name, query, depth, retrieved, kept)
                lists.append(retrieved)
                ends.append(self.sources.ends(retrieved, query, kept))
            return part(queries, lists, self._scores(name for name in names if name in SCORERS), ends)
        except EmbedderError as error:
            raise EmbedderError(f"{error}; {len(lists)} of {len(queries)} queries were done") from None

    def fingerprint(self, corpus: str, max_depth: Mapping[str, int]) -> dict[str, object]:
        """Return what a replay of a recording cannot change, as JSON values."""
        embedders = self.sources.embedders
        layers = [name for name in LAYERS if name in EMBEDDING & self._config.retrievers.keys() and embedders]
        return {
            **identity(self._config),
            "corpus": corpus,
            "model": embedders[0].model if embedders else "",
            "recipe": self.sources.recipe("text"),
            "layers": {name: self.sources.recipe(name) for name in layers},
            "max_depth": dict(max_depth),
        }

    def _scores(self, names: Iterable[str]) -> dict[str, ScoreIds]:
        return {name: partial(self.sources.score, name) for name in names}

    def _table(
        self, query: Query, lists: Lists, scorers: Sequence[str], facts: bool, ends: frozenset[str]
    ) -> SignalTable:
        get = self._store.get if facts else None
        if not lists:
            return complete([NOTHING], [query], [query.asked_at or 0.0], get, None)
        homes = self._directories.places if lists.keys() & set(LAYERS) else None
        scales = self.sources.ends(sorted(lists.keys() & ends), query)
        return join([query], [query.asked_at or 0.0], [lists], self._scores(scorers), get, homes, [scales])
