"""What systems differ in, in small values: how they search, show results, and put a context together.

What they index and embed is in `steelyard.reading`, because retrievers are built from that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from steelyard.config import default_finish
from steelyard.entry import Hit
from steelyard.errors import ConfigError, EmbedderError, SteelyardError, shown
from steelyard.finish import Stage
from steelyard.fusion import Expr
from steelyard.query import is_blank
from steelyard.stores.base import COSINE
from steelyard.systems.forms import scan_result

SEMANTIC = ("always", "auto", "never")
"""When a search may use vectors: always, only if the model is loaded, never."""


def known_mode(mode: str | bool) -> str:
    """One of `SEMANTIC`; ConfigError for any other."""
    if mode not in SEMANTIC:
        raise ConfigError(f"semantic mode {shown(mode)} is unknown; valid: {', '.join(SEMANTIC)}")
    return str(mode)


@dataclass(frozen=True)
class Searching:
    """How a system finds, fuses and finishes."""

    strategy: Expr
    """The fusion of its signals."""
    retrievers: tuple[str, ...]
    """The retrievers that it has."""
    depth: Callable[[int], int]
    """How many candidates a retriever returns for a limit."""
    limit: int = 10
    """How many results, where nobody asks for another number."""
    ask: Callable[[float | None, int], Expr] | None = None
    """The strategy for a similarity that results must have (None: the system's own) and a limit, where it depends
    on them."""
    finish: Callable[[int], tuple[Stage, ...]] = default_finish
    """The stages after fusion for a limit."""
    keywords_only: Expr | None = None
    """The strategy where there are no vectors; None: what is left of `strategy`."""
    field_weights: Mapping[str, float] = field(default_factory=dict)
    """FTS5's bm25 weights by field."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """Where the query's scope acts, by retriever; before_cut for those not named."""
    similarity: str = COSINE
    """How vectors compare: cosine or l2."""
    weight_names: Mapping[str, str] = field(default_factory=dict)
    """The names that its document has for the weights of its sum, with our names of the terms."""
    survives: tuple[type[SteelyardError], ...] = (EmbedderError,)
    """The errors of the vector side after which keywords answer alone."""
    mode: Callable[[str | bool], str] = known_mode
    """How a caller's semantic mode is read, to one of `SEMANTIC`."""


Present = Callable[[Hit], dict[str, Any]]
Quote = Callable[[Hit, str], dict[str, Any]]


def no_quote(hit: Hit, query: str) -> dict[str, Any]:
    """Nothing: the form of a hit does not depend on the query."""
    return {}


@dataclass(frozen=True)
class Showing:
    """The forms in which a system returns a hit, as JSON values."""

    present: Present
    """The whole result."""
    scan: Present = scan_result
    """A first look, before whole entries are read by id."""
    quote: Quote = no_quote
    """What a hit shows for the text of a query beside that, such as a snippet."""

    def shown(self, hit: Hit, query: str, mode: str = "full") -> dict[str, Any]:
        """The form of a hit for a query: full, or scan for a first look."""
        return (self.scan if mode == "scan" else self.present)(hit) | self.quote(hit, query)


@dataclass(frozen=True)
class Contexts:
    """How a system puts a context together: relevant entries, filled up with recent ones."""

    semantic: str = "always"
    """When the search for relevant entries may use vectors."""
    topup_recent: bool = False
    """Whether recent entries fill up what the search left of the limit."""
    no_query: Callable[[str], bool] = is_blank
    """Which texts ask for nothing, so that a context is the newest entries."""
