"""EchoVault's face: it searches and shows what is new, and has no tool that reads one memory or takes feedback."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.systems import find_system
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


def search(caller: Caller, given: Arguments) -> Json:
    """A list of memories: the date without the time, scores of two decimals."""
    query = Query(given["query"], filters=passing(project=given.get("project") or None))
    logged = caller.search(query, number_of_results(given["limit"]))
    showing = find_system("echovault:shipped").showing
    return [showing.show(hit, logged.result, "scan") for hit in logged.hits]


def context(caller: Caller, given: Arguments) -> Json:
    """The newest memories of a project, by default that of the working directory."""
    project = given.get("project") or Path.cwd().name
    hits, total = caller.recent_entries(passing(project=project), number_of_results(given["limit"]) or 1)
    memories = [told(hit.entry, "id title category=category? tags") | _dated(hit.entry) for hit in hits]
    message = "memory_search finds more by topic; this server reads only."
    return {"total": total, "showing": len(hits), "memories": memories, "message": message}


def _dated(entry: Entry) -> dict[str, Json]:
    created = entry.created_at
    date = "" if created is None else f"{datetime.fromtimestamp(created, UTC):%b %d}"
    return {"title": entry.title or "Untitled", "date": date}


FACE = Face(
    name="echovault",
    system="echovault:shipped",
    source="mraza007/echovault d2f5d2d162ed289066c0cd50d727739a13ec80ca src/memory/mcp_server.py",
    tools=declared("echovault", memory_search=search, memory_context=context),
)
