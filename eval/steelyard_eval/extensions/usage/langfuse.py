"""Langfuse: exported observations and scores, as JSON or JSON lines.

Fields by its documentation, in snake case (exports to a blob store) and in camel case (the API and the interface);
no export was at hand to try it on. A score of 0 on a RETRIEVER says that its list was of no use, where the data
set says of its name that higher is better.
"""

from __future__ import annotations

from collections.abc import Iterable

from steelyard_eval.common.times import seconds
from steelyard_eval.extensions.usage.records import Record, loaded, objects
from steelyard_eval.extensions.usage.spans import ANSWER, RATING, SEARCH, TOOL, TraceSpan

QUERIES = ("query", "input", "text", "question", "q")


def query_in(value: object) -> str:
    """The query in the input of a retriever: a text, or an object with one."""
    query = loaded(value)
    if isinstance(query, dict):
        query = next((query[key] for key in QUERIES if isinstance(query.get(key), str)), "")
    return query if isinstance(query, str) else ""


def spans(record: Record) -> Iterable[TraceSpan]:
    """The steps of a trace in a record."""
    nested = record.get("observations")
    if isinstance(nested, list):  # a trace of the API, with its observations inside
        for observation in objects(nested):
            yield from spans({"sessionId": record.get("sessionId"), **observation})
        return
    key, trace = str(record.get("id") or ""), _of(record, "trace_id", "traceId")
    kind = str(record.get("type") or "").upper()
    if "value" in record and _of(record, "observation_id", "observationId"):
        if record["value"] in (0, "0", False):
            rated = _of(record, "observation_id", "observationId")
            yield TraceSpan(f"score {key}", trace, RATING, name=rated, asked=record.get("name"))
        return
    begun, ended = seconds(_any(record, "start_time", "startTime")), seconds(_any(record, "end_time", "endTime"))
    name, conversation = str(record.get("name") or ""), _of(record, "session_id", "sessionId")
    parent = _of(record, "parent_observation_id", "parentObservationId")
    asked, given = record.get("input"), loaded(record.get("output"))
    if kind == "RETRIEVER":
        yield TraceSpan(key, trace, SEARCH, conversation, begun, ended, name, query_in(asked), given, parent)
    elif kind == "TOOL":
        yield TraceSpan(key, trace, TOOL, conversation, begun, ended, name, asked, given, parent)
    elif kind in ("GENERATION", "AGENT", "CHAIN", "SPAN"):
        asked = None if parent else asked
        yield TraceSpan(key, trace, ANSWER, conversation, begun, ended, "", asked, given, parent)
    elif trace:
        yield TraceSpan(key, trace, "", conversation)


def _any(record: Record, *names: str) -> object:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _of(record: Record, *names: str) -> str:
    return str(_any(record, *names) or "")
