"""A search configuration, and the `search-weights.json` file it is written to and read from."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from steelyard.errors import PATH_WIDTH, ConfigError, nearest, shown
from steelyard.files import STRICT_JSON, canonical, write_text
from steelyard.finish import Cut, Stage, parse_stages
from steelyard.fusion import ByIntent, Expr, parse_strategy, reweighted, term_names
from steelyard.inputs import read_text
from steelyard.retrievers import RETRIEVER_KINDS, Parameter, RetrieverConfig

SCHEMA_VERSION = 1
SCHEMA_FILE = "search-weights.schema.json"
LISTS = "lists"
"""The system of strategies over recorded lists of other engines, which may have any name."""


@dataclass(frozen=True)
class ContextConfig:
    """How a context is made, where it differs from the system's own settings (EchoVault's config.yaml).

    `semantic` is always, auto (only if the embedder is loaded) or never, empty for the system's own;
    `topup_recent` says whether recent entries fill it up to the limit, None for the system's own.
    """

    semantic: str = ""
    topup_recent: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Only what is set."""
        record: dict[str, Any] = {"semantic": self.semantic} if self.semantic else {}
        return record if self.topup_recent is None else record | {"topup_recent": self.topup_recent}


@dataclass(frozen=True)
class SearchConfig:
    """Everything that decides a ranking, besides the vault; and how a context is made of it."""

    system: str
    profile: str
    limit: int
    strategy: Expr
    retrievers: Mapping[str, RetrieverConfig]
    finish: tuple[Stage, ...]
    by_intent: Mapping[str, Expr] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    keywords_only: Expr | None = None
    context: ContextConfig = field(default_factory=ContextConfig)

    @property
    def name(self) -> str:
        """``system:profile``."""
        return f"{self.system}:{self.profile}"

    @property
    def effective(self) -> Expr:
        """The strategy with the per-intent ones around it."""
        if not self.by_intent:
            return self.strategy
        return ByIntent(self.strategy, tuple(sorted(self.by_intent.items())))

    def without(self, missing: Collection[str]) -> Expr | None:
        """The strategy where these signals cannot be had; None when nothing is left.

        Where that changes the strategy and `keywords_only` can be computed, it takes over.
        """
        left = self.effective.without(missing)
        if left == self.effective or self.keywords_only is None:
            return left
        return self.keywords_only.without(missing) or left

    @property
    def needs(self) -> frozenset[str]:
        """The signals that the finish stages read, for every query."""
        return frozenset().union(*(stage.needs for stage in self.finish))

    @property
    def depths(self) -> dict[str, int | None]:
        """Depth of every retriever."""
        return {name: retriever.depth for name, retriever in self.retrievers.items()}

    def with_strategy(self, strategy: Expr) -> SearchConfig:
        """The same search under another strategy."""
        return replace(self, strategy=strategy)

    def with_weights(self, weights: Mapping[str, float]) -> SearchConfig:
        """The same search with other weights for some terms of its weighted sum.

        Terms go by their names in the strategy, or by those of the system's document (MoltNet: w_relevance,
        w_recency, w_importance). Raises ConfigError naming every term that the strategy does not have.
        """
        from steelyard.systems import find_system  # which is made of configurations

        known = find_system(self.name).searching.weight_names
        own = {known.get(name, name): weight for name, weight in weights.items()}
        alone = self.keywords_only
        if alone is not None:
            alone = reweighted(alone, {name: own[name] for name in own.keys() & set(term_names(alone))})
        return replace(self, strategy=reweighted(self.strategy, own), keywords_only=alone)

    def with_limit(self, limit: int) -> SearchConfig:
        """The same search for another number of results; depths stay as they are."""
        stages = tuple(replace(stage, limit=limit) if isinstance(stage, Cut) else stage for stage in self.finish)
        return replace(self, limit=limit, finish=stages)

    def to_json(self) -> dict[str, Any]:
        """The record of a weights file."""
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
            **({"context": context} if (context := self.context.to_json()) else {}),
            "provenance": dict(self.provenance),
        }

    def save(self, path: str | Path) -> None:
        """Write a weights file: canonical JSON, to a temporary file first, then renamed."""
        write_text(path, canonical(self.to_json()))

    @classmethod
    def load(cls, path: str | Path) -> SearchConfig:
        """Read a weights file.

        Raises ConfigError naming every unknown key, every value out of range, NaN, an unknown
        signal or stage, or another schema version, with the remedy.
        """
        try:
            text = read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            remedy = "name the search-weights.json in it" if Path(path).is_dir() else "`steelyard tune` writes one"
            place = shown(str(path), PATH_WIDTH)
            raise ConfigError(f"cannot read the weights file {place}: {reason}; {remedy}") from None
        try:
            record = STRICT_JSON.decode(text)
            canonical(record).encode()  # half a surrogate pair could not be written again
        except UnicodeEncodeError:
            raise ConfigError(
                f"weights file {shown(str(path), PATH_WIDTH)} is not valid Unicode; write whole characters"
            ) from None
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"weights file {shown(str(path), PATH_WIDTH)} is not valid JSON: {error}") from None
        return cls.from_json(record, str(path))

    @classmethod
    def from_json(cls, record: object, source: str = "weights") -> SearchConfig:
        """The configuration of a parsed weights file; see `load` for the errors."""
        problems = _problems(record)
        if problems or not isinstance(record, Mapping):
            raise ConfigError(f"weights file {shown(source)}: " + "; ".join(problems))
        lists = record["retrievers"].keys() if record["system"] == LISTS else ()
        parse = partial(parse_strategy, lists=lists)
        texts = {"": record["strategy"], **record.get("by_intent", {})}
        strategies = {intent: _read(problems, parse, text) for intent, text in texts.items()}
        alone = record.get("keywords_only")
        keywords_only = None if alone is None else _read(problems, parse, alone)
        stages = _read(problems, parse_stages, record["finish"])
        cuts = [stage.limit for stage in stages or () if isinstance(stage, Cut)]
        if any(cut != record["limit"] for cut in cuts):
            problems.append(f"limit {record['limit']} is not the cut of finish, {cuts}; write it twice")
        if problems:
            raise ConfigError(f"weights file {shown(source)}: " + "; ".join(problems))
        config = cls(
            system=record["system"],
            profile=record["profile"],
            limit=int(record["limit"]),
            strategy=strategies.pop(""),
            retrievers={n: RetrieverConfig.from_json(settings) for n, settings in record["retrievers"].items()},
            finish=stages,
            by_intent=strategies,
            provenance=record.get("provenance", {}),
            keywords_only=keywords_only,
            context=ContextConfig(**record.get("context", {})),
        )
        return _weighed(config, record.get("weights", {}), source)


