"""The two search calls that Cortex-Mem's document names, each as a plain method and as a coroutine.

memory = CortexMem(Vault("cortex-mem-acme.db"), embedder)
memory.layered_semantic_search("rotate keys", SearchOptions(limit=5, scope="cortex://session/"))
await memory.layered_semantic_search_async("rotate keys")
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from steelyard.base.errors import ConfigError, quote
from steelyard.config import SearchConfig
from steelyard.embedders.embed import Embedder
from steelyard.extensions.cortex_client.rewriting import Rewriter
from steelyard.extensions.network.chat import Chat
from steelyard.fusion.layered import LAST
from steelyard.live.search import Searcher
from steelyard.memory.entry import Hit
from steelyard.memory.query import EVERYTHING, Filters, Query, is_blank
from steelyard.results import SearchResult
from steelyard.stores.base import ReadableStore
from steelyard.systems import find_system
from steelyard.systems.cortex_mem import (
    DIMENSIONS,
    GENERAL,
    SCHEME,
    LayerRow,
    Snippet,
    beginning,
    content,
    rows,
    snippet,
    snippet_shipped,
    uri_or_id,
)

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
    created: Mapping[str, object] | None = None
    """From when on and until when results were made, as ``{"from": "2026-01-01", "before": "2026-02-01"}``."""
    detect_intent: bool = True
    """Whether the query's intent decides the threshold; else it is that of general queries."""

    def filters(self) -> Filters:
        """The entries that may be found; ConfigError for a dimension there is none of, or a date that is none."""
        if self.dimension and self.dimension not in DIMENSIONS:
            raise ConfigError(f"unknown dimension {quote(self.dimension)}; valid: {', '.join(DIMENSIONS)}")
        filters = Filters.of({"created_at": dict(self.created)}) if self.created else EVERYTHING
        for prefix in (self.scope, f"{SCHEME}{self.dimension}/" if self.dimension else ""):
            filters &= Filters.of({"uri": {"prefix": prefix}}) if prefix else EVERYTHING
        people = list(self.participants)
        return filters & (Filters.of({"participants": {"any": people}}) if people else EVERYTHING)


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
        self,
        store: ReadableStore,
        embedder: Embedder | None,
        *,
        profile: str = "documented",
        chat: Chat | None = None,
    ) -> None:
        self.system = find_system(f"cortex_mem:{profile}")
        self._model = embedder.model if embedder else ""
        self._stopping = threading.local()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="cortex-mem")
        rewriter = Rewriter.of(chat, store) if chat else None
        config = self._config(SearchOptions(), layered=True)
        self._searcher = Searcher(store, config, embedder, rewriter=rewriter, proceed=self._proceed)

    # The document's two calls

    def semantic_search(self, query: str, options: SearchOptions | None = None) -> list[MemoryHit]:
        """Every layer of everything, best first; an entry may be found by several of its layers.

        ConfigError for an empty query, which finds nothing in the profile shipped.
        """
        asked = options or SearchOptions()
        if self._shipped and is_blank(query):
            return []
        result = self.search(query, asked, layered=False)
        if self._newest:
            return [self._hit(hit, result, asked) for hit in result.hits]
        return [self._row(row, result, asked) for row in rows(result)]

    def layered_semantic_search(self, query: str, options: SearchOptions | None = None) -> list[MemoryHit]:
        """From abstracts to details, relaxed until something is found; see `semantic_search` for errors."""
        asked = options or SearchOptions()
        if self._shipped and is_blank(query):
            return []
        result = self.search(query, asked)
        progress = result.progress
        if self._shipped and not self._newest and progress is not None and progress.step[0] == LAST:
            return self.semantic_search(query, asked)  # the program's last resort, of the query as asked
        return [self._hit(hit, result, asked) for hit in result.hits]

    async def semantic_search_async(self, query: str, options: SearchOptions | None = None) -> list[MemoryHit]:
        """`semantic_search`, awaited; cancelled, it never starts, or stops before its next layer."""
        return await self._awaited(self.semantic_search, query, options)

    async def layered_semantic_search_async(
        self, query: str, options: SearchOptions | None = None
    ) -> list[MemoryHit]:
        """`layered_semantic_search`, awaited; cancelled, it never starts, or stops before its next layer."""
        return await self._awaited(self.layered_semantic_search, query, options)

    # The engine's own

    def search(self, query: str, options: SearchOptions, *, layered: bool = True) -> SearchResult:
        """The engine's own result, with its table, explanation, progress and times."""
        intent = "" if options.detect_intent else GENERAL
        as_asked = query if self._shipped and not (layered or self._newest) else None  # rewritten if layered
        asked = Query(query, filters=options.filters(), intent=intent, rewritten=as_asked)
        return self._searcher.with_config(self._config(options, layered)).search(asked)

    def close(self) -> None:
        """Wait for the awaited searches that run, and end their threads."""
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Inside

    def _config(self, options: SearchOptions, layered: bool) -> SearchConfig:
        return self.system.config(options.limit, self._model, threshold=options.threshold, direct=not layered)

    def _hit(self, hit: Hit, found: SearchResult, options: SearchOptions) -> MemoryHit:
        text, asked = content(hit.entry), found.query.embedded if self._newest else found.query.text
        part = Snippet(snippet_shipped(text, asked)) if self._shipped else snippet(text, asked)
        return MemoryHit(uri_or_id(hit.entry), hit.score or 0.0, part, text if self._whole(options) else "")

    def _row(self, row: LayerRow, found: SearchResult, options: SearchOptions) -> MemoryHit:
        part = Snippet(beginning(row.text)) if self._shipped else snippet(row.text, found.query.text)
        whole = row.text if self._whole(options) else ""
        return MemoryHit(uri_or_id(row.entry), row.score, part, whole, row.layer)

    @property
    def _shipped(self) -> bool:
        return self.system.profile in ("shipped", "newest")

    @property
    def _newest(self) -> bool:
        return self.system.profile == "newest"

    def _whole(self, options: SearchOptions) -> bool:
        return options.include_content or self._shipped

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
        """A search in a thread; its event is set when the task is cancelled, and read before each layer."""
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
