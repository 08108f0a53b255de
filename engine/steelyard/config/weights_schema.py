"""The schema of `search-weights.json` files: what a record has to be before its strategies are parsed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from steelyard.base.errors import shown
from steelyard.base.files import STRICT_JSON
from steelyard.base.schemas import Schema
from steelyard.retrievers import RETRIEVER_KINDS, RetrieverKind

SCHEMA_VERSION = 1
SCHEMA_FILE = "search-weights.schema.json"


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of weights files: the published file, completed by the declared retrievers."""
    text = resources.files("steelyard").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    loaded: dict[str, Any] = STRICT_JSON.decode(text)
    common: dict[str, Any] = loaded["$defs"]["retriever"]
    loaded["properties"]["retrievers"]["properties"] = {
        name: common | {"properties": _settings(common["properties"], kind)}
        for name, kind in RETRIEVER_KINDS.items()
    }
    loaded["else"]["properties"]["retrievers"]["properties"] = dict.fromkeys(RETRIEVER_KINDS, True)
    return loaded


def _settings(common: Mapping[str, Any], kind: RetrieverKind) -> dict[str, Any]:
    """What every retriever is set by, `after` only where it starts from others, and its own parameters."""
    settings = {name: rule for name, rule in common.items() if name != "after" or kind.after}
    return settings | {option.name: option.schema() for option in kind.parameters}


@cache
def _checker() -> Schema:
    return Schema(schema())


def problems_of(record: object) -> list[str]:
    """Every way in which a record breaks the schema, in words."""
    if isinstance(record, Mapping) and record.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        return [
            f"schema_version {shown(record['schema_version'])} is not {SCHEMA_VERSION}, the version that this "
            "release reads; tune again, or use the release that wrote it"
        ]
    try:
        return list(map(str, _checker().violations(record)))
    except ValueError as error:
        return [f"is not JSON ({error})"]
