"""system-spec-kit's face: it searches, and takes feedback; what it shows is read by path, or with the search."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from steelyard.base.errors import ConfigError
from steelyard.base.fields import format_time
from steelyard.memory.entry import Hit
from steelyard.memory.query import Query
from steelyard_eval.extensions.serve.caller import Caller
from steelyard_eval.extensions.serve.tools import Arguments, Face, Json, Tool, number_of_results, one_of, passing

INTENTS = ("add_feature", "fix_bug", "refactor", "security_audit", "understand", "find_spec", "find_decision")
CONSTITUTIONAL = "constitutional"
TOKEN = 4
"""Characters that its envelope counts as one."""


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
    if caller.recent.knows(query_id):
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
    limit = number_of_results(given["limit"])
    intent = given.get("intent") or ""
    known = caller.memory.searcher(limit).knows(intent)
    logged = caller.search(Query(text, filters=filters, intent=intent if known else ""), limit)
    rows = [_row(hit, content) for hit in logged.hits]
    data = {
        "searchType": "hybrid",
        "count": len(rows),
        "constitutionalCount": sum(row["isConstitutional"] for row in rows),
        "results": rows,
    }
    summary = f"Found {len(rows)} memories" if rows else "Nothing found"
    if logged.query_id:
        data["queryId"] = logged.query_id
    return enveloped("memory_search", summary, data)


def _row(hit: Hit, content: bool) -> dict[str, Any]:
    """A result; `similarity` is the cosine in per cent, `score` that of the ranking."""
    entry = hit.entry
    cosine = hit.signals.get("vector", hit.signals.get("cosine"))
    row = {
        "id": int(entry.id) if entry.id.isascii() and entry.id.isdecimal() else entry.id,
        "specFolder": entry.project,
        "filePath": entry.uri,
        "title": entry.title or None,
        "similarity": None if cosine is None else 100 * cosine,
        "score": hit.score,
        "isConstitutional": entry.importance_tier == CONSTITUTIONAL,
        "importanceTier": entry.importance_tier or None,
        "triggerPhrases": list(entry.tags),
        "createdAt": format_time(entry.created_at) or None,
    }
    return row | ({"content": entry.text} if content else {})


def _flag(about: str, default: bool | None = None) -> dict[str, object]:
    return {"type": "boolean", "description": about} | ({} if default is None else {"default": default})


_TEXT = {"type": "string"}
_QUERY = {"type": "string", "minLength": 2, "maxLength": 1000, "description": "What to look for."}
_LIMIT = {"type": "number", "default": 10, "minimum": 1, "maximum": 100, "description": "How many, at most."}
_SCOPE = {
    "specFolder": {**_TEXT, "description": "Only this folder."},
    "tenantId": {**_TEXT, "description": "Only this tenant."},
    "userId": {**_TEXT, "description": "Not used."},
    "agentId": {**_TEXT, "description": "Not used."},
}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1, "description": "Not used."}
_UNUSED = "Not used."
_OBJECT = {"type": "object", "additionalProperties": False}

FACE = Face(
    name="spec_kit",
    system="spec_kit",
    source=(
        "MichelKerkmeester/skilled-agent-harness_spec-driven-loops 030971a86c516b500f2fdeb8bd7bea8da0b068cc "
        ".opencode/skill/system-spec-kit/mcp_server/tool-schemas.ts"
    ),
    indent=2,
    fault=lambda message, tool: enveloped(
        tool, f"Error: {message}", {"error": message, "code": "E001", "details": {}}, failed=True
    ),
    tools=(
        Tool(
            "memory_search",
            "Search memories by words and by meaning, best first.",
            {
                **_OBJECT,
                "x-requiredAnyOf": [["query"], ["concepts"], ["cursor"]],
                "properties": {
                    "cursor": {"type": "string", "minLength": 1, "description": _UNUSED},
                    "query": _QUERY,
                    "concepts": {
                        "type": "array",
                        "items": {"type": "string", "minLength": 1},
                        "minItems": 2,
                        "maxItems": 5,
                        "description": "Several, searched together.",
                    },
                    **_SCOPE,
                    "limit": _LIMIT,
                    "sessionId": {**_TEXT, "description": _UNUSED},
                    "enableDedup": _flag(_UNUSED, True),
                    "tier": {**_TEXT, "description": "Only this importance tier."},
                    "contextType": {**_TEXT, "description": "Only this type of context."},
                    "useDecay": _flag(_UNUSED, True),
                    "includeContiguity": _flag(_UNUSED, False),
                    "includeConstitutional": _flag(_UNUSED, True),
                    "enableSessionBoost": _flag(_UNUSED),
                    "enableCausalBoost": _flag(_UNUSED),
                    "includeContent": _flag("With the texts.", False),
                    "anchors": {"type": "array", "items": _TEXT, "description": _UNUSED},
                    "profile": one_of("quick", "research", "resume", "debug", description=_UNUSED),
                    "min_quality_score": _SHARE,
                    "minQualityScore": _SHARE,
                    "bypassCache": _flag(_UNUSED, False),
                    "rerank": _flag(_UNUSED, True),
                    "applyLengthPenalty": _flag(_UNUSED, True),
                    "applyStateLimits": _flag(_UNUSED, False),
                    "minState": one_of(
                        "HOT", "WARM", "COLD", "DORMANT", "ARCHIVED", default="WARM", description=_UNUSED
                    ),
                    "intent": one_of(*INTENTS, description="What the task is."),
                    "autoDetectIntent": _flag(_UNUSED, True),
                    "trackAccess": _flag(_UNUSED, False),
                    "includeArchived": _flag(_UNUSED, False),
                    "mode": one_of("auto", "deep", default="auto", description=_UNUSED),
                    "includeTrace": _flag(_UNUSED, False),
                },
            },
            memory_search,
        ),
        Tool(
            "memory_quick_search",
            "Search memories, with their texts.",
            {**_OBJECT, "properties": {"query": _QUERY, "limit": _LIMIT, **_SCOPE}, "required": ["query"]},
            memory_quick_search,
        ),
        Tool(
            "memory_validate",
            "Say whether a memory that a search showed was useful.",
            {
                **_OBJECT,
                "properties": {
                    "id": {"type": "number", "minimum": 1, "description": "The memory."},
                    "wasUseful": _flag("Whether it was."),
                    "queryId": {**_TEXT, "description": "That of the search."},
                    "queryTerms": {"type": "array", "items": _TEXT, "description": _UNUSED},
                    "resultRank": {"type": "number", "minimum": 1, "description": _UNUSED},
                    "totalResultsShown": {"type": "number", "minimum": 1, "description": _UNUSED},
                    "searchMode": {**_TEXT, "description": _UNUSED},
                    "intent": {**_TEXT, "description": _UNUSED},
                    "sessionId": {**_TEXT, "description": _UNUSED},
                    "notes": {**_TEXT, "description": _UNUSED},
                },
                "required": ["id", "wasUseful"],
            },
            memory_validate,
            logs=True,
        ),
    ),
)
