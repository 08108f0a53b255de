"""MoltNet's face: diary entries are searched, read and listed; it has no tool for feedback."""

from __future__ import annotations

from steelyard.base.errors import DataError, shown
from steelyard.base.fields import format_time
from steelyard.memory.entry import Entry
from steelyard.memory.filters import Filters
from steelyard.memory.query import Query
from steelyard_eval.extensions.serve.caller import Caller
from steelyard_eval.extensions.serve.tools import (
    Arguments,
    Face,
    Json,
    declared,
    number_of_results,
    passing,
    told,
)

TYPES = ("episodic", "semantic", "procedural", "reflection")
WEIGHTS = ("w_relevance", "w_recency", "w_importance")
FARTHEST = 3
"""Hops of relations that the program follows; an entry of ours names the first."""
ENTRY = "id diaryId=vault title=title? content=text tags=tags? injectionRisk=+injection_risk importance "
ENTRY += "accessCount=access_count lastAccessedAt=@last_accessed_at? entryType=type contentHash=+content_hash? "
ENTRY += "contentSignature=+content_signature? createdAt=@created_at updatedAt=@updated_at"


def search(caller: Caller, given: Arguments) -> Json:
    """Diary entries without scores, as the program shows those of one's own diaries."""
    filters = passing(tags=given.get("tags") or None, vault=given.get("diary_id"), type=given.get("entry_types"))
    if given.get("exclude_superseded"):
        filters &= Filters.of({"superseded": False})
    limit = number_of_results(given.get("limit"), 10)
    weights = {name: float(given[name]) for name in WEIGHTS if given.get(name) is not None}
    other = caller.weighted(limit, weights) if weights else None
    logged = caller.search(Query(given["query"], filters=filters), limit, other)
    return {"results": [_entry(hit.entry) for hit in logged.hits], "total": len(logged.hits)}


def get(caller: Caller, given: Arguments) -> Json:
    """One entry, with its own relations where they are asked for."""
    entries = caller.read([given["entry_id"]])
    if not entries:
        raise DataError(f"no entry {shown(given['entry_id'])}; name one that a search showed")
    shown_entry = _entry(entries[0])
    if given.get("expand_relations"):
        items = [_relation(entries[0], place) for place in range(len(entries[0].relations))]
        shown_entry["relations"] = {"requestedDepth": given.get("depth", 1), "maxDepth": FARTHEST, "items": items}
    return shown_entry


def list_(caller: Caller, given: Arguments) -> Json:
    """Entries of a diary, newest first; those of given ids count as opened."""
    filters = passing(vault=given["diary_id"], tags=given.get("tags") or None, type=given.get("entry_type"))
    if given.get("exclude_tags"):
        filters &= Filters.of({"tags": {"none": list(given["exclude_tags"])}})
    if given.get("ids"):
        entries = [entry for entry in caller.read(given["ids"]) if not filters.failed(entry)]
    else:
        entries = caller.listed(filters)
    limit, offset = number_of_results(given.get("limit"), 20) or 20, max(0, int(given.get("offset") or 0))
    items = list(map(_entry, entries[offset : offset + limit]))
    return {"items": items, "total": len(entries), "limit": limit, "offset": offset}


def _entry(entry: Entry) -> dict[str, Json]:
    """A diary entry; what a vault does not have is what the program writes for a new one."""
    said = told(entry, ENTRY)
    return said | {
        "injectionRisk": bool(said["injectionRisk"]),
        "importance": 5 if entry.importance is None else entry.importance,
        "accessCount": entry.access_count or 0,
        "entryType": entry.type if entry.type in TYPES else "semantic",
        "updatedAt": said["updatedAt"] or said["createdAt"],
    }


def _relation(entry: Entry, place: int) -> dict[str, object]:
    relation, made = entry.relations[place], format_time(entry.created_at)
    return {
        "id": f"{entry.id}:{place}",
        "sourceId": entry.id,
        "targetId": relation.target,
        "relation": relation.type,
        "status": relation.status or "accepted",
        **dict.fromkeys(
            ("sourceCidSnapshot", "targetCidSnapshot", "workflowId", "confidence", "parentRelationId")
        ),
        "similarity": relation.strength,
        "createdAt": made,
        "updatedAt": made,
        "depth": 1,
    }


FACE = Face(
    name="moltnet",
    system="moltnet:shipped",
    source="getlarge/themoltnet 25e711da825027a0a7ef103fa0e9c85afd166bd1 apps/mcp-server/src/schemas",
    structured=True,
    fault=lambda message, _: {"error": message},
    tools=declared("moltnet", entries_search=search, entries_get=get, entries_list=list_),
)
