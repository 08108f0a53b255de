"""What decides which lists retrievers find: who shares a recording, and what a replay may not change.

Depths are no part of it, because a replay cuts the lists that were recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.config import SearchConfig
from steelyard.errors import ConfigError
from steelyard.retrievers import RETRIEVER_KINDS
from steelyard.systems import find_system
from steelyard.table import EMBEDDING

BY_RETRIEVER = ("field_weights", "filters", "similarity")
"""The keys of an identity whose values are kept by the name of the retriever."""
LATER = ("embedded", "directory", "intents")
"""Keys that the first recordings lack; what they have in their place was never in question."""


def identity(config: SearchConfig) -> dict[str, Any]:
    """How a configuration's retrievers find their lists, as JSON values for the fingerprint of a recording.

    The parameters of a retriever are kept under its name, those not set with their defaults.
    Raises ConfigError for a parameter out of its range.
    """
    reading = find_system(config.name).reading
    own = config.retrievers
    kinds = {name: RETRIEVER_KINDS[name] for name in own if name in RETRIEVER_KINDS}  # lists have other names too
    return {
        **reading.identity(),
        "embedded": reading.recipe,
        **{name: kind.values(own[name]) for name, kind in kinds.items() if kind.parameters},
        "field_weights": {name: dict(settings.field_weights) for name, settings in own.items()},
        "filters": {name: settings.filters for name, settings in own.items()},
        "similarity": {name: settings.similarity for name, settings in own.items() if name in EMBEDDING},
    }


def share(configs: Iterable[SearchConfig]) -> list[list[int]]:
    """The positions of configurations that one recording can serve, in groups; each joins the first that fits."""
    groups: list[list[int]] = []
    identities = [identity(config) for config in configs]
    for at, own in enumerate(identities):
        home = (g for g in groups if not any(_differences(own, identities[other]) for other in g))
        group = next(home, None)
        if group is None:
            groups.append([at])
        else:
            group.append(at)
    return groups


def agree(config: SearchConfig, fingerprint: Mapping[str, Any]) -> None:
    """ConfigError naming every parameter in which a configuration differs from a recording."""
    problems = _differences(identity(config), fingerprint)
    models = {settings.model for settings in config.retrievers.values() if settings.model}
    recorded = fingerprint.get("model", "")
    problems += [_differs("model", model, recorded) for model in sorted(models - {recorded})]
    if problems:
        raise ConfigError("; ".join(problems) + ". Record again with this configuration")


def _differences(asked: Mapping[str, Any], fixed: Mapping[str, Any]) -> list[str]:
    """In words; a retriever that only one side has is no difference."""
    wanted, found = _flat(asked), _flat(fixed)
    return [
        _differs(name, value, found.get(name))
        for name, value in wanted.items()
        if value != found.get(name) and (name in found or not _optional(name))
    ]


def _flat(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The same by names that can be told apart: ``retrievers.fts.filters``, ``retrievers.bm25.k1``."""
    flat: dict[str, Any] = {}
    for key, value in parts.items():
        if key in BY_RETRIEVER and isinstance(value, Mapping):
            flat |= {f"retrievers.{name}.{key}": own for name, own in value.items()}
        elif key in RETRIEVER_KINDS and isinstance(value, Mapping):
            flat |= {f"retrievers.{key}.{name}": own for name, own in value.items()}
        else:
            flat[key] = value
    return flat


def _optional(name: str) -> bool:
    return name in LATER or name.startswith("retrievers.")


def _differs(name: str, asked: object, recorded: object) -> str:
    return f"{name} is {asked!r}, the recording has {recorded!r}"
