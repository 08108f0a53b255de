"""What a memory server offers: its tools, each with its arguments and answer, as the commands of these names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

import jsonschema_rs

from steelyard.base.errors import ConfigError, shown
from steelyard.memory.query import Query
from steelyard_eval.extensions.serve.caller import Caller
from steelyard_eval.vaults.arguments import parse_filters
from steelyard_eval.vaults.read import record_of

Json = Any
Arguments = Mapping[str, Any]
LONGEST = 200
"""Characters that a message quotes of an argument."""
MOST_RESULTS = 10_000
"""Results of one search, as in `steelyard search`."""


@dataclass(frozen=True)
class Tool:
    """One tool: what clients call it by, what it tells them, and the JSON Schema of its arguments.

    `answer` makes a JSON value of the caller and the arguments, which are valid; ConfigError and DataError are
    told to the client. One that `logs` does nothing else, so that it is offered where there is a log.
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


def search(caller: Caller, given: Arguments) -> Json:
    """Hits as `steelyard search --json` gives them."""
    filters, tags = parse_filters(given.get("filters", ())), tuple(given.get("tags", ()))
    query = Query(given["query"], filters=filters, tags=tags, domain=given.get("domain", ""))
    logged = caller.search(query, _limit(given.get("limit")))
    showing = logged.searcher.system.showing
    hits = [showing.show(hit, logged.result, given["mode"]) for hit in logged.result.hits]
    name = {"query_id": logged.query_id} if logged.query_id else {}
    return {"hits": hits, "notes": list(logged.result.notes), **name}


def get(caller: Caller, given: Arguments) -> Json:
    """Whole entries, and the ids of which there is none."""
    entries = caller.read(given["ids"])
    known = {entry.id for entry in entries}
    missing = [name for name in given["ids"] if name not in known]
    return {"entries": list(map(record_of, entries)), "missing": missing}


def feedback(caller: Caller, given: Arguments) -> Json:
    """An act, logged."""
    caller.act(given["query_id"], given.get("id", ""), given["action"])
    return {"recorded": True}


def _limit(value: Json) -> int | None:
    """A number of results as clients write it, also 5.0; ConfigError for none."""
    if value is not None and (value != int(value) or not 1 <= value <= MOST_RESULTS):
        raise ConfigError(f"the limit {shown(str(value))} is not a whole number from 1 to {MOST_RESULTS}")
    return None if value is None else int(value)


def tools() -> dict[str, Tool]:
    """Every tool by name, with the schema that tools.json declares."""
    answers = {"memory_search": search, "memory_get": get, "memory_feedback": feedback}
    declared = json.loads(resources.files(__package__).joinpath("tools.json").read_text("utf-8"))
    made = (Tool(answer=answers[one["name"]], **one) for one in declared)
    return {tool.name: tool for tool in made}
