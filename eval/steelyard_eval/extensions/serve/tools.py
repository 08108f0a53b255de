"""What a memory server offers: the tools of one face, our own or that of a memory system whose place we take.

Names and schemas of a system's tools are in `schemas/`, as they are in its source but for the descriptions, which
are in our words; what answers them stands in the module of the face.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

import jsonschema_rs

from steelyard.base.errors import ConfigError, shown
from steelyard.base.fields import format_time
from steelyard.base.files import STRICT_JSON
from steelyard.memory.entry import Entry
from steelyard.memory.filters import Filters
from steelyard_eval.extensions.serve.caller import Caller

Json = Any
Arguments = Mapping[str, Any]
LONGEST = 200
"""Characters that a message quotes of an argument."""


@dataclass(frozen=True)
class Tool:
    """One tool: what clients call it by, what it tells them, and the JSON Schema of its arguments.

    `answer` makes a JSON value of the caller and the arguments, which are valid; its errors are told to the
    client. One that `logs` does nothing else, so that it is offered where there is a log.
    """

    name: str
    about: str
    schema: Mapping[str, Json]
    answer: Callable[[Caller, Arguments], Json]
    logs: bool = False

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        return jsonschema_rs.validator_for(dict(self.schema))

    def checked(self, arguments: Arguments) -> Arguments:
        """The arguments, with defaults for those that are missing; ConfigError where they break the schema."""
        error = next(self._validator.iter_errors(dict(arguments)), None)
        if error is not None:
            place = "".join(f".{part}" for part in error.instance_path)
            raise ConfigError(f"{self.name}{place}: {shown(str(error.message), LONGEST)}; see the tool's schema")
        properties = self.schema.get("properties", {})
        defaults = {name: rule["default"] for name, rule in properties.items() if "default" in rule}
        return {**defaults, **arguments}


@dataclass(frozen=True)
class Face:
    """How a server looks to its clients.

    `name` is what `--mimic` calls it, `system` what ranks unless the command line says otherwise, `tools` are in
    the order in which they are listed. `source` is the repository and the commit that names, schemas and forms
    are of. `structured` is whether answers are also given as structured content, `indent` that of the JSON text.
    `fault` makes the answer of a call that failed, from a message and the name of the tool.
    """

    name: str
    system: str
    tools: Sequence[Tool]
    source: str = ""
    structured: bool = False
    indent: int | None = None
    fault: Callable[[str, str], Json] = lambda message, _: message

    def text(self, value: Json) -> str:
        """An answer as text: JSON, or a message as it is."""
        if isinstance(value, str):
            return value
        separators = (",", ":") if self.structured else None
        return json.dumps(value, ensure_ascii=False, indent=self.indent, separators=separators, allow_nan=False)


def declared(face: str, **answers: Callable[[Caller, Arguments], Json]) -> tuple[Tool, ...]:
    """The tools that ``schemas/FACE.json`` declares, in its order, each with what answers it by its name."""
    text = resources.files(__package__).joinpath(f"schemas/{face}.json").read_text("utf-8")
    return tuple(
        Tool(one["name"], one.get("about", ""), one["schema"], answers[one["name"]], one.get("logs", False))
        for one in STRICT_JSON.decode(text)
    )


def told(entry: Entry, form: str) -> dict[str, Json]:
    """An entry in a program's words, by a form: their name, and with `=` the field of ours.

    ``+`` before it is a field that an import kept, ``@`` a time as text; of what is empty ``?`` makes null, and
    ``-`` nothing.

    >>> told(Entry("a", text="Keys."), "id content=text title=title? tier=+tier- tags")
    {'id': 'a', 'content': 'Keys.', 'title': None, 'tags': []}
    """
    said: dict[str, Json] = {}
    for theirs, _, ours in (part.partition("=") for part in form.split()):
        name = (ours or theirs).strip("+@?-")
        value = entry.extra.get(name) if ours[:1] == "+" else getattr(entry, name)
        value = format_time(value) if ours[:1] == "@" else list(value) if isinstance(value, tuple) else value
        if value or ours[-1:] not in ("?", "-"):
            said[theirs] = value
        elif ours[-1:] == "?":
            said[theirs] = None
    return said


def passing(**wanted: Json) -> Filters:
    """The entries whose fields have these values: any of a list, but all of the tags; None asks nothing."""
    return Filters.of({name: value for name, value in wanted.items() if value is not None})


def number_of_results(value: Json, default: int | None = None) -> int | None:
    """A number of results as clients write it, also 5.0; ConfigError for none."""
    if value is None:
        return default
    if value != int(value) or not 1 <= value <= MOST_RESULTS:
        raise ConfigError(f"the limit {shown(str(value))} is not a whole number from 1 to {MOST_RESULTS}")
    return int(value)


MOST_RESULTS = 10_000
"""Results of one search, as in `steelyard search`."""
