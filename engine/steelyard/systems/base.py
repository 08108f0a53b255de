"""A system is a preset: which text it indexes and embeds, how it retrieves, fuses and shows results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from steelyard.adaptive import AdaptiveRule
from steelyard.config import RetrieverConfig, SearchConfig, default_finish
from steelyard.entry import Hit
from steelyard.errors import ConfigError, EmbedderError, SteelyardError, shown
from steelyard.fields import format_time
from steelyard.filters import EVERYTHING, Filters
from steelyard.finish import Stage
from steelyard.fusion import Expr
from steelyard.retrievers.tfidf import Words
from steelyard.stores.base import COSINE, KeywordIndex, TextSearch
from steelyard.stores.federation import FederationRule
from steelyard.table import ASIDE, EMBEDDING, KEYWORD, LAYERS
from steelyard.text import MatchBuilder, is_blank, words_or


def _index(index: KeywordIndex | TextSearch) -> dict[str, Any]:
    if isinstance(index, TextSearch):
        return {"text": index.text.__module__, "tokenizer": "tsearch english"}
    return {"fields": list(index.fields), "tokenizer": index.tokenizer}


SNIPPET = 120
"""Characters of a text that a scan shows."""


def scan_result(hit: Hit) -> dict[str, Any]:
    """The first look at a result, before whole entries are read by id (Soleri's document).

    The snippet is the first 120 characters of the text, the token estimate a quarter of the characters of
    title, text, context and why.
    """
    entry = hit.entry
    size = sum(map(len, (entry.title, entry.text, entry.context, entry.why)))
    return {
        "id": entry.id,
        "title": entry.title,
        "score": hit.score,
        "type": entry.type,
        "domain": entry.domain,
        "tags": list(entry.tags),
        "snippet": entry.text[:SNIPPET],
        "tokenEstimate": math.ceil(size / 4),
    }


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


SEMANTIC = ("always", "auto", "never")
"""When a search may use vectors: always, only if the model is loaded, never."""


def known_mode(mode: str | bool) -> str:
    """One of `SEMANTIC`; ConfigError for any other."""
    if mode not in SEMANTIC:
        raise ConfigError(f"semantic mode {shown(mode)} is unknown; valid: {', '.join(SEMANTIC)}")
    return str(mode)


Present = Callable[[Hit], dict[str, Any]]


@dataclass(frozen=True)
class System:
    """The assembly of one system, under one profile.

    `depth` gives a retriever's depth for a limit; `recipe` is the template of the embedded text;
    `filters` says where the scope acts, before_cut where a retriever is not named. `keywords_only` is the
    strategy where there are no vectors; without it, what is left of `strategy`. `survives` are the
    errors of the vector side after which keywords answer alone. `finish` gives the stages for a limit.
    `similarity` is how vectors compare. `present` and `scan` are the result forms, whole and for a first
    look. `semantic` and `topup_recent` are its context settings, `mode` reads a semantic mode, and
    `no_query` says which texts ask for nothing, so that a context is the newest entries.

    `corpus` are the entries that are searched, `valid_only` leaves out those whose validity window does
    not hold the query's clock. Entries of kind memory are searched aside, with `match_memory`. `words`
    are what TF-IDF reads, of all of the corpus or, with `valid_words`, of what is valid.

    `weight_names` are the names that its document has for the weights of its sum, with our names of the
    terms. `adaptive` is the rule by which its weights follow feedback, where it documents one.
    """

    name: str
    profile: str
    index: KeywordIndex | TextSearch
    recipe: str
    strategy: Expr
    retrievers: tuple[str, ...]
    depth: Callable[[int], int]
    present: Present
    scan: Present = scan_result
    match: MatchBuilder = words_or
    limit: int = 10
    finish: Callable[[int], tuple[Stage, ...]] = default_finish
    keywords_only: Expr | None = None
    survives: tuple[type[SteelyardError], ...] = (EmbedderError,)
    similarity: str = COSINE
    field_weights: Mapping[str, float] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    corpus: Filters = EVERYTHING
    valid_only: bool = False
    match_memory: MatchBuilder = words_or
    words: Words = field(default_factory=Words)
    valid_words: bool = False
    federation: FederationRule = field(default_factory=FederationRule)
    weight_names: Mapping[str, str] = field(default_factory=dict)
    adaptive: AdaptiveRule | None = None
    semantic: str = "always"
    topup_recent: bool = False
    mode: Callable[[str | bool], str] = known_mode
    no_query: Callable[[str], bool] = is_blank

    def config(self, limit: int | None = None, model: str = "") -> SearchConfig:
        """The configuration for a limit (the system's own by default), with vectors of `model`.

        Raises ConfigError for a limit below 1.
        """
        size = self.limit if limit is None else limit
        if size < 1:
            raise ConfigError(f"limit {size} must be at least 1; leave it out for {self.name}'s own, {self.limit}")
        retrievers = {
            name: RetrieverConfig(
                depth=self._depth(name, size),
                field_weights=self.field_weights if name in KEYWORD else {},
                model=model if name in EMBEDDING else "",
                filters=self.filters.get(name, "before_cut"),
                similarity=self.similarity if name == "vector" else COSINE,
            )
            for name in self.retrievers
        }
        return SearchConfig(
            self.name,
            self.profile,
            size,
            self.strategy,
            retrievers,
            self.finish(size),
            keywords_only=self.keywords_only,
        )

    def retrieval(self) -> dict[str, Any]:
        """How it reads entries and queries, as JSON values; systems that differ in it share no recording."""
        return {
            "index": _index(self.index),
            "match": self.match.__name__,
            "match_memory": self.match_memory.__name__,
            "words": [self.words.text.__name__, self.words.split.__name__, self.valid_words],
            "searched": [str(self.corpus), self.valid_only],
        }

    def _depth(self, name: str, limit: int) -> int | None:
        """Layers are whole; what is merged in the end is no longer than the list."""
        if name in LAYERS:
            return None
        return limit if name in ASIDE else self.depth(limit)
