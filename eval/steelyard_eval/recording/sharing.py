"""Which configurations can share a recording: those whose retrievers find the same lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.live.sources import identity
from steelyard.retrievers import RETRIEVER_KINDS

BY_RETRIEVER = ("field_weights", "filters", "similarity", "after")
"""The keys of an identity whose values are stored by retriever."""


def share(configs: Iterable[SearchConfig]) -> list[list[int]]:
    """Group configurations that can share a recording; each joins the first group that fits, by position."""
    groups: list[list[int]] = []
    identities = [identity(config) for config in configs]
    for i, asked in enumerate(identities):
        fitting = (g for g in groups if not any(_differences(asked, identities[other]) for other in g))
        if (group := next(fitting, None)) is None:
            groups.append(group := [])
        group.append(i)
    return groups


def agree(config: SearchConfig, fingerprint: Mapping[str, object]) -> None:
    """Raise ConfigError listing every parameter in which a configuration differs from a recording."""
    recorded = fingerprint.get("model", "")
    problems = _differences(identity(config), fingerprint)
    problems += [("model", model, recorded) for model in sorted(config.models - {recorded})]
    if problems:
        told = [f"{name} is {asked!r}, the recording has {held!r}" for name, asked, held in problems]
        raise ConfigError("; ".join(told) + ". Record again with this configuration")


def _differences(asked: Mapping[str, object], fixed: Mapping[str, object]) -> list[tuple[str, object, object]]:
    """What differs, asked and fixed; a retriever that only one side has is not a difference."""
    wanted, held = _flat(asked), _flat(fixed)
    return [
        (name, value, held.get(name))
        for name, value in wanted.items()
        if value != held.get(name) and (name in held or not name.startswith("retrievers."))
    ]


def _flat(parts: Mapping[str, object]) -> dict[str, object]:
    """The same values under distinct names such as ``retrievers.fts.filters`` and ``retrievers.bm25.k1``."""
    flat: dict[str, object] = {}
    for key, value in parts.items():
        if key in BY_RETRIEVER and isinstance(value, Mapping):
            flat |= {f"retrievers.{name}.{key}": setting for name, setting in value.items()}
        elif key in RETRIEVER_KINDS and isinstance(value, Mapping):
            flat |= {f"retrievers.{key}.{name}": setting for name, setting in value.items()}
        else:
            flat[key] = value
    return flat
