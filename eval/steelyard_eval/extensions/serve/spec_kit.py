"""system-spec-kit's face: it searches, and takes feedback; what it shows is read by path, or with the search."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from steelyard.base.errors import ConfigError
from steelyard.memory.entry import Hit
from steelyard_eval.extensions.serve.caller import Arguments, Caller, Json, face_of, passing, told

CONSTITUTIONAL = "constitutional"
TOKEN = 4  # Characters that its envelope counts as one


def memory_search(caller: Caller, given: Arguments) -> Json:
    """Results in an envelope. Arguments for what only the program can do are accepted, and change nothing."""
    text = given.get("query") or " ".join(given.get("concepts") or ())
    if not text:
        raise ConfigError("memory_search needs a query or concepts; this server gives no cursors")
    return _searched(caller, given, text, bool(given.get("includeContent")))


def memory_quick_search(caller: Caller, given: Arguments) -> Json:
    """The same with the contents, in the envelope of memory_search."""
    return _searched(caller, given, given["query"], True)


def memory_validate(caller: Caller, given: Arguments) -> Json:
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


def enveloped(tool: str, summary: str, data: Mapping[str, object], failed: bool = False) -> dict[str, object]:
    """The envelope of every answer."""
    size = math.ceil(len(json.dumps(data, ensure_ascii=False, separators=(",", ":"))) / TOKEN)
    meta: dict[str, object] = {"tool": tool, "tokenCount": size, "cacheHit": False}
    if failed:
        meta |= {"isError": True, "severity": "error"}
    return {"summary": summary, "data": dict(data), "hints": [], "meta": meta}


def _searched(caller: Caller, given: Arguments, text: str, content: bool) -> Json:
    filters = passing(
        project=given.get("specFolder"),
        tenant=given.get("tenantId"),
        importance_tier=given.get("tier"),
        context_type=given.get("contextType"),
    )
    intent = given.get("intent") or ""
    known = caller.searcher(given).knows(intent)
    logged = caller.search(given, filters, text=text, intent=intent if known else "")
    rows = [_row(hit, content) for hit in logged.hits]
    always = sum(row["isConstitutional"] for row in rows)
    data = {"searchType": "hybrid", "count": len(rows), "constitutionalCount": always, "results": rows}
    summary = f"Found {len(rows)} memories" if rows else "Nothing found"
    if logged.query_id:
        data["queryId"] = logged.query_id
    return enveloped("memory_search", summary, data)


def _row(hit: Hit, content: bool) -> dict[str, Any]:
    """A result; `similarity` is the cosine in per cent, `score` that of the ranking."""
    entry, cosine = hit.entry, hit.signals.get("vector", hit.signals.get("cosine"))
    row = told(entry, "id specFolder=project filePath=uri title=title?") | {
        "id": int(entry.id) if entry.id.isascii() and entry.id.isdecimal() else entry.id,
        "similarity": None if cosine is None else 100 * cosine,
        "score": hit.score,
        "isConstitutional": entry.importance_tier == CONSTITUTIONAL,
    }
    row |= told(entry, "importanceTier=importance_tier? triggerPhrases=tags createdAt=@created_at?")
    return row | ({"content": entry.text} if content else {})


def _fault(message: str, tool: str) -> Json:
    data = {"error": message, "code": "E001", "details": {}}
    return enveloped(tool, f"Error: {message}", data, failed=True)


FACE = face_of("spec_kit", memory_search, memory_quick_search, memory_validate, fault=_fault)
