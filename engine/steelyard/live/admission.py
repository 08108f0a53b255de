"""What a query gets before anything is searched: its clock, its intent, and the texts that are searched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from steelyard.base.errors import ConfigError, shown
from steelyard.config.search_config import SearchConfig
from steelyard.memory.query import Query, clean_query
from steelyard.retrievers.reading import Reading


@dataclass(frozen=True)
class Admission:
    """How a system reads queries under a configuration; `clock` and `rewriter` are those of `Searcher`."""

    reading: Reading
    config: SearchConfig
    clock: Callable[[], float]
    rewriter: Callable[[str], str] | None

    def of(self, query: Query) -> Query:
        """The query with its clock, its intent, and the texts that keywords match and that is embedded.

        Every query passes through here once. Raises ConfigError for an empty query, even when no retriever
        matches words, and for an intent that the system does not know.
        """
        if query.intent and not self.knows(query.intent):
            raise ConfigError(
                f"{self.config.name} has no intent {shown(query.intent)}; valid: {', '.join(self.reading.intents)}"
            )
        text = clean_query(query.text if query.matched is None else query.matched)
        if query.matched is None and self.config.rewrite and (other := self.reading.rewrite(text)) != text:
            text = clean_query(other)
        intent, sure = query.intent, query.confidence
        if not intent:
            intent = self.reading.classify(query.text)
            sure = self.reading.confidence(query.text) if self.reading.confidence else None
        embedded = query.rewritten
        if embedded is None and self.rewriter is not None:
            embedded = self.rewriter(query.text)
        return replace(self.timed(query), matched=text, intent=intent, confidence=sure, rewritten=embedded)

    def timed(self, query: Query) -> Query:
        """The query with its clock."""
        return query if query.asked_at is not None else replace(query, asked_at=self.clock())

    def knows(self, intent: str) -> bool:
        """Whether a query may name this intent: any where the system classifies nothing, else its own words."""
        known = self.reading.intents
        return not known or intent in known or intent in self.config.intents
