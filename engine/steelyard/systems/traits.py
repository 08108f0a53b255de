"""The settings in which systems differ: how they search, show results and assemble a context.

What they index and embed is in `retrievers/reading.py`, because retrievers are built from it without the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steelyard.base.errors import ConfigError, EmbedderError, SteelyardError, shown
from steelyard.config.search_config import default_finish
from steelyard.finish import Stage
from steelyard.fusion import Expr
from steelyard.memory.entry import Entry, Hit
from steelyard.memory.query import is_blank
from steelyard.stores.base import COSINE
from steelyard.systems.forms import scan_result

if TYPE_CHECKING:
    from steelyard.results import SearchResult

SEMANTIC = ("always", "auto", "never")
"""When a search may use vectors: always, only if the model is loaded (auto), or never."""


def known_mode(mode: str | bool) -> str:
    """Return a mode of `SEMANTIC` unchanged; ConfigError for any other."""
    if mode not in SEMANTIC:
        raise ConfigError(f"semantic mode {shown(mode)} is unknown; valid: {', '.join(SEMANTIC)}")
    return str(mode)


@dataclass(frozen=True)
class Searching:
    """How a system retrieves, fuses and finishes."""

    strategy: Expr
    """The fusion of its signals."""
    retrievers: tuple[str, ...]
    """The retrievers that it has."""
    depth: Callable[[int], int]
    """From the limit to the number of candidates that a retriever returns."""
    limit: int = 10
    """The number of results by default."""
    ask: Callable[[float | None, int], Expr] | None = None
    """From a threshold of similarity (None: the system's own) and a limit to the strategy, where it depends on
    them."""
    direct: Callable[[float | None, int], tuple[Expr, tuple[Stage, ...]]] | None = None
    """From a threshold and a limit to the strategy and stages of a second search, where a system has one."""
    finish: Callable[[int], tuple[Stage, ...]] = default_finish
    """From the limit to the stages after fusion."""
    keywords_only: Expr | None = None
    """The strategy when there are no vectors; None for what is left of `strategy`."""
    field_weights: Mapping[str, float] = field(default_factory=dict)
    """FTS5's bm25 weights by field."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """Where the query's scope acts, by retriever; before_cut for those not named."""
    parameters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The parameters of its retrievers, where they differ from the retrievers' own defaults."""
    similarity: str = COSINE
    """How vectors compare: cosine or l2."""
    survives: tuple[type[SteelyardError], ...] = (EmbedderError,)
    """The errors of the vector search after which the system answers by keywords alone."""
    dispensable: frozenset[str] = frozenset()
    """The retrievers whose failure a search survives, without them."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """The retriever that stands in for one that failed."""
    mode: Callable[[str | bool], str] = known_mode
    """Reads a caller's semantic mode to one of `SEMANTIC`."""


Present = Callable[[Hit], dict[str, object]]
PresentIn = Callable[[Hit, "SearchResult"], dict[str, object]]


@dataclass(frozen=True)
class Showing:
    """The forms in which a system returns a hit, as JSON values."""

    present: Present
    """The whole result."""
    scan: Present = scan_result
    """The summary for a first look, before whole entries are read by id."""
    within: PresentIn | None = None
    """The whole result where it shows more than one hit has: ranks, sources, the query."""
    scan_within: PresentIn | None = None
    """The summary where it shows more than one hit has."""
    rows: Callable[[SearchResult, bool], list[dict[str, object]]] | None = None
    """The results of a direct search, which may have an entry several times, with the whole texts or without."""
    content: Callable[[Entry], str] | None = None
    """The whole text, where results lack it unless they are asked for it."""

    def show(
        self, hit: Hit, result: SearchResult | None, mode: str = "full", content: bool = False
    ) -> dict[str, object]:
        """A hit of a result in one of the two forms, scan or full; without a result what the hit alone has.

        With `content` it has the whole text, where the system leaves that out by default.
        """
        if result is not None:
            result, hit = result.behind(hit)
        alone, within = (self.scan, self.scan_within) if mode == "scan" else (self.present, self.within)
        shown = alone(hit) if within is None or result is None else within(hit, result)
        return shown | {"content": self.content(hit.entry)} if content and self.content else shown


@dataclass(frozen=True)
class Contexts:
    """How a system assembles a context: relevant entries, filled up with recent ones."""

    semantic: str = "always"
    """When the search for relevant entries may use vectors."""
    topup_recent: bool = False
    """Whether recent entries are added when the search finds fewer than the limit."""
    no_query: Callable[[str], bool] = is_blank
    """Whether a text counts as no query, so that the context is the newest entries."""
