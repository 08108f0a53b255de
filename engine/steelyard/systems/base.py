"""Systems: presets of what is indexed and embedded, and of how results are retrieved, fused and shown."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from steelyard.base.errors import ConfigError, EmbedderError, SteelyardError, quote
from steelyard.base.fields import TIME_FIELDS, format_time
from steelyard.base.files import data
from steelyard.config import SearchConfig
from steelyard.finish import Cut, Stage, parse_stages
from steelyard.fusion import Expr, parse_strategy
from steelyard.memory.entry import Entry, Hit
from steelyard.memory.query import Filters, is_blank, unchanged
from steelyard.retrievers import RETRIEVER_KINDS
from steelyard.retrievers.kinds import Reading, RetrieverConfig
from steelyard.stores.base import COSINE, KeywordIndex
from steelyard.stores.federation import FederationRule
from steelyard.stores.postings import TokenSettings

if TYPE_CHECKING:
    from steelyard.results import SearchResult

SNIPPET = 120
"""How many characters of a text a scan shows."""
SEMANTIC = ("always", "auto", "never")
"""When a search may use vectors: always, only if the model is loaded (auto), or never."""


WORD_LISTS: dict[str, str] = data(__package__, "stop_words.json")
"""The stop words of systems that have their own."""


def shown_fields(hit: Hit, form: str) -> dict[str, Any]:
    """The fields of a result as JSON values: ``title what=text`` is the title, and the text under the name what.

    Beside the fields of an entry there are `score`, and `has_details`: whether there are any.
    """
    own = {"score": hit.score, "has_details": bool(hit.entry.details)}
    shown: dict[str, Any] = {}
    for name, _, other in (each.partition("=") for each in form.split()):
        field = other or name
        value = own[field] if field in own else getattr(hit.entry, field)
        value = format_time(value) if field in TIME_FIELDS else value
        shown[name] = list(value) if isinstance(value, tuple) else value
    return shown


def record_of(entry: Entry) -> dict[str, object]:
    """The fields of an entry that are not empty, as JSON values; times as ISO 8601 in UTC."""
    record = entry.to_json()
    return record | {name: format_time(record[name]) for name in TIME_FIELDS & record.keys()}


def token_estimate(entry: Entry) -> int:
    """A quarter of the number of characters of title, text, context and why (Soleri's document)."""
    return math.ceil(sum(map(len, (entry.title, entry.text, entry.context, entry.why))) / 4)


def scan_result(hit: Hit) -> dict[str, Any]:
    """Summarise a result, before whole entries are read by id; the snippet is the first 120 characters.

    Source: Soleri's document.
    """
    shown = shown_fields(hit, "id title score type domain tags")
    return shown | {"snippet": hit.entry.text[:SNIPPET], "tokenEstimate": token_estimate(hit.entry)}


def unknown_mode(mode: str | bool) -> str:
    """ConfigError: it is none of `SEMANTIC`."""
    raise ConfigError(f"semantic mode {quote(mode)} is unknown; valid: {', '.join(SEMANTIC)}")


@dataclass(frozen=True)
class SearchSettings:
    """How a system retrieves, fuses and finishes."""

    strategy: Expr
    retrievers: tuple[str, ...]
    depth: Callable[[int], int]
    """From the limit to the number of candidates that a retriever returns."""
    limit: int = 10
    ask: Callable[[float | None, int, bool], tuple[Expr, tuple[Stage, ...]]] | None = None
    """From a threshold of similarity (None: the system's own), a limit, and whether to bypass the usual search, to
    the strategy and the stages, in a system that takes such."""
    finish: Callable[[int], tuple[Stage, ...]] = lambda limit: (Cut(limit),)
    """From the limit to the stages after fusion."""
    keywords_only: Expr | None = None
    """The strategy when there are no vectors; None for what is left of `strategy`."""
    field_weights: Mapping[str, float] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    """Where the query's scope acts, by retriever; before_cut for those not named."""
    parameters: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)
    """The parameters of its retrievers, where they differ from the retrievers' own defaults."""
    similarity: str = COSINE
    """How vectors compare: cosine or l2."""
    survives: tuple[type[SteelyardError], ...] = (EmbedderError,)
    """The errors of the vector search after which the system answers by keywords alone."""
    dispensable: frozenset[str] = frozenset()
    """The retrievers whose failure a search survives, without them."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """The retriever that stands in for one that failed."""
    mode: Callable[[str | bool], str] = unknown_mode
    """Reads a caller's semantic mode that is none of `SEMANTIC` to one that is."""


@dataclass(frozen=True)
class ResultForms:
    """The forms in which a system returns a hit, as JSON values."""

    present: Callable[[Hit], dict[str, object]]
    """The whole result."""
    scan: Callable[[Hit], dict[str, object]] | None = scan_result
    """The summary for a first look, before whole entries are read by id; None: the whole result."""
    within: Callable[[Hit, SearchResult], dict[str, object]] | None = None
    """The whole result where it shows more than one hit has: ranks, sources, the query."""
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
        if mode == "scan" and self.scan is not None:
            shown = self.scan(hit)
        else:
            shown = self.present(hit) if self.within is None or result is None else self.within(hit, result)
        return shown | {"content": self.content(hit.entry)} if content and self.content else shown

    def show_all(
        self, hits: Sequence[Hit], result: SearchResult | None, mode: str = "full", content: bool = False
    ) -> list[dict[str, object]]:
        """Each hit, with its id, title and score whatever the form has."""
        heads = ({"id": hit.entry.id, "title": hit.entry.title, "score": hit.score} for hit in hits)
        return [head | self.show(hit, result, mode, content) for head, hit in zip(heads, hits, strict=True)]


