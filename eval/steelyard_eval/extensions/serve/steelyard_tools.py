"""Our own face: search, get and feedback, with the forms of the commands of these names."""

from __future__ import annotations

from steelyard.feedback.log import ACTIONS
from steelyard.memory.query import Query
from steelyard_eval.extensions.serve.caller import Caller
from steelyard_eval.extensions.serve.tools import (
    MOST_RESULTS,
    Arguments,
    Face,
    Json,
    Tool,
    number_of_results,
)
from steelyard_eval.vaults.arguments import parse_filters
from steelyard_eval.vaults.read import record_of

TEXT = {"type": "string", "minLength": 1, "maxLength": 10_000}


def search(caller: Caller, given: Arguments) -> Json:
    """Hits as `steelyard search --json` gives them."""
    filters = parse_filters(given.get("filters", ()))
    query = Query(
        given["query"], filters=filters, tags=tuple(given.get("tags", ())), domain=given.get("domain", "")
    )
    logged = caller.search(query, number_of_results(given.get("limit")))
    showing = logged.searcher.system.showing
    shown = {
        "hits": [showing.show(hit, logged.result, given["mode"]) for hit in logged.hits],
        "notes": list(logged.result.notes),
    }
    return shown | ({"query_id": logged.query_id} if logged.query_id else {})


def get(caller: Caller, given: Arguments) -> Json:
    """Whole entries, and the ids of which there is none."""
    entries = caller.read(given["ids"])
    known = {entry.id for entry in entries}
    return {
        "entries": [record_of(entry) for entry in entries],
        "missing": [name for name in given["ids"] if name not in known],
    }


def feedback(caller: Caller, given: Arguments) -> Json:
    """An act, logged."""
    caller.act(given["query_id"], given.get("id", ""), given["action"])
    return {"recorded": True}


FACE = Face(
    name="steelyard",
    system="echovault",
    tools=(
        Tool(
            "memory_search",
            "Search the memory. Returns the best entries first; read whole ones by id with memory_get.",
            {
                "type": "object",
                "properties": {
                    "query": {**TEXT, "description": "What to look for, in words."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS},
                    "filters": {
                        "type": "array",
                        "items": TEXT,
                        "maxItems": 100,
                        "description": "Only entries that pass, such as project=api, tags=auth, created_at>=2026.",
                    },
                    "tags": {"type": "array", "items": TEXT, "maxItems": 100},
                    "domain": {"type": "string", "maxLength": 10_000},
                    "mode": {
                        "type": "string",
                        "enum": ["full", "scan"],
                        "default": "full",
                        "description": "scan: titles and snippets only.",
                    },
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            search,
        ),
        Tool(
            "memory_get",
            "Read whole entries by id.",
            {
                "type": "object",
                "properties": {"ids": {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 100}},
                "required": ["ids"],
                "additionalProperties": False,
            },
            get,
        ),
        Tool(
            "memory_feedback",
            "Say what became of an entry that memory_search showed, so that search can be improved.",
            {
                "type": "object",
                "properties": {
                    "query_id": {**TEXT, "description": "That of the search."},
                    "id": {
                        **TEXT,
                        "description": "The entry; left out for none_useful, which is about the whole list.",
                    },
                    "action": {"type": "string", "enum": [*ACTIONS]},
                },
                "required": ["query_id", "action"],
                "additionalProperties": False,
            },
            feedback,
            logs=True,
        ),
    ),
)
