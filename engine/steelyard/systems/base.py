"""A system is a preset: which text it indexes and embeds, how it retrieves, fuses and shows results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from steelyard.adaptive import AdaptiveRule
from steelyard.config import SearchConfig
from steelyard.errors import ConfigError
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
    environment: Callable[[SearchConfig, Mapping[str, str]], SearchConfig] | None = None
    """How environment variables change its configuration, where its document names some."""

    def config(
        self, limit: int | None = None, model: str = "", environ: Mapping[str, str] | None = None
    ) -> SearchConfig:
        """The configuration for a limit (the system's own by default), with vectors of `model`.

        The variables of `environ` that the system's document names are resolved into it.

        Raises ConfigError for a limit below 1.
        """
        own = self.searching
        size = own.limit if limit is None else limit
        if size < 1:
            raise ConfigError(f"limit {size} must be at least 1; leave it out for {self.name}'s own, {own.limit}")
        config = SearchConfig(
            self.name,
            self.profile,
            size,
            own.strategy,
            {name: self._retriever(name, size, model) for name in own.retrievers},
            own.finish(size),
            keywords_only=own.keywords_only,
        )
        return config if self.environment is None or environ is None else self.environment(config, environ)

    def _retriever(self, name: str, limit: int, model: str) -> RetrieverConfig:
        kind, own = RETRIEVER_KINDS[name], self.searching
        return RetrieverConfig(
            depth=kind.depth(limit, own.depth(limit)),
            field_weights=own.field_weights if kind.weighs_fields else {},
            model=model if kind.layer else "",
            filters=own.filters.get(name, "before_cut"),
            similarity=own.similarity if kind.compares else COSINE,
            after=tuple(other for other in kind.after if other in own.strategy.signals()),
            parameters=own.parameters.get(name, {}),
        )
