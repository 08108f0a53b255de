"""A system is a preset: which text it indexes and embeds, how it retrieves, fuses and shows results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from steelyard.config import RetrieverConfig, SearchConfig, default_finish
from steelyard.entry import Hit
from steelyard.errors import ConfigError
from steelyard.fields import format_time
from steelyard.fusion import Expr
from steelyard.stores.base import KeywordIndex
from steelyard.table import EMBEDDING, LAYERS
from steelyard.text import MatchBuilder


@dataclass(frozen=True)
class System:
    """The documented assembly of one system, under one profile.

    `depth` gives a retriever's depth for a limit; `recipe` is the template of the embedded text;
    `filters` says where the scope acts, before_cut where a retriever is not named; `present` gives
    the system's own result form. `semantic` and `topup_recent` are its context settings.
    """

    name: str
    profile: str
    index: KeywordIndex
    match: MatchBuilder
    recipe: str
    strategy: Expr
    retrievers: tuple[str, ...]
    depth: Callable[[int], int]
    present: Callable[[Hit], dict[str, Any]]
    limit: int = 10
    field_weights: Mapping[str, float] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    semantic: str = "always"
    topup_recent: bool = False

    def config(self, limit: int | None = None, model: str = "") -> SearchConfig:
        """The configuration for a limit (the system's own by default), with vectors of `model`.

        Raises ConfigError for a limit below 1.
        """
        size = self.limit if limit is None else limit
        if size < 1:
            raise ConfigError(f"limit {size} must be at least 1; leave it out for {self.name}'s own, {self.limit}")
        retrievers = {
            name: RetrieverConfig(
                depth=None if name in LAYERS else self.depth(size),
                field_weights=self.field_weights if name == "fts" else {},
                model=model if name in EMBEDDING else "",
                filters=self.filters.get(name, "before_cut"),
            )
            for name in self.retrievers
        }
        return SearchConfig(self.name, self.profile, size, self.strategy, retrievers, default_finish(size))


def plain_result(hit: Hit) -> dict[str, Any]:
    """The result form of systems that document none."""
    entry = hit.entry
    return {
        "id": entry.id,
        "title": entry.title,
        "text": entry.text,
        "tags": list(entry.tags),
        "project": entry.project,
        "score": hit.score,
        "created_at": format_time(entry.created_at),
    }
