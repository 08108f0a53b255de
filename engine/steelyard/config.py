"""Search configurations with their re-rankers, and the `search-weights.json` files they are saved in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, partial
from hashlib import sha256
from os.path import exists
from pathlib import Path
from typing import Any, cast

from steelyard.base.errors import PATH_WIDTH, ConfigError, closest_file, collect_errors, nearest, quote
from steelyard.base.extensions import extension
from steelyard.base.files import STRICT_JSON, canonical, data, read_text, write_text
from steelyard.base.json_schema import Schema
from steelyard.finish import CrossEncoder, Cut, Rescore, Stage, parse_stages
from steelyard.fusion import ByIntent, Expr, intents_of, parse_strategy, replaced, reweighted
from steelyard.retrievers import FETCHED, RETRIEVER_KINDS
from steelyard.retrievers.kinds import RetrieverConfig

LISTS = "lists"
"""The name of the system for strategies over recorded lists of other engines, which may have any name."""
WEIGHT_NAMES: Mapping[str, Mapping[str, str]] = data(__package__, "weight_names.json")
"""What the documents of systems call their weights, with our names: files are read without any system."""
RERANKERS = ("auto", "voyage", "cohere", "local")
KEYS = {"voyage": "VOYAGE_API_KEY", "cohere": "COHERE_API_KEY"}  # in the order of detection; else the local model


@dataclass(frozen=True)
class RerankConfig:
    """Which re-ranker serves, and its limits; ConfigError for an unknown provider or a limit below 0."""

    provider: str = "auto"
    """auto is the first whose key is set, else local."""
    p95_ms: float = 500.0
    """What one call in twenty may exceed."""
    cache_ttl_ms: float = 300_000.0
    cache_size: int = 1000
    """How long and how many scores are kept."""

    def __post_init__(self) -> None:
        if self.provider not in RERANKERS:
            raise ConfigError(f"re-ranker {quote(self.provider)} is unknown{nearest(self.provider, RERANKERS)}")
        for name in ("p95_ms", "cache_ttl_ms", "cache_size"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} of the re-ranker is {getattr(self, name)}; it must be at least 0")


def requested_reranker(config: RerankConfig, environ: Mapping[str, str]) -> str:
    """The provider that a configuration stands for in an environment.

    >>> requested_reranker(RerankConfig(), {"COHERE_API_KEY": "k"}), requested_reranker(RerankConfig(), {})
    ('cohere', 'local')
    """
    if config.provider != "auto":
        return config.provider
    return next((name for name, key in KEYS.items() if environ.get(key, "").strip()), "local")


def open_reranker(config: RerankConfig, environ: Mapping[str, str]) -> CrossEncoder:
    """The re-ranker, guarded and cached. ConfigError for a provider that was named and has no key."""
    return cast("CrossEncoder", extension("rerank").opened(config, environ))


@dataclass(frozen=True)
class ContextConfig:
    """Settings of a context that replace the system's own (EchoVault's config.yaml)."""

    semantic: str = ""
    """When vectors are used: always, auto (if the embedder is loaded) or never; empty for the system's own."""
    topup_recent: bool | None = None
    """Whether recent entries fill the context up to the limit; None for the system's own."""


def _not_default(settings: RerankConfig | ContextConfig) -> dict[str, Any]:
    return {one.name: value for one in fields(settings) if (value := getattr(settings, one.name)) != one.default}


