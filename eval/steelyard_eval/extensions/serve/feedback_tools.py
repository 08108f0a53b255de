"""The faces of systems that take feedback: Soleri's and system-spec-kit's.

Soleri has two tools that take an operation, and one that searches; their names begin with the agent's.
system-spec-kit searches; what it shows is read by path, or with the search.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from steelyard.base.errors import ConfigError, quote
from steelyard.config import WEIGHT_NAMES
from steelyard.memory.entry import Entry, Hit
from steelyard.systems import find_system
from steelyard_eval.extensions.serve import tool_call

SCANNED, WHOLE = 10, 20  # Results where no number is asked for: of `search` and of a scan, and of whole entries
CONSTITUTIONAL = "constitutional"
TOKEN = 4  # Characters that its envelope counts as one


def soleri_search(caller: tool_call.Caller, given: tool_call.Arguments) -> tool_call.Json:
    """Whole entries, or a scan of them; by search_intelligent each says whether it is a memory."""
    intelligent = "includeMemories" in given  # which that operation alone has, with a default
    usual = WHOLE if intelligent and given["mode"] == "full" else SCANNED
    filters = tool_call.passing(**{name: given.get(name) for name in ("domain", "type", "severity")})
    if given.get("includeMemories") is False and "memory" in caller.searcher(given, usual).config.retrievers:
        filters &= tool_call.passing(kind={"none": ["memory"]})
    tags, domain = tuple(given.get("tags") or ()), given.get("domain") or ""
    logged = caller.search(given, filters, usual, tags=tags, domain=domain)
    rows = [_scored(hit, logged, given["mode"]) for hit in logged.result.hits]
    kinds = ["memory" if hit.entry.kind == "memory" else "vault" for hit in logged.result.hits]
    return [row | {"source": kind} for row, kind in zip(rows, kinds, strict=True)] if intelligent else rows


def load_entries(caller: tool_call.Caller, given: tool_call.Arguments) -> tool_call.Json:
    """Entries by id, or the newest of a domain."""
    if given.get("ids"):
        return list(map(_entry, caller.read(given["ids"])))
    if not given.get("domain"):
        raise ConfigError("load_entries needs ids, of a search, or a domain")
    entries = caller.listed(tool_call.passing(domain=given["domain"]), caller.limit(given, WHOLE) or WHOLE)
    return {"entries": list(map(_entry, entries)), "total": len(entries)}


def rated(caller: tool_call.Caller, given: tool_call.Arguments) -> tool_call.Json:
    """What became of an entry that a query showed: an action, or whether it was helpful."""
    action = given.get("action") or ("accepted" if given["helpful"] else "dismissed")
    caller.act_on(given["entryId"], action, given["query"])
    context = {"context": given.get("context")} if "helpful" in given else {}
    return {"recorded": True, "query": given["query"], "entryId": given["entryId"], "action": action, **context}


def brain_feedback(caller: tool_call.Caller, given: tool_call.Arguments) -> tool_call.Json:
    """The same, answered with what was said."""
    rated(caller, given)
    return {**tool_call.FORMS["soleri_feedback"], **given}


def _entry(entry: Entry) -> dict[str, object]:
    """An entry in the program's words; what is empty is left out, but for what every entry has."""
    usual = {"type": entry.type or "pattern", "severity": entry.severity or "suggestion"}
    return tool_call.own_words(entry, tool_call.FORMS["soleri_entry"]) | usual


def _scored(hit: Hit, logged: tool_call.LoggedSearch, mode: str) -> dict[str, object]:
    if mode == "scan":
        return find_system("soleri:shipped").showing.show(hit, logged.result, "scan")
    parts = {theirs: hit.signals.get(ours, 0.0) for theirs, ours in WEIGHT_NAMES["soleri"].items()}
    return {"entry": _entry(hit.entry), "score": hit.score, "breakdown": {**parts, "total": hit.score}}


SOLERI = tool_call.declared("soleri")
OPERATIONS = {
    name: {tool.name: tool for tool in tool_call.tools_of(SOLERI["operations"][name], answers)}
    for name, answers in {
        "vault": (soleri_search, soleri_search, load_entries, rated),
        "brain": (rated, brain_feedback),
    }.items()
}
"""By the ends of the names of the tools that take them."""


