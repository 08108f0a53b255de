"""LangSmith: exported runs and feedback, as JSON or JSON lines.

Fields by its documentation (run data format, feedback data format); no export was at hand to try it on. A document
names its entry by `id`, else in its metadata. Feedback of 0 on a retriever's run says that its list was of no use,
where the data set says of its key that higher is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steelyard_eval.common.times import seconds
from steelyard_eval.extensions.usage.langfuse import query_in
from steelyard_eval.extensions.usage.records import Record, loaded, object_of, objects
from steelyard_eval.extensions.usage.spans import ANSWER, RATING, SEARCH, TOOL, TraceSpan

IDS = ("id", "_id", "doc_id", "document_id", "memory_id", "entry_id", "uri", "source")
THREADS = ("session_id", "thread_id", "conversation_id")
"""Keys of a run's metadata that name its conversation; `session_id` of the run itself is its project."""


def spans(record: Record) -> Iterable[TraceSpan]:
    """The steps of a trace in a record."""
    if "run_id" in record and "key" in record:
        if record.get("score") in (0, False) and record.get("score") is not None:
            rated = str(record["run_id"])
            yield TraceSpan(f"feedback {record.get('id')}", "", RATING, name=rated, asked=record["key"])
        return
    key, trace = str(record.get("id") or ""), str(record.get("trace_id") or record.get("id") or "")
    extra = object_of(record.get("extra"))
    about = object_of(extra.get("metadata"))
    conversation = next((str(about[name]) for name in THREADS if about.get(name)), "")
    begun, ended = seconds(record.get("start_time")), seconds(record.get("end_time"))
    inputs, outputs = object_of(record.get("inputs")), object_of(record.get("outputs"))
    parent = str(record.get("parent_run_id") or "")
    kind, name = record.get("run_type"), str(record.get("name") or "")
    if kind == "retriever":
        documents = _documents(outputs)
        yield TraceSpan(key, trace, SEARCH, conversation, begun, ended, name, query_in(inputs), documents, parent)
    elif kind == "tool":
        asked = loaded(inputs.get("input", inputs))
        given = outputs.get("output", outputs)
        yield TraceSpan(key, trace, TOOL, conversation, begun, ended, name, asked, given, parent)
    elif kind in ("llm", "chain"):
        given = outputs.get("output", outputs)
        yield TraceSpan(key, trace, ANSWER, conversation, begun, ended, "", None, given, parent)
    elif trace:
        yield TraceSpan(key, trace, "", conversation)
    for child in objects(record.get("child_runs")):
        yield from spans({"trace_id": trace, **child})


def _documents(outputs: Mapping[str, object]) -> list[Record] | None:
    """What was retrieved, with the id of each document; None where nothing was captured."""
    documents = loaded(outputs.get("documents", outputs.get("output")))
    if not isinstance(documents, list):
        return None
    retrieved = []
    for document in map(object_of, documents):
        inner = object_of(document.get("kwargs")) or document  # how LangChain writes its own objects
        metadata = object_of(inner.get("metadata"))
        name = next((part[key] for part in (inner, metadata) for key in IDS if part.get(key)), None)
        score = next(
            (part[key] for part in (inner, metadata) for key in ("score", "relevance_score") if key in part), None
        )
        retrieved.append(
            {"id": name, "score": score, "text": inner.get("page_content"), "title": metadata.get("title")}
        )
    return retrieved
