"""One client while it calls a tool: what it may ask of the memory, and what is logged of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from steelyard.base.errors import ConfigError, MachineError, shown
from steelyard.feedback.log import ACTIONS, FeedbackLog, append, append_act
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry, Hit
from steelyard.memory.filters import Filters
from steelyard.memory.query import Query
from steelyard.results import SearchResult
from steelyard_eval.extensions.serve.recent import Recent
from steelyard_eval.vaults.read import OpenVault

MOST_LOGS = 1_000
"""Configurations whose records are known to be in the log."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoggedSearch:
    """What a search found, its hits best first; `query_id` is empty where it was not logged."""

    result: SearchResult
    searcher: Searcher
    query_id: str

    @property
    def hits(self) -> Sequence[Hit]:
        """Best first."""
        return self.result.hits


class ServerLog:
    """The log of a server: threads take turns; `clock` gives seconds UTC."""

    def __init__(self, path: str, clock: Callable[[], float]) -> None:
        self.path = path
        self._clock = clock
        self._turn = threading.Lock()
        self._writers: dict[int, FeedbackLog] = {}
        append(path, [])  # refused now, where it cannot be written

    def shown(self, searcher: Searcher, result: SearchResult, client: str) -> str:
        """Log a list; empty, with a warning, where the log cannot be written: nobody's search fails for that."""
        with self._turn:
            known = self._writers.get(id(searcher.config))
            if known is None or known.config is not searcher.config:
                known = FeedbackLog(self.path, searcher.config, clock=self._clock)
                if len(self._writers) >= MOST_LOGS:
                    self._writers.clear()
                self._writers[id(searcher.config)] = known
            try:
                return known.shown(result, client)
            except (MachineError, ConfigError) as error:
                _log.warning("a search was not logged: %s", error)
                return ""

    def act(self, query_id: str, entry_id: str, action: str, client: str) -> None:
        """Log an act; ConfigError for a list that this client was not shown, MachineError for a log that fails."""
        with self._turn:
            append_act(self.path, query_id, entry_id, action, client, self._clock, client)


@dataclass(frozen=True)
class Caller:
    """A client: its name for the log, what it was shown lately, and the memory as it is now."""

    name: str
    recent: Recent
    memory: OpenVault
    log: ServerLog | None

    def search(self, query: Query, limit: int | None = None, changed: Searcher | None = None) -> LoggedSearch:
        """Search as `steelyard search` does, and log the list; `changed` searches in place of the usual one."""
        searcher = changed or self.memory.searcher(limit)
        with self.memory.snapshot():
            result = searcher.search(query)
        if self.log is None:
            return LoggedSearch(result, searcher, "")
        self._infer(self.recent.quoted(query.text), "cited")
        query_id = self.log.shown(searcher, result, self.name)
        if query_id:
            self.recent.shown(query_id, query.text, [hit.entry.id for hit in result.hits])
        return LoggedSearch(result, searcher, query_id)

    def weighted(self, limit: int | None, weights: dict[str, float]) -> Searcher | None:
        """The searcher with other weights; None where its strategy has none of these names."""
        searcher = self.memory.searcher(limit)
        try:
            return searcher.with_config(searcher.config.with_weights(weights))
        except ConfigError:
            return None

    def recent_entries(self, filters: Filters, limit: int) -> tuple[list[Hit], int]:
        """The newest entries, and how many there are."""
        with self.memory.snapshot():
            return self.memory.searcher(limit).context("", filters)

    def read(self, ids: Sequence[str], opened: bool = True) -> list[Entry]:
        """Whole entries by id, without those that are not there; each that a list showed counts as opened."""
        with self.memory.snapshot():
            entries = self.memory.searcher(None).store.get(list(ids))
        if opened:
            self.opened(entries)
        return entries

    def listed(self, filters: Filters, most: int = -1) -> list[Entry]:
        """The entries that pass, newest first; all by default."""
        with self.memory.snapshot():
            return self.memory.searcher(None).store.recent(filters, most)

    def opened(self, entries: Sequence[Entry]) -> None:
        """Log that entries were opened, where a list showed them."""
        if self.log is not None:
            pairs = ((self.recent.newest(entry.id, once="opened"), entry.id) for entry in entries)
            self._infer([(query_id, name) for query_id, name in pairs if query_id], "opened")

    def act(self, query_id: str, entry_id: str, action: str) -> None:
        """Log an act that the client reports; ConfigError for an unknown list or action."""
        log = self._kept()
        if action not in ACTIONS:
            raise ConfigError(f"there is no action {shown(action)}; valid: {', '.join(ACTIONS)}")
        log.act(query_id, entry_id, action, self.name)

    def act_on(self, entry_id: str, action: str, text: str | None = None) -> str:
        """Log an act on the newest list that showed an entry; the list, or ConfigError where there is none."""
        self._kept()
        query_id = self.recent.newest(entry_id, text)
        if not query_id:
            of = "" if text is None else f" for {shown(text)}"
            raise ConfigError(f"no list of this client showed {shown(entry_id)}{of} lately; search first")
        self.act(query_id, entry_id, action)
        return query_id

    def _kept(self) -> ServerLog:
        if self.log is None:
            raise ConfigError("this server keeps no log; start it with --log FILE")
        return self.log

    def _infer(self, pairs: Sequence[tuple[str, str]], action: str) -> None:
        for query_id, entry_id in pairs:
            try:
                self.act(query_id, entry_id, action)
            except (MachineError, ConfigError) as error:  # what nobody reported is nobody's error
                _log.warning("an act was not logged: %s", error)