def soleri(agent: str) -> tool_call.Face:
    """Soleri's face for an agent, whose name the tools begin with."""

    def operated(end: str, caller: tool_call.Caller, given: tool_call.Arguments) -> tool_call.Json:
        facade, op = f"{agent}_{end}", given["op"]
        if op not in OPERATIONS[end]:
            raise ConfigError(f"{facade} has no operation {quote(op)} here; it has {', '.join(OPERATIONS[end])}")
        tool = OPERATIONS[end][op]
        data = tool.answer(caller, tool.checked(given["params"]))
        return {"success": True, "data": data, "op": op, "facade": facade}

    def alone(caller: tool_call.Caller, given: tool_call.Arguments) -> tool_call.Json:
        return operated("vault", caller, {"op": "search_intelligent", "params": given})

    tools = tool_call.tools_of(SOLERI["tools"], (partial(operated, "vault"), alone, partial(operated, "brain")))
    return tool_call.Face(
        **{name: SOLERI[name] for name in ("system", "source", "indent")},
        fault=lambda message, tool: {"success": False, "error": message, "facade": tool},
        tools=[replace(tool, name=f"{agent}_{tool.name}") for tool in tools],
    )


def memory_search(caller: tool_call.Caller, given: tool_call.Arguments) -> tool_call.Json:
    """Results in an envelope. Arguments for what only the program can do are accepted, and change nothing."""
    text = given.get("query") or " ".join(given.get("concepts") or ())
    if not text:
        raise ConfigError("memory_search needs a query or concepts; this server gives no cursors")
    return _searched(caller, given, text, bool(given.get("includeContent")))


def memory_quick_search(caller: tool_call.Caller, given: tool_call.Arguments) -> tool_call.Json:
    """The same with the contents, in the envelope of memory_search."""
    return _searched(caller, given, given["query"], True)


def memory_context(caller: tool_call.Caller, given: tool_call.Arguments) -> tool_call.Json:
    """The results of memory_search for a task. Modes, of which only the program knows the rest, change nothing."""
    found = _searched(caller, given, given["input"], bool(given.get("includeContent")))
    return enveloped("memory_context", found["summary"], {**found["data"], "mode": given["mode"]})


def memory_validate(caller: tool_call.Caller, given: tool_call.Arguments) -> tool_call.Json:
    """Whether a memory was useful: an act on the list that `queryId` names, or on the newest that showed it."""
    number = given["id"]
    entry_id = str(int(number)) if number == int(number) else str(number)
    action = "accepted" if given["wasUseful"] else "dismissed"
    query_id = given.get("queryId") or ""
    if any(one.query_id == query_id for one in caller.lists):
        caller.act(query_id, entry_id, action)
    else:
        query_id = caller.act_on(entry_id, action)
    data = {"id": number, "wasUseful": given["wasUseful"], "queryId": query_id}
    return enveloped("memory_validate", f"Recorded {action} for {entry_id}", data)


def enveloped(tool: str, summary: str, data: Mapping[str, object], **more: object) -> dict[str, object]:
    """The envelope of every answer."""
    size = math.ceil(len(json.dumps(data, ensure_ascii=False, separators=(",", ":"))) / TOKEN)
    meta = {"tool": tool, "tokenCount": size, "cacheHit": False, **more}
    return {"summary": summary, "data": dict(data), "hints": [], "meta": meta}


def _searched(caller: tool_call.Caller, given: tool_call.Arguments, text: str, content: bool) -> dict[str, Any]:
    filters = tool_call.passing(
        project=given.get("specFolder"),
        tenant=given.get("tenantId"),
        importance_tier=given.get("tier"),
        context_type=given.get("contextType"),
    )
    intent = given.get("intent") or ""
    known = caller.searcher(given).knows(intent)
    logged = caller.search(given, filters, text=text, intent=intent if known else "")
    rows = [_row(hit, content) for hit in logged.result.hits]
    always = sum(row["isConstitutional"] for row in rows)
    data = {"searchType": "hybrid", "count": len(rows), "constitutionalCount": always, "results": rows}
    summary = f"Found {len(rows)} memories" if rows else "Nothing found"
    if logged.query_id:
        data["queryId"] = logged.query_id
    return enveloped("memory_search", summary, data)


def _row(hit: Hit, content: bool) -> dict[str, Any]:
    """A result; `similarity` is the cosine in per cent, `score` that of the ranking."""
    entry, cosine = hit.entry, hit.signals.get("vector", hit.signals.get("cosine"))
    row = tool_call.own_words(entry, "id specFolder=project filePath=uri title=title?") | {
        "id": int(entry.id) if entry.id.isascii() and entry.id.isdecimal() else entry.id,
        "similarity": None if cosine is None else 100 * cosine,
        "score": hit.score,
        "isConstitutional": entry.importance_tier == CONSTITUTIONAL,
    }
    row |= tool_call.own_words(entry, "importanceTier=importance_tier? triggerPhrases=tags createdAt=@created_at?")
    return row | ({"content": entry.text} if content else {})


def _fault(message: str, tool: str) -> tool_call.Json:
    data = {"error": message, "code": "E001", "details": {}}
    return enveloped(tool, f"Error: {message}", data, isError=True, severity="error")


SPEC_KIT = tool_call.face_of(
    "spec_kit", memory_context, memory_search, memory_quick_search, memory_validate, fault=_fault
)