@dataclass(frozen=True, kw_only=True)
class System:
    """One system under one profile."""

    name: str
    """For example ``echovault``."""
    profile: str = "documented"
    """``documented``; ``shipped``: what the code of the document's date does where it differs; ``newest``: what
    the code does today."""
    reading: Reading
    searching: SearchSettings
    showing: ResultForms
    semantic: str = "always"
    """When the search for the relevant entries of a context may use vectors."""
    topup_recent: bool = False
    """Whether recent entries fill a context up when the search finds fewer than the limit."""
    no_query: Callable[[str], bool] = is_blank
    """Whether a text counts as no query, so that a context is the newest entries."""
    federation: FederationRule = field(default_factory=FederationRule)
    adaptive: Mapping[str, Any] | None = None
    """The options of the rule by which its weights follow feedback; None when it documents none."""
    environment: Callable[[SearchConfig, Mapping[str, str]], SearchConfig] | None = None
    """How environment variables change its configuration, where its document names some."""

    @property
    def key(self) -> str:
        """Its name and profile as ``name:profile``."""
        return f"{self.name}:{self.profile}"

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

        `limit` is the number of results and `model` that of the vectors, both the system's own by default;
        `environ` the environment variables, of which those that its document names are resolved; `threshold` how
        similar results must be, in -1..1, and `direct` whether to bypass the usual search, where that can be.

        Raises ConfigError for a limit below 1, a variable with a value of another kind, a threshold outside its
        range, and a threshold or direct search of a system that has none.
        """
        searching, size = self.searching, self.searching.limit if limit is None else limit
        if size < 1:
            raise ConfigError(
                f"limit {size} must be at least 1; leave it out for {self.name}'s own, {searching.limit}"
            )
        if searching.ask is None and (direct or threshold is not None):
            what = "direct search" if direct else "threshold of similarity"
            raise ConfigError(f"{self.name} has no {what}; leave it out, or use cortex_mem")
        if threshold is not None and not -1 <= threshold <= 1:
            raise ConfigError(f"threshold {threshold} is not a similarity; it must lie between -1 and 1")
        strategy, finish = searching.strategy, searching.finish(size)
        if searching.ask is not None:
            strategy, finish = searching.ask(threshold, size, direct)
        retrievers = {}
        for name in searching.retrievers:
            kind = RETRIEVER_KINDS[name]
            retrievers[name] = RetrieverConfig(
                depth=None if kind.uncut else size if kind.separate_scope else searching.depth(size),
                field_weights=searching.field_weights if kind.weighs_fields else {},
                model=model if kind.layer else "",
                filters=searching.filters.get(name, "before_cut"),
                similarity=searching.similarity if kind.compares else COSINE,
                after=tuple(other for other in kind.after if other in searching.strategy.signals),
                parameters=searching.parameters.get(name, {}),
            )
        config = SearchConfig(
            self.name, self.profile, size, strategy, retrievers, finish, keywords_only=searching.keywords_only
        )
        return config if self.environment is None or environ is None else self.environment(config, environ)


# The generations of a system, which its page of TOML beside its module lists


def generations(name: str, module: Mapping[str, Any]) -> tuple[System, ...]:
    """The profiles of a system in the order of its page: what a table does not say it has from the one before it.

    ``@word`` on the page is what the module calls so, or `unchanged`, or None.
    """
    module = {"None": None, "unchanged": unchanged} | dict(module)
    page = resources.files(__package__ or "").joinpath(f"{name}.toml").read_text("utf-8")
    systems, known = list[System](), {part: dict[str, Any]() for part in ("", *_PARTS)}
    for profile, table in tomllib.loads(page).items():
        for part in _PARTS:
            known[part] |= _told(table.pop(part, {}), module)
        known[""] |= _told(table, module)
        parts = {part: made(**known[part]) for part, made in _PARTS.items()}
        systems.append(System(**{"name": name, "profile": profile} | parts | known[""]))
    return tuple(systems)


def _told(table: Mapping[str, Any], module: Mapping[str, Any]) -> dict[str, Any]:
    def value(told: Any) -> Any:  # noqa: ANN401 -- any value of TOML
        if isinstance(told, dict):
            return {name: value(one) for name, one in told.items()}
        if isinstance(told, list):
            return tuple(map(value, told))
        return module[told[1:]] if isinstance(told, str) and told.startswith("@") else told

    return {name: _READ.get(name, lambda made: made)(value(told)) for name, told in table.items()}


def _searching(**told: Any) -> SearchSettings:  # noqa: ANN401 -- any value of TOML
    usual = {"strategy": told["ask"](None, 10, False)[0]} if "ask" in told else {}
    return SearchSettings(**usual | told)


_PARTS: dict[str, Any] = {"reading": Reading, "searching": _searching, "showing": ResultForms}
_READ: dict[str, Callable[[Any], Any]] = {
    "strategy": parse_strategy,
    "keywords_only": parse_strategy,
    "corpus": Filters.of,
    "hidden": lambda told: {name: Filters.of(rule) for name, rule in told.items()},
    "bm25_words": lambda told: TokenSettings(**told),
    "dispensable": frozenset,
    "index": lambda told: KeywordIndex(**told) if isinstance(told, dict) else told,
    "federation": lambda told: FederationRule(**told),
    "depth": lambda told: lambda limit: max(told[0] * limit, told[1]),
    "finish": lambda told: lambda limit: parse_stages([text.format(limit=limit) for text in told]),
}
"""What is made of a value of a page; others are as they stand there."""
