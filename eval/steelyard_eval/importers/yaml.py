"""YAML of other programs: plain values only, without anchors, by which a small file could grow without end."""

from __future__ import annotations

from typing import Any

from steelyard.base.errors import DataError


def read_yaml(text: str, place: str) -> Any:  # noqa: ANN401 -- any YAML value
    """A document; DataError, which begins with `place`, when it is none or has anchors or tags."""
    import yaml

    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            raise DataError(f"{place} has YAML anchors; write the values out")
        return yaml.load(text, yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(f"{place} is not YAML that can be read ({reason}); correct it") from None
