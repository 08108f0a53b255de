"""Says in words which rules of a JSON Schema a value breaks.

jsonschema-rs checks it, imported when a file is checked. The package jsonschema builds grammars for a second and a
half when it is imported beside Jupyter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import islice
from operator import getitem
from typing import TYPE_CHECKING, Any, cast

from steelyard.base.errors import nearest, shown

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

WHOLE = "the file"
"""The place of what is wrong with the whole value."""
MOST = 40
"""Violations that are told; a hostile file has as many as it likes."""


@dataclass(frozen=True)
class Violation:
    """A place that breaks a schema (keys and indexes with dots between), the value there, and the rule.

    The value is as it may be shown, and empty for an object, of which the rule names the keys.
    """

    place: str
    value: str
    rule: str

    def __str__(self) -> str:
        place = "" if self.place == WHOLE else shown(self.place)  # whoever reads a file names it
        named = " = ".join(filter(None, (place, self.value)))
        return f"{named}: {self.rule}" if named else self.rule


class Schema:
    """A JSON Schema of draft 2020-12, whose references are to its own ``$defs``."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._document = dict(document)

    @cached_property
    def _validator(self) -> Draft202012Validator:
        from jsonschema_rs import Draft202012Validator

        return Draft202012Validator(self._document)

    def violations(self, value: object) -> Iterable[Violation]:
        """The first violations, each once, by place; NaN counts as null.

        ValueError for what is not JSON, for text that is not Unicode, and for nesting beyond some 250 levels.
        """
        faults = self._validator.iter_errors(value)
        every = (violation for fault in sorted(faults, key=_order) for violation in self._of(fault))
        return dict.fromkeys(islice(every, MOST))

    def _of(self, fault: ValidationError) -> Iterator[Violation]:
        place = ".".join(map(str, fault.instance_path)) or WHOLE
        value = "" if isinstance(fault.instance, Mapping) else shown(fault.instance)
        for rule in self._rules(fault):
            yield Violation(place, value, rule)

    def _rules(self, fault: ValidationError) -> Iterator[str]:
        from jsonschema_rs import ValidationErrorKind

        match fault.kind:
            case ValidationErrorKind.Type(types=types):
                yield f"must be of type {' or '.join(types)}"
            case ValidationErrorKind.Required():
                held = cast(Mapping[str, object], fault.instance)
                missing = (name for name in self._at(fault.schema_path) if name not in held)
                yield f"must have {', '.join(missing)}"
            case ValidationErrorKind.AdditionalProperties(unexpected=names):
                valid = self._at(fault.schema_path[:-1]).get("properties", {})
                yield from (f"unknown key {shown(name)}{nearest(name, valid)}" for name in sorted(names)[:MOST])
            case ValidationErrorKind.PropertyNames(error=inner):
                yield from (f"key {shown(inner.instance)} {rule}" for rule in self._rules(inner))
            case ValidationErrorKind.Enum(options=options):
                yield f"must be {' or '.join(map(json.dumps, options))}"
            case ValidationErrorKind.Constant(expected_value=wanted):
                yield f"must be {json.dumps(wanted)}"
            case kind:
                yield f"must satisfy {kind.name} {shown(kind.value)}"

    def _at(self, path: Iterable[str | int]) -> Any:  # noqa: ANN401 -- any part of a schema
        return reduce(getitem, path, self._document)  # type: ignore[arg-type]  # a path has keys for objects and indexes for lists


def _order(fault: ValidationError) -> list[tuple[bool, str]]:
    """Where a fault is, indexes before keys and in the order of numbers."""
    return [(isinstance(part, str), str(part).rjust(9)) for part in fault.instance_path]