@dataclass(frozen=True)
class SearchConfig:
    """Everything except the vault that decides a ranking, and the settings of a context."""

    system: str
    profile: str
    """The system whose preset this is."""
    limit: int
    """Number of results."""
    strategy: Expr
    """The fusion, also for intents that `by_intent` does not name."""
    retrievers: Mapping[str, RetrieverConfig]
    """The settings of each retriever."""
    finish: tuple[Stage, ...]
    """The stages after fusion."""
    by_intent: Mapping[str, Expr] = field(default_factory=dict)
    """Strategies for the queries of one intent."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """How the configuration was found; it does not affect the ranking."""
    keywords_only: Expr | None = None
    """The strategy when there are no vectors; None for what is left of `strategy`."""
    rewrite: bool = True
    """Whether the system may match keywords by another text than was asked (Reading.rewrite)."""
    rerank: RerankConfig = field(default_factory=RerankConfig)
    """Which re-ranker serves the stage rerank, where there is one."""
    context: ContextConfig = field(default_factory=ContextConfig)
    """How a context is made."""

    @property
    def name(self) -> str:
        """The system and profile as ``system:profile``."""
        return f"{self.system}:{self.profile}"

    @cached_property
    def effective(self) -> Expr:
        """The strategy, combined with those of single intents."""
        if not self.by_intent:
            return self.strategy
        return ByIntent(self.strategy, tuple(sorted(self.by_intent.items())))

    def without(self, missing: Collection[str]) -> Expr | None:
        """Return the strategy without these signals; None when nothing is left.

        If removing them changes the strategy, `keywords_only` replaces it where that can be computed.
        """
        left = self.effective.without(missing)
        if left == self.effective or self.keywords_only is None:
            return left
        return self.keywords_only.without(missing) or left

    @cached_property
    def needs(self) -> frozenset[str]:
        """The signals that the finish stages read, for every query."""
        return frozenset().union(*(stage.signals & FETCHED for stage in self.finish))

    @property
    def intents(self) -> frozenset[str]:
        """The intents whose queries it ranks in another way than a query without one."""
        again = (stage.strategy for stage in self.finish if isinstance(stage, Rescore))
        return frozenset().union(*map(intents_of, (self.effective, *again)))

    @cached_property
    def models(self) -> frozenset[str]:
        """The models whose vectors alone its retrievers compare; none where any will do."""
        return frozenset(retriever.model for retriever in self.retrievers.values() if retriever.model)

    @cached_property
    def depths(self) -> dict[str, int | None]:
        """The depth of every retriever; None where it returns all."""
        return {name: retriever.depth for name, retriever in self.retrievers.items()}

    def with_substitutes(self, instead: Mapping[str, str]) -> SearchConfig:
        """The same search with other signals in the place of some; those that this one lacks stay."""
        known = {name: other for name, other in instead.items() if other in self.retrievers}
        return replace(
            self,
            strategy=replaced(self.strategy, known),
            keywords_only=self.keywords_only and replaced(self.keywords_only, known),
            by_intent={intent: replaced(expr, known) for intent, expr in self.by_intent.items()},
        )

    def before(self, name: str) -> tuple[str, ...]:
        """The retrievers that one of this configuration starts from.

        Raises ConfigError where it reads more of a list than the list is deep: a recording, whose lists are
        deeper, would give it other starting points than live search.
        """
        kind, settings = RETRIEVER_KINDS[name], self.retrievers[name]
        reads = kind.values(settings).get(kind.starts, 0)
        for other in settings.after:
            if other not in kind.after or other not in self.retrievers:
                raise ConfigError(f"{name} cannot start from {quote(other)}{nearest(other, kind.after)}")
            if (depth := self.retrievers[other].depth) is not None and depth < reads:
                raise ConfigError(
                    f"{name} starts from the first {reads:g} places of {other}, whose depth is {depth}; "
                    f"set {kind.starts} to {depth} at most, or make {other} deeper"
                )
        return settings.after

    def with_strategy(self, strategy: Expr) -> SearchConfig:
        """Return the same search with another strategy."""
        return replace(self, strategy=strategy)

    def with_weights(self, weights: Mapping[str, float]) -> SearchConfig:
        """Return the same search with other weights for some terms, wherever in its strategies they stand.

        A term is named as the strategy has it, or as the system's document does (MoltNet: w_relevance, w_recency,
        w_importance). ConfigError lists every term that the strategy does not have, or has twice in one sum.
        """
        known = WEIGHT_NAMES.get(self.system, {})
        by_term = {known.get(name, name): weight for name, weight in weights.items()}
        alone = self.keywords_only and reweighted(self.keywords_only, by_term, some=True)
        changed = reweighted(self.effective, by_term)
        strategy, *others = changed.children if self.by_intent else (changed,)
        by_intent = dict(zip(sorted(self.by_intent), others, strict=True))
        return replace(self, strategy=strategy, by_intent=by_intent, keywords_only=alone)

    def with_limit(self, limit: int) -> SearchConfig:
        """Return the same search for another number of results; depths stay unchanged."""
        stages = tuple(replace(stage, limit=limit) if isinstance(stage, Cut) else stage for stage in self.finish)
        return replace(self, limit=limit, finish=stages)

    def to_json(self) -> dict[str, Any]:
        """Return the record of a weights file, as JSON values."""
        return {
            "$schema": SCHEMA_FILE,
            "schema_version": SCHEMA_VERSION,
            "system": self.system,
            "profile": self.profile,
            "limit": self.limit,
            "strategy": str(self.strategy),
            "retrievers": {name: retriever.to_json() for name, retriever in self.retrievers.items()},
            "finish": [str(stage) for stage in self.finish],
            "by_intent": {intent: str(expr) for intent, expr in self.by_intent.items()},
            **({"keywords_only": str(self.keywords_only)} if self.keywords_only else {}),
            **({} if self.rewrite else {"rewrite": False}),
            **({"rerank": rerank} if (rerank := _not_default(self.rerank)) else {}),
            **({"context": context} if (context := _not_default(self.context)) else {}),
            "provenance": dict(self.provenance),
        }

    def save(self, path: str | Path) -> None:
        """Write a weights file as canonical JSON; a temporary file is renamed when it is complete."""
        write_text(path, canonical(self.to_json()))

    @classmethod
    def load(cls, path: str | Path) -> SearchConfig:
        """Read a weights file.

        Raises ConfigError listing every unknown key, value out of range, NaN, unknown signal or stage,
        and a different schema version, with the remedy. Where a recommendation left ``*.try.json``
        instead, that is named.
        """
        attempt = f"{str(path).removesuffix('.json')}.try.json"
        if exists(attempt) and not exists(path):  # noqa: PTH110 -- no name can make it fail
            place, other = (quote(str(name), PATH_WIDTH) for name in (path, attempt))
            raise ConfigError(f"{place} does not exist, but {other} does; name that file")
        return cls.from_json(read_json(path), str(path))

    @classmethod
    def from_json(cls, record: object, source: str = "weights") -> SearchConfig:
        """Make the configuration from a parsed weights file; `source` names it in errors (see `load`)."""
        if is_foreign(record):
            raise ConfigError(
                f"{quote(source, PATH_WIDTH)} is system-spec-kit's own configs/search-weights.json; import it "
                "first: steelyard import FILE search-weights.json"
            )
        try:
            return cls._read(record)
        except ConfigError as error:
            raise ConfigError(f"weights file {quote(source)}: {error}") from None

    @classmethod
    def _read(cls, record: Any) -> SearchConfig:  # noqa: ANN401 -- any JSON
        if problems := problems_of(record):
            raise ConfigError("; ".join(problems))
        by_intent, alone = record.get("by_intent", {}), record.get("keywords_only")
        lists = record["retrievers"].keys() if record["system"] == LISTS else ()
        texts = (record["strategy"], *by_intent.values(), *([] if alone is None else [alone]))
        checks: list[Callable[[], Any]] = [partial(parse_strategy, text, lists) for text in texts]
        stages, strategy, *others = collect_errors(partial(parse_stages, record["finish"]), *checks)
        cuts = [stage.limit for stage in stages if isinstance(stage, Cut)]
        if any(cut != record["limit"] for cut in cuts):
            raise ConfigError(f"limit {record['limit']} differs from the cut in finish, {cuts}; use one number")
        config = cls(
            system=record["system"],
            profile=record["profile"],
            limit=int(record["limit"]),
            strategy=strategy,
            retrievers={n: RetrieverConfig.from_json(settings) for n, settings in record["retrievers"].items()},
            finish=stages,
            by_intent=dict(zip(by_intent, others, strict=False)),
            provenance=record.get("provenance", {}),
            keywords_only=None if alone is None else others[-1],
            rewrite=record.get("rewrite", True),
            rerank=RerankConfig(**record.get("rerank", {})),
            context=ContextConfig(**record.get("context", {})),
        )
        try:
            return config.with_weights(record["weights"]) if record.get("weights") else config
        except ConfigError as error:
            raise ConfigError(f"weights: {error}") from None


def ranking_of(config: SearchConfig) -> dict[str, Any]:
    """The record of a configuration without what does not affect a ranking: provenance and contexts."""
    return {name: value for name, value in config.to_json().items() if name not in ("provenance", "context")}


def policy_of(config: SearchConfig) -> str:
    """The hash by which feedback logs name a configuration; what does not affect a ranking does not count."""
    return sha256(canonical(ranking_of(config)).encode()).hexdigest()[:16]


def is_foreign(record: object) -> bool:
    """Whether this is system-spec-kit's own file, which has the name of ours."""
    names = set(record) if isinstance(record, dict) else set()
    return "strategy" not in names and bool({"smartRanking", "rrfFusion"} & names)


