"""The two searches of the document as calls, at once or awaited.

memory = CortexMem(Vault("cortex-mem-acme.db"), embedder)
memory.layered_semantic_search("rotate keys", SearchOptions(limit=5, scope="cortex://session/"))
await memory.layered_semantic_search_async("rotate keys")
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from steelyard.chat import Chat
from steelyard.config import SearchConfig
from steelyard.embed import Embedder
from steelyard.entry import Hit
from steelyard.errors import ConfigError, shown
from steelyard.filters import EVERYTHING, Filters
from steelyard.fusion.progress import LAST
from steelyard.query import Query, is_blank
from steelyard.results import SearchResult
from steelyard.search import Searcher
from steelyard.stores.base import Readable
from steelyard.systems import find_system
from steelyard.systems.cortex_mem import FULL, content, finish_full
from steelyard.systems.cortex_mem.intents import GENERAL
from steelyard.systems.cortex_mem.rewriting import Rewriter, profile_of
from steelyard.systems.cortex_mem.snippets import Snippet, beginning, snippet, snippet_shipped
from steelyard.systems.cortex_mem.uris import DIMENSIONS, SCHEME

DIRECT = 0.5
"""How similar the results of the direct search are at least, where nobody asks for another number."""
WORKERS = 8
"""Threads that awaited searches run in, each with its own connection to the vault."""


@dataclass(frozen=True)
class SearchOptions:
    """What a search is asked beside its text (document, section 8.1)."""

    limit: int = 10
    """How many results at most."""
    threshold: float | None = None
    """How similar results are at least; None: by the intent of the query."""
    scope: str = ""
    """The beginning of the URIs that may be found, plain text; all by default."""
    include_content: bool = False
    """Whether results carry their whole text."""
    dimension: str = ""
    """resources, user, agent or session."""
    participants: Sequence[str] = ()
    """Results have one of these."""
    created: Mapping[str, Any] | None = None
    """From when on and until when results were made, as ``{"from": "2026-01-01", "before": "2026-02-01"}``."""
    detect_intent: bool = True
    """Whether the query's intent decides the threshold; else it is that of general queries."""

    def filters(self) -> Filters:
        """The entries that may be found; ConfigError for a dimension there is none of, or a date that is none."""
        if self.dimension and self.dimension not in DIMENSIONS:
            raise ConfigError(f"unknown dimension {shown(self.dimension)}; valid: {', '.join(DIMENSIONS)}")
        found = Filters.of({"created_at": dict(self.created)}) if self.created else EVERYTHING
        for prefix in (self.scope, f"{SCHEME}{self.dimension}/" if self.dimension else ""):
            found &= Filters.of({"uri": {"prefix": prefix}}) if prefix else EVERYTHING
        people = list(self.participants)
        return found & (Filters.of({"participants": {"any": people}}) if people else EVERYTHING)


@dataclass(frozen=True)
class MemoryHit:
    """One result: `layer` is the one that was found by a direct search, empty where all layers were weighed."""

    uri: str
    score: float
    snippet: Snippet
    content: str = ""
    layer: str = ""