def _weighed(config: SearchConfig, weights: Mapping[str, float], source: str) -> SearchConfig:
    """The configuration under the weights that its file names beside the strategy."""
    try:
        return config.with_weights(weights) if weights else config
    except ConfigError as error:
        raise ConfigError(f"weights file {shown(source)}: weights: {error}") from None


def _read(problems: list[str], parse: Callable[[Any], Any], text: object) -> Any:  # noqa: ANN401 -- what it reads
    """What `parse` makes of the text; None when it cannot, with the reason added to the problems."""
    try:
        return parse(text)
    except ConfigError as error:
        problems.append(str(error))
        return None


def default_finish(limit: int) -> tuple[Stage, ...]:
    """What every system ends with: the cut to the limit."""
    return (Cut(limit),)


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of weights files: the published file, with the retrievers as they declare themselves."""
    text = resources.files("steelyard").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    common: dict[str, Any] = loaded["$defs"]["retriever"]
    loaded["properties"]["retrievers"]["properties"] = {
        name: common | {"properties": common["properties"] | _parameters(kind.parameters)}
        for name, kind in RETRIEVER_KINDS.items()
    }
    loaded["else"]["properties"]["retrievers"]["properties"] = dict.fromkeys(RETRIEVER_KINDS, True)
    return loaded


def published_schema() -> str:
    """What `SCHEMA_FILE` has to hold for other validators: write it there when a retriever changed."""
    return json.dumps(schema(), indent=2) + "\n"


def _parameters(parameters: Iterable[Parameter]) -> dict[str, Any]:
    return {
        own.name: {
            "type": "number",
            "minimum": own.low,
            "maximum": own.high,
            "default": own.default,
            "description": own.text,
        }
        for own in parameters
    }


def _problems(record: object) -> list[str]:
    """Every way in which a record breaks the schema, in words."""
    from jsonschema import Draft202012Validator

    if isinstance(record, Mapping) and record.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        return [
            f"schema_version {shown(record['schema_version'])} is not {SCHEMA_VERSION}, which this one reads; "
            "tune again, or use the Steelyard that wrote it"
        ]
    errors = Draft202012Validator(schema()).iter_errors(record)
    found = []
    for error in sorted(errors, key=lambda e: list(map(str, e.absolute_path))):
        place = ".".join(map(str, error.absolute_path)) or "the file"
        if error.validator == "additionalProperties":
            valid = error.schema.get("properties", {})
            extra = sorted(set(error.instance) - set(valid))
            found += [f"{shown(place)}: unknown key {shown(key)}{nearest(key, valid)}" for key in extra]
        else:
            found.append(f"{shown(place)}: {shown(error.message, 200)}")
    return found
