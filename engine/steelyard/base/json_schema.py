"""What breaks a JSON Schema, in words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any

from steelyard.base.errors import nearest, quote, visible

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

MOST_TOLD = 40
"""Violations that are told; a hostile file has as many as it likes."""
LONGEST_RULE = 300
"""Characters of a rule, which may name a key of the file."""


class Schema:
    """A JSON Schema of draft 2020-12, whose references are to its own ``$defs``, and what breaks it, in words.

    jsonschema-rs checks, imported when a file is checked: the package jsonschema builds grammars for a second and
    a half when it is imported beside Jupyter.
    """

    def __init__(self, document: Mapping[str, object]) -> None:
        from jsonschema_rs import Draft202012Validator

        self._document: Any = dict(document)
        self._validator = Draft202012Validator(self._document, mask="it")

    def violations(self, value: object) -> list[str]:
        """The first violations, each once, by place: keys and indexes with dots between, the value, the rule.

        ValueError for what is not JSON, for text that is not Unicode, and for nesting beyond some 250 levels. NaN
        counts as null.
        """
        told: dict[str, None] = {}
        for fault in sorted(self._validator.iter_errors(value), key=_order):
            place = quote(".".join(map(str, fault.instance_path))) if fault.instance_path else ""
            held = "" if isinstance(fault.instance, Mapping) else quote(fault.instance)  # the rule names its keys
            rules = [visible(fault.message[:LONGEST_RULE])]
            if len(options := getattr(fault.kind, "options", ())) > 3:  # of which the message names two
                rules = ["it is not one of " + ", ".join(f'"{option}"' for option in options)]
            if unexpected := getattr(fault.kind, "unexpected", ()):
                valid = reduce(getitem, fault.schema_path[:-1], self._document).get("properties", {})
                first = sorted(unexpected)[:MOST_TOLD]
                rules = [f"unknown key {quote(name)}{nearest(name, valid)}" for name in first]
            named = " = ".join(filter(None, (place, held)))
            told |= dict.fromkeys(f"{named}: {rule}" if named else rule for rule in rules)
            if len(told) >= MOST_TOLD:
                break
        return list(told)[:MOST_TOLD]


def _order(fault: ValidationError) -> list[tuple[bool, str]]:
    """Where a fault is, indexes before keys and in the order of numbers."""
    return [(isinstance(part, str), str(part).rjust(9)) for part in fault.instance_path]
