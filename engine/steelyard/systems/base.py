"""Systems: presets of what is indexed and embedded, and of how results are retrieved, fused and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.config.adaptive import AdaptiveRule
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import Expr
from steelyard.retrievers import RETRIEVER_KINDS, RetrieverConfig
from steelyard.retrievers.reading import Reading
from steelyard.stores.base import COSINE
from steelyard.stores.federation import FederationRule
from steelyard.systems.traits import Contexts, Searching, Showing


@dataclass(frozen=True)
class System:
    """One system under one profile."""

    name: str
    """For example ``echovault``."""
    profile: str
    """``documented``, or ``shipped`` for what the system's code does where it differs from its document."""
    reading: Reading
    """What it indexes and embeds, and how it turns queries into expressions."""
    searching: Searching
    """How it retrieves, fuses and finishes."""
    showing: Showing
    """How it shows results."""
    contexts: Contexts = field(default_factory=Contexts)
    """How it assembles a context."""
    federation: FederationRule = field(default_factory=FederationRule)
    """How it searches several vaults as one."""
    adaptive: AdaptiveRule | None = None
    """The rule by which its weights adapt to feedback; None when it documents none."""
    environment: Callable[[SearchConfig, Mapping[str, str]], SearchConfig] | None = None
    """How environment variables change its configuration, where its document names some."""

    def config(
        self,
        limit: int | None = None,
        model: str = "",
        environ: Mapping[str, str] | None = None,
        *,
        threshold: float | None = None,
        direct: bool = False,
    ) -> SearchConfig:
        """Make the search configuration of this system.

        Parameters
        ----------
        limit : int, optional
            Number of results; the system's own by default.
        model : str
            The model of the vectors; empty for the model of the embedder.
        environ : mapping, optional
            Environment variables; those that the system's document names are resolved into the configuration.
        threshold : float, optional
            How similar results must be, in -1..1, for a system that has such a parameter.
        direct : bool
            Whether to bypass the usual search, for a system that has such a way.

        Raises
        ------
        ConfigError
            For a limit below 1, a variable with a value of another kind, a threshold outside its range, and a
            threshold or direct search of a system that has none.
        """
        searching = self.searching
        size = searching.limit if limit is None else limit
        if size < 1:
            raise ConfigError(
                f"limit {size} must be at least 1; leave it out for {self.name}'s own, {searching.limit}"
            )
        config = SearchConfig(
            self.name,
            self.profile,
            size,
            self._strategy(threshold, size),
            {name: self._retriever(name, size, model) for name in searching.retrievers},
            searching.finish(size),
            keywords_only=searching.keywords_only,
        )
        if direct:
            config = self._direct(config, threshold)
        return config if self.environment is None or environ is None else self.environment(config, environ)

    def with_parameters(self, values: Mapping[str, float]) -> System:
        """The same system with other parameters of its retrievers, by names such as ``graph.hops``.

        Raises ConfigError for a parameter that none of its retrievers has, and for a value out of its range.
        """
        searching = self.searching
        known = {
            f"{name}.{parameter.name}": parameter
            for name in searching.retrievers
            for parameter in RETRIEVER_KINDS[name].parameters
        }
        parameters = {name: dict(given) for name, given in searching.parameters.items()}
        for name, value in values.items():
            if name not in known:
                hint = nearest(name, known) if known else "; it has none"
                raise ConfigError(f"{self.name} has no parameter {shown(name)}{hint}")
            parameters.setdefault(name.partition(".")[0], {})[known[name].name] = known[name].checked(value)
        return replace(self, searching=replace(searching, parameters=parameters))

    def _direct(self, config: SearchConfig, threshold: float | None) -> SearchConfig:
        if self.searching.direct is None:
            raise ConfigError(f"{self.name} has no direct search; leave that out, or use cortex_mem")
        strategy, stages = self.searching.direct(threshold, config.limit)
        return replace(config, strategy=strategy, finish=stages)

    def _strategy(self, threshold: float | None, limit: int) -> Expr:
        searching = self.searching
        if threshold is not None and searching.ask is None:
            raise ConfigError(f"{self.name} has no threshold of similarity; leave it out, or use cortex_mem")
        if threshold is not None and not -1 <= threshold <= 1:
            raise ConfigError(f"threshold {threshold} is not a similarity; it must lie between -1 and 1")
        return searching.strategy if searching.ask is None else searching.ask(threshold, limit)

    def _retriever(self, name: str, limit: int, model: str) -> RetrieverConfig:
        kind, searching = RETRIEVER_KINDS[name], self.searching
        return RetrieverConfig(
            depth=kind.depth(limit, searching.depth(limit)),
            field_weights=searching.field_weights if kind.weighs_fields else {},
            model=model if kind.layer else "",
            filters=searching.filters.get(name, "before_cut"),
            similarity=searching.similarity if kind.compares else COSINE,
            after=tuple(other for other in kind.after if other in searching.strategy.signals()),
            parameters=searching.parameters.get(name, {}),
        )
