"""The JSON Schema of a document, made of its type, so that files of others are held to what is written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from steelyard.base.schemas import Schema

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


@cache
def schema_of(document: type, *needed: str) -> Schema:
    """The schema of a document's type, which allows unknown keys everywhere; `needed` are required, too.

    A pair in `Annotated` is one more rule, such as ``("minimum", 0)``.
    """
    rules = rules_of(document)
    return Schema({**rules, "required": [*rules["required"], *needed]})


def rules_of(kind: Any) -> dict[str, Any]:  # noqa: ANN401 -- any type
    """The rules of a type in the words of JSON Schema."""
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        # Of annotations that are texts `__required_keys__` does not know NotRequired.
        needed = [key for key in hints if key in kind.__required_keys__ and get_origin(hints[key]) != NotRequired]
        properties = {key: rules_of(hint) for key, hint in hints.items()}
        return {"type": "object", "properties": properties, **({"required": needed} if needed else {})}
    origin, parts = get_origin(kind), get_args(kind)
    if origin is NotRequired:
        return rules_of(parts[0])
    if origin is Annotated:
        more = {name: [*rule] if isinstance(rule, tuple) else rule for name, rule in parts[1:]}
        return rules_of(parts[0]) | more
    if origin is Literal:
        return {"enum": [*parts]}
    if origin in (Union, UnionType):
        (rules,) = (rules_of(part) for part in parts if part is not NoneType)
        return {**rules, "type": [rules["type"], "null"]}
    if origin is list:
        return {"type": "array", "items": rules_of(parts[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": rules_of(parts[1])}
    return {"type": _NAMES[kind]} if kind in _NAMES else {}