class CortexMem:
    """Searches one vault; threads and tasks may share it.

    `chat` rewrites queries, with the profile that the vault holds; without one they are embedded as asked.
    """

    def __init__(
        self, store: Readable, embedder: Embedder | None, *, profile: str = "documented", chat: Chat | None = None
    ) -> None:
        self.store = store
        self.system = find_system(f"cortex_mem:{profile}")
        self._embedder, self._chat = embedder, chat
        self._searchers: dict[str, Searcher] = {}
        self._stopping = threading.local()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="cortex-mem")

    # The document's two calls

    def semantic_search(self, query: str, options: SearchOptions | None = None) -> list[MemoryHit]:
        """Every layer of everything, best first; an entry may be found by several of its layers.

        ConfigError for an empty query, which finds nothing in the profile shipped.
        """
        asked = options or SearchOptions()
        if self._shipped and is_blank(query):
            return []
        return self.direct(asked, self.search(query, asked, layered=False))

    def layered_semantic_search(self, query: str, options: SearchOptions | None = None) -> list[MemoryHit]:
        """From abstracts to details, relaxed until something is found."""
        asked = options or SearchOptions()
        if self._shipped and is_blank(query):
            return []
        found = self.search(query, asked)
        progress = found.progress
        if self._shipped and progress is not None and progress.step[0] == LAST:
            return self.semantic_search(query, asked)  # the program's last resort, of the query as asked
        return [self._hit(hit, found, asked) for hit in found.hits]

    async def semantic_search_async(self, query: str, options: SearchOptions | None = None) -> list[MemoryHit]:
        """`semantic_search`, awaited; see `_awaited` for what cancelling does."""
        return await self._awaited(self.semantic_search, query, options)

    async def layered_semantic_search_async(
        self, query: str, options: SearchOptions | None = None
    ) -> list[MemoryHit]:
        """`layered_semantic_search`, awaited; see `_awaited` for what cancelling does."""
        return await self._awaited(self.layered_semantic_search, query, options)

    # Inside

    def search(self, query: str, options: SearchOptions, *, layered: bool = True) -> SearchResult:
        """The engine's own result, with its table, explanation, progress and times."""
        intent = "" if options.detect_intent else GENERAL
        as_asked = query if self._shipped and not layered else None  # it rewrites for the layered search alone
        asked = Query(query, filters=options.filters(), intent=intent, rewritten=as_asked)
        return self._searcher(options, layered).search(asked)

    def direct(self, options: SearchOptions, found: SearchResult) -> list[MemoryHit]:
        """A result row for each layer of the hits that is similar enough."""
        least = DIRECT if options.threshold is None else options.threshold
        rows = [row for hit in found.hits for row in self._rows(hit, found, least, options)]
        return sorted(rows, key=lambda row: (-row.score, row.uri.encode(), row.layer))[: options.limit]

    def close(self) -> None:
        """Wait for the awaited searches that run, and end their threads."""
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _searcher(self, options: SearchOptions, layered: bool) -> Searcher:
        config = self._config(options, layered)
        key = str((config.limit, str(config.effective), config.finish))
        if key not in self._searchers:
            rewriter = Rewriter(self._chat, profile_of(self.store)) if self._chat else None
            self._searchers[key] = Searcher(
                self.store, config, self._embedder, rewriter=rewriter, proceed=self._proceed
            )
        return self._searchers[key]

    def _config(self, options: SearchOptions, layered: bool) -> SearchConfig:
        model = self._embedder.model if self._embedder else ""
        config = self.system.config(options.limit, model, threshold=options.threshold)
        if layered:
            return config
        least = DIRECT if options.threshold is None else options.threshold
        return replace(config, strategy=FULL, finish=finish_full(options.limit, least))

    def _hit(self, hit: Hit, found: SearchResult, options: SearchOptions) -> MemoryHit:
        text, score = content(hit.entry), hit.score or 0.0
        return MemoryHit(
            hit.entry.uri or hit.entry.id, score, self._snippet(text, found), text if self._whole(options) else ""
        )

    def _rows(self, hit: Hit, found: SearchResult, least: float, options: SearchOptions) -> list[MemoryHit]:
        """A hit once for each of its layers that is similar enough."""
        table, entry = found.table, hit.entry
        row = int(found.ranking.row[hit.rank - 1])
        rows = []
        for layer, text in (("l0", entry.l0), ("l1", entry.l1), ("l2", entry.text)):
            score = float(table.columns[layer][row]) if layer in table.columns else np.nan
            if score >= least:
                part = Snippet(beginning(text)) if self._shipped else snippet(text, self._asked(found))
                rows.append(
                    MemoryHit(entry.uri or entry.id, score, part, text if self._whole(options) else "", layer)
                )
        return rows

    @property
    def _shipped(self) -> bool:
        return self.system.profile == "shipped"

    def _whole(self, options: SearchOptions) -> bool:
        return options.include_content or self._shipped

    def _asked(self, found: SearchResult) -> str:
        return found.query.text

    def _snippet(self, text: str, found: SearchResult) -> Snippet:
        asked = self._asked(found)
        return Snippet(snippet_shipped(text, asked)) if self._shipped else snippet(text, asked)

    def _proceed(self) -> None:
        stop: threading.Event | None = getattr(self._stopping, "event", None)
        if stop is not None and stop.is_set():
            raise asyncio.CancelledError

    async def _awaited(
        self,
        search: Callable[[str, SearchOptions | None], list[MemoryHit]],
        query: str,
        options: SearchOptions | None,
    ) -> list[MemoryHit]:
        """A search in a thread; cancelled, it never starts, or stops before its next layer."""
        stop = threading.Event()

        def run() -> list[MemoryHit]:
            self._stopping.event = stop
            try:
                return search(query, options)
            finally:
                self._stopping.event = None

        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, run)
        except asyncio.CancelledError:
            stop.set()
            raise
