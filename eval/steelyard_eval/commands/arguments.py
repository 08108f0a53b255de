"""What options on the command line mean: filters, scopes, tiers and their priorities."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from steelyard.errors import ConfigError, nearest, shown
from steelyard.fields import LIST_FIELDS, NUMBER_FIELDS, TEXT_FIELDS, parse_number
from steelyard.filters import EVERYTHING, RANGES, SUPERSEDED, Filters, visible_to

_OPERATOR = re.compile(r"!=|>=|<=|=|>|<")
_TESTS = {"!=": "none", ">=": "from", ">": "after", "<": "before", "<=": "until"}


def parse_filters(texts: Sequence[str]) -> Filters:
    """Options such as ``project=api``, ``tags!=draft`` and ``created_at>=2026-01-01`` as filters.

    A field that is given several times is any of the values; tags hold all of them.
    """
    asked: dict[str, dict[str, Any]] = {}
    for text in texts:
        operator = _OPERATOR.search(text)
        if operator is None:
            raise ConfigError(f"filter {shown(text)} is not FIELD=VALUE; write it as project=my-app")
        name, value = text[: operator.start()], text[operator.end() :]
        test = _TESTS.get(operator[0], "all" if name in LIST_FIELDS else "any")
        tests = asked.setdefault(name, {})
        if test in tests and test in RANGES:
            raise ConfigError(f"filter {shown(name)} has two bounds of one kind; write one {operator[0]}")
        tests.setdefault(test, []).append(_typed(name, value))
    bounds = {name: {t: v[0] if t in RANGES else v for t, v in tests.items()} for name, tests in asked.items()}
    return Filters.of(bounds)


def parse_scopes(texts: Sequence[str]) -> Filters:
    """Options such as ``vault=notes`` and ``tenant=team-a``: what the caller may see, all of them together."""
    scopes: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in TEXT_FIELDS:
            raise ConfigError(
                f"scope {shown(text)} is not FIELD=VALUE with a field of text; write it as vault=notes"
            )
        scopes[name] = (*scopes.get(name, ()), value)
    return visible_to(scopes) if scopes else EVERYTHING


def _typed(name: str, value: str) -> str | float | bool:
    """What a value on the command line stands for: a number or truth value where the field holds one."""
    if name == SUPERSEDED and value in ("true", "false"):
        return value == "true"
    try:
        return parse_number(value) if name in NUMBER_FIELDS else value
    except ValueError:
        return value  # a date, or what Filters will refuse


def parse_tier(text: str) -> tuple[str, str]:
    """Tier and path of a vault as it is named on the command line."""
    name, equals, path = text.partition("=")
    return (name, path) if equals and not Path(text).exists() else (Path(text).stem, text)


def parse_priorities(texts: Sequence[str], tiers: Collection[str]) -> dict[str, float]:
    """``tier=number`` options; ConfigError for a tier that there is none of or a value that is no number."""
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in tiers:
            raise ConfigError(f"priority {shown(text)} names no tier{nearest(name, tiers)}")
        try:
            found[name] = parse_number(value)
        except ValueError:
            raise ConfigError(f"priority {shown(text)} is not TIER=NUMBER; write it as team=0.6") from None
    return found
