"""A system is a preset: which text it indexes and embeds, how it retrieves, fuses and shows results."""

from __future__ import annotations

from dataclasses import dataclass, field

from steelyard.adaptive import AdaptiveRule
from steelyard.config import SearchConfig
from steelyard.errors import ConfigError
from steelyard.fusion import Expr
from steelyard.reading import Reading
from steelyard.retrievers import RETRIEVER_KINDS, RetrieverConfig
from steelyard.stores.base import COSINE
from steelyard.stores.federation import FederationRule
from steelyard.systems.traits import Contexts, Searching, Showing


@dataclass(frozen=True)
class System:
    """The assembly of one system, under one profile."""

    name: str
    """As in ``echovault``."""
    profile: str
    """documented, or shipped: what the system's code does where it departs from its document."""
    reading: Reading
    """What it indexes and embeds, and how queries become expressions."""
    searching: Searching
    """How it finds, fuses and finishes."""
    showing: Showing
    """How it shows results."""
    contexts: Contexts = field(default_factory=Contexts)
    """How it puts a context together."""
    federation: FederationRule = field(default_factory=FederationRule)
    """How it treats several vaults."""
    adaptive: AdaptiveRule | None = None
    """The rule by which its weights follow feedback, where it documents one."""

    def config(self, limit: int | None = None, model: str = "", *, threshold: float | None = None) -> SearchConfig:
        """The configuration for a limit (the system's own by default), with vectors of `model`.

        `threshold` is how similar results must be, in -1..1, for systems that ask that. Raises ConfigError for a
        limit below 1, and for a threshold outside its range or of a system that has none.
        """
        own = self.searching
        size = own.limit if limit is None else limit
        if size < 1:
            raise ConfigError(f"limit {size} must be at least 1; leave it out for {self.name}'s own, {own.limit}")
        return SearchConfig(
            self.name,
            self.profile,
            size,
            self._strategy(threshold, size),
            {name: self._retriever(name, size, model) for name in own.retrievers},
            own.finish(size),
            keywords_only=own.keywords_only,
        )

    def _strategy(self, threshold: float | None, limit: int) -> Expr:
        own = self.searching
        if threshold is not None and own.ask is None:
            raise ConfigError(f"{self.name} has no threshold of similarity; leave it out, or use cortex_mem")
        if threshold is not None and not -1 <= threshold <= 1:
            raise ConfigError(f"threshold {threshold} is no similarity; it must lie between -1 and 1")
        return own.strategy if own.ask is None else own.ask(threshold, limit)

    def _retriever(self, name: str, limit: int, model: str) -> RetrieverConfig:
        kind, own = RETRIEVER_KINDS[name], self.searching
        return RetrieverConfig(
            depth=kind.depth(limit, own.depth(limit)),
            field_weights=own.field_weights if kind.weighs_fields else {},
            model=model if kind.layer else "",
            filters=own.filters.get(name, "before_cut"),
            similarity=own.similarity if kind.compares else COSINE,
        )
