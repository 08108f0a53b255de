"""Our own face: search, get and feedback, with the forms of the commands of these names."""

from __future__ import annotations

from steelyard.memory.query import Query
from steelyard_eval.extensions.serve.caller import Caller
from steelyard_eval.extensions.serve.tools import Arguments, Face, Json, declared, number_of_results
from steelyard_eval.vaults.arguments import parse_filters
from steelyard_eval.vaults.read import record_of


def search(caller: Caller, given: Arguments) -> Json:
    """Hits as `steelyard search --json` gives them."""
    filters, tags = parse_filters(given.get("filters", ())), tuple(given.get("tags", ()))
    query = Query(given["query"], filters=filters, tags=tags, domain=given.get("domain", ""))
    logged = caller.search(query, number_of_results(given.get("limit")))
    showing = logged.searcher.system.showing
    hits = [showing.show(hit, logged.result, given["mode"]) for hit in logged.hits]
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


FACE = Face(
    name="steelyard",
    system="echovault",
    tools=declared("steelyard", memory_search=search, memory_get=get, memory_feedback=feedback),
)
