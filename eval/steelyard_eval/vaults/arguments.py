"""Parses the values of options: filters, scopes, tiers and their priorities."""

import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from steelyard.base.errors import ConfigError, quote
from steelyard.base.extensions import extension
from steelyard.base.fields import LIST_FIELDS, NUMBER_FIELDS, TEXT_FIELDS, TIME_FIELDS, parse_number
from steelyard.base.files import cache_folder
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, RANGES, SUPERSEDED, Filters, visible_to
from steelyard.stores.base import is_address

_OPERATOR = re.compile(r"!=|>=|<=|\^=|=|>|<")
_TESTS = {"!=": "none", ">=": "from", ">": "after", "<": "before", "<=": "until", "^=": "prefix"}
_OF_PERIOD = {
    "=": [("from", 0), ("before", 1)],
    ">=": [("from", 0)],
    ">": [("from", 1)],
    "<": [("before", 0)],
    "<=": [("before", 1)],
}
"""The tests of a period, each with its first moment (0), or with the first one after it (1)."""
TIER_PREFIX = "priority."
_PERIOD = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?", re.ASCII)


def parse_filters(texts: Sequence[str]) -> Filters:
    """Parse options such as ``project=api``, ``tags!=draft``, ``uri^=cortex://user/``, ``created_at>=2026``.

    Repeat a field to accept any of its values; repeat tags to require all of them. A year, a month or a day
    means the whole period: ``created_at=2026`` is any moment of that year, ``created_at>2026-03`` after March.

    Raises ConfigError for an option of another form, an unknown field, and a value of the wrong type.
    """
    asked: dict[str, dict[str, Any]] = {}
    for text in texts:
        operator = _OPERATOR.search(text)
        if operator is None:
            raise ConfigError(f"filter {quote(text)} is not FIELD=VALUE; write it as project=my-app")
        name, value = text[: operator.start()], text[operator.end() :]
        for test, typed in _tests(name, operator[0], value):
            tests = asked.setdefault(name, {})
            if test in tests and test in RANGES:
                raise ConfigError(f"filter {quote(name)} has two bounds of one kind; write one {operator[0]}")
            tests.setdefault(test, []).append(typed)
    bounds = {name: {t: v[0] if t in RANGES else v for t, v in tests.items()} for name, tests in asked.items()}
    return Filters.of(bounds)


def _tests(name: str, operator: str, value: str) -> list[tuple[str, str | float | bool]]:
    """The tests of one option, each with its value; a period has a first moment, and a first one after it."""
    if (period := _period(value) if name in TIME_FIELDS else None) is None:
        return [(_TESTS.get(operator, "all" if name in LIST_FIELDS else "any"), _typed(name, value))]
    if operator not in _OF_PERIOD:
        raise ConfigError(f"filter {quote(name)} is a time; write {name}>={value}, or {name}<{value}")
    return [(test, period[end]) for test, end in _OF_PERIOD[operator]]


def _period(text: str) -> tuple[float, float] | None:
    """The first moment of a year, month or day (seconds UTC) and the first one after it; None for other text.

    >>> _period("1970"), _period("1970-01-02")
    ((0.0, 31536000.0), (86400.0, 172800.0))
    """
    if not _PERIOD.fullmatch(text):
        return None
    year, month, day = (int(part) for part in f"{text}-00-00".split("-")[:3])
    try:
        first = datetime(year, month or 1, day or 1, tzinfo=UTC)
        months = year * 12 + (month or 1) - 1 + (1 if month else 12)
        after = first + timedelta(days=1) if day else datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None  # there is no such day, or none after it; Filters refuses it by name
    return first.timestamp(), after.timestamp()


def parse_scopes(texts: Sequence[str]) -> Filters:
    """Parse options such as ``vault=notes`` and ``tenant=team-a``: the caller may see what is in any of them."""
    scopes: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in TEXT_FIELDS:
            raise ConfigError(
                f"scope {quote(text)} is not FIELD=VALUE with a field of text; write it as vault=notes"
            )
        scopes[name] = (*scopes.get(name, ()), value)
    return visible_to(scopes) if scopes else EVERYTHING


def _typed(name: str, value: str) -> str | float | bool:
    if name == SUPERSEDED and value in ("true", "false"):
        return value == "true"
    try:
        number = parse_number(value) if name in NUMBER_FIELDS else value
    except ValueError:
        return value  # a moment, or what Filters will refuse
    # A year that there is not, such as 0000, is no number of seconds either: Filters refuses the text.
    return value if name in TIME_FIELDS and _PERIOD.fullmatch(value) else number


def parse_tier(text: str) -> tuple[str, str]:
    """Split the name of a vault on the command line into tier and path."""
    if is_address(text):
        return text.partition("?")[0].rpartition("/")[2] or "postgres", text
    name, equals, path = text.partition("=")
    return (name, path) if equals and not Path(text).exists() else (Path(text).stem, text)


class Settings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What `--set NAME=VALUE` says of one search: what belongs to one system, weights, priorities of tiers."""

    mode: Literal["full", "scan"] = "full"
    content: bool = False
    tags: str = ""
    domain: str = ""
    detect_intent: bool = True
    semantic: Literal["always", "auto", "never"] | None = None
    topup: bool | None = None
    model: str = ""
    hnsw: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    threshold: float | None = None
    direct: bool = False
    dimension: str = ""
    rewrite: bool = False
    adaptive: bool | None = None
    weights: dict[str, float] = {}
    priorities: dict[str, float] = {}

    @classmethod
    def of(cls, named: Mapping[str, str]) -> "Settings":
        """Read the pairs; a name that is no field is a weight. ConfigError for a value of another kind."""
        own = {name: value for name, value in named.items() if name in cls.__struct_fields__}
        weights: dict[str, float] = {}
        priorities: dict[str, float] = {}
        for name in [name for name in named if name not in own]:
            try:
                numbers = priorities if name.startswith(TIER_PREFIX) else weights
                numbers[name.removeprefix(TIER_PREFIX)] = parse_number(named[name])
            except ValueError:
                raise ConfigError(f"--set {quote(name)} must be a number, such as recency=0.2") from None
        try:
            return msgspec.convert({**own, "weights": weights, "priorities": priorities}, cls, strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(f"--set: {error}") from None


def vault_file(path: str, tenant: str | None) -> str:
    """The vault file that a command names, or that of a tenant in the folder of all."""
    if tenant is not None and is_address(path):
        raise ConfigError("--tenant needs a folder of vaults; in a database, a tenant is a role")
    return path if tenant is None else str(extension("cortex_client").vault_of(path, tenant))


def layered_entries(entries: Sequence[Entry], layers: str) -> list[Entry]:
    """Give entries and directories abstracts and overviews where they have none.

    `layers` is extractive (from the text), llm (by the endpoint that LLM_BASE_URL names), or none. Raises
    ConfigError for llm where the environment names no endpoint, EmbedderError where it fails.
    """
    if layers == "none":
        return list(entries)
    own = extension("cortex_client")
    if layers == "extractive":
        return list(own.with_layers(entries, own.extract))
    chat = extension("network").chat_of(os.environ)
    if chat is None:
        raise ConfigError("--layers llm needs an endpoint; set LLM_BASE_URL, or use --layers extractive")
    return list(own.with_layers(entries, own.ask(chat, cache_folder(os.environ) / "layers")))
