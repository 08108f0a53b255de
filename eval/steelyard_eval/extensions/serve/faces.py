"""The faces that a server can have: a face is the set of tools by which clients of one memory system search.

Our own is here, with the forms of the commands of these names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.memory.query import Query
from steelyard_eval.extensions.serve import cortex_mem, echovault, moltnet, soleri, spec_kit
from steelyard_eval.extensions.serve.caller import Caller
from steelyard_eval.extensions.serve.tools import Arguments, Face, Json, declared, number_of_results
from steelyard_eval.vaults.arguments import parse_filters
from steelyard_eval.vaults.read import record_of

AGENT = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""A name of an agent, which tools may begin with."""
MIMICS: Mapping[str, Callable[[str], Face]] = {
    "echovault": lambda _: echovault.FACE,
    "cortex_mem": lambda _: cortex_mem.FACE,
    "soleri": lambda agent: soleri.face(agent or "soleri"),
    "moltnet": lambda _: moltnet.FACE,
    "spec_kit": lambda _: spec_kit.FACE,
}
"""The memory systems whose place a server can take; Soleri's tools have the name of an agent: `soleri:NAME`."""


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


OWN = Face(
    name="steelyard",
    system="echovault",
    tools=declared("steelyard", memory_search=search, memory_get=get, memory_feedback=feedback),
)


def find_face(text: str | None) -> Face:
    """Our own face, or that of a system; ConfigError for one that there is not."""
    if text is None:
        return OWN
    name, colon, agent = text.partition(":")
    if name not in MIMICS or (colon and (name != "soleri" or not AGENT.fullmatch(agent))):
        raise ConfigError(f"there is no face {shown(text)}{nearest(name, MIMICS)}; an agent is for soleri:AGENT")
    return MIMICS[name](agent)