def read_json(path: str | Path) -> Any:  # noqa: ANN401 -- whatever the file holds
    """The JSON of anybody's weights file; ConfigError where there is none."""
    place = quote(str(path), PATH_WIDTH)
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        inside = (Path(path) / "search-weights.json").is_file()
        remedy = "name the search-weights.json in it" if inside else "`steelyard recommend` writes one"
        close = closest_file(path) if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"cannot read the weights file {place}: {reason}{close or f'; {remedy}'}") from None
    if text.startswith(("# strategy: ", "-- strategy: ", '{\n  "about": {\n    "follows": ')):
        raise ConfigError(f"{place} is an export for another program; name the weights file it was made of")
    try:
        record = STRICT_JSON.decode(text)
        canonical(record).encode()  # fails for half a surrogate pair, which could not be written again
        return record
    except UnicodeEncodeError:
        raise ConfigError(f"weights file {place} is not valid Unicode; save it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"weights file {place} is not valid JSON: {error}") from None


SCHEMA_VERSION = 1
SCHEMA_FILE = "search-weights.schema.json"


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of weights files: the published file, completed by the declared retrievers.

    Each retriever has its own parameters, and `after` only where it starts from others.
    """
    loaded: dict[str, Any] = data(__package__, SCHEMA_FILE)
    common = loaded["$defs"]["retriever"]
    known = loaded["properties"]["retrievers"]["properties"] = {}
    for name, kind in RETRIEVER_KINDS.items():
        settings = {key: rule for key, rule in common["properties"].items() if key != "after" or kind.after}
        settings |= {option.name: option.schema() for option in kind.parameters}
        known[name] = common | {"properties": settings}
    loaded["else"]["properties"]["retrievers"]["properties"] = dict.fromkeys(RETRIEVER_KINDS, True)
    return loaded


_checker = cache(lambda: Schema(schema()))


def problems_of(record: object) -> list[str]:
    """Every way in which a record breaks the schema, in words."""
    if isinstance(record, Mapping) and record.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        return [
            f"schema_version {quote(record['schema_version'])} is not {SCHEMA_VERSION}, the version that this "
            "release reads; tune again, or use the release that wrote it"
        ]
    try:
        return _checker().violations(record)
    except ValueError as error:
        return [f"is not JSON ({error})"]
