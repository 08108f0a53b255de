"""YAML of other programs: plain values only, without anchors, by which a small file could grow without end."""

from __future__ import annotations

from typing import Any

from steelyard.base.errors import DataError

DEEPEST = 64
"""Levels of a document, as of JSON: libyaml's loader calls itself for each."""


def read_yaml(text: str, place: str) -> Any:  # noqa: ANN401 -- any YAML value
    """A document; DataError, which begins with `place`, when it is none, is too deep, or has anchors or tags."""
    import yaml

    loader = getattr(
        yaml, "CSafeLoader", yaml.SafeLoader
    )  # libyaml, ten times as fast, is in all wheels of PyYAML
    depth = 0
    try:
        for event in yaml.parse(text, loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > DEEPEST:
                what = "more than 64 levels of YAML" if depth > DEEPEST else "YAML anchors; write the values out"
                raise DataError(f"{place} has {what}")
        return yaml.load(text, loader)  # noqa: S506 -- both are safe loaders
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(f"{place} is not YAML that can be read ({reason}); correct it") from None
